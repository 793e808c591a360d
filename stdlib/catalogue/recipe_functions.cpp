// SPDX-License-Identifier: Apache-2.0
// The functions that recipes describe, as named functions.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>

#include "codegen/support/diagnostic.hpp"
#include "stdlib/catalogue/aliases.hpp"
#include "stdlib/spec/functions.hpp"
#include "stdlib/spec/view_call.hpp"

namespace ikat::stdlib {
namespace {

bool takes_rows(const Recipe& recipe) {
    return std::ranges::any_of(recipe.operands.all(), [](const ArrayOperand& x) { return x.shape.has_more(); });
}

/// For the first of its types, f32 if it has that.
std::string_view name_of(const Variant& kernel) {
    return (**std::ranges::find_if(kernel.instances, [](auto handle) { return handle != nullptr; }))().name();
}

/// A line for each.
std::string list_of_kernels(const Recipe& recipe) {
    std::string out = "By one of these kernels:";
    for (const Variant& kernel : recipe.variants()) out += fmt::format("\n  {}: {}", name_of(kernel), kernel.summary);
    return out;
}

void run_recipe(const Recipe& recipe, const Queue& queue, std::span<const MutableTensorView> arrays,
                const FunctionSettings& settings) {
    if (recipe.run) return recipe.run(queue, arrays, settings);
    std::vector<FunctionOperand> numbers;
    for (const FunctionSetting& each : recipe.settings.all()) numbers.emplace_back(settings.required(each.name));
    run_rows({queue, recipe, {arrays.begin(), arrays.end()}}, numbers);
}

/// A function, and its recipe.
struct RecipeFunctions {
    std::deque<NamedFunction::Family> families;  // functions point to them
    std::vector<NamedFunction> all;
    std::vector<const Recipe*> recipes;  // of each

    RecipeFunctions() {
        for (const Recipe* recipe : stdlib::recipes())
            if (recipe->run || takes_rows(*recipe)) recipes.push_back(recipe);
        std::map<std::string_view, const Recipe*> by_name;
        for (const Recipe* recipe : recipes) {
            [[maybe_unused]] const bool is_new = by_name.emplace(name(*recipe), recipe).second;
            IKAT_ASSERT(is_new, "two functions have one name");
        }
        recipes.clear();
        for (const auto& [name, recipe] : by_name) add(name, *recipe);
    }

private:
    std::string_view name(const Recipe& recipe) const {
        const auto count = std::ranges::count(recipes, recipe.function(), &Recipe::function);
        return count > 1 ? name_of(recipe.variants().back()) : recipe.function();
    }
    void add(std::string_view name, const Recipe& recipe) {
        recipes.push_back(&recipe);
        families.push_back({.prefix = name,
                            .form = name,
                            .summary = recipe.variants().back().summary,
                            .document = "TYPE is f32, f16 or bf16, the same in all arrays that have it.",
                            .settings = recipe.settings.all(),
                            .sizes = {}});
        NamedFunction out{.name = std::string(name), .family = &families.back()};
        out.formula = recipe.variants().size() == 1 ? std::string(families.back().summary) : list_of_kernels(recipe);
        out.call = recipe.call;
        for (const ArrayOperand& each : recipe.operands.all())
            out.arrays.push_back({.name = each.name,
                                  .type = each.type,
                                  .shape = each.shape,
                                  .access = each.access,
                                  .is_of_any_type = each.is_of_any_type});
        out.run = [&recipe](const Queue& queue, std::span<const MutableTensorView> arrays,
                            const FunctionSettings& settings) { run_recipe(recipe, queue, arrays, settings); };
        out.more_extents = recipe.extents;
        all.push_back(std::move(out));
    }
};

const RecipeFunctions& of_recipes() {
    static const RecipeFunctions all;
    return all;
}

}  // namespace

std::span<const NamedFunction> recipe_functions() { return of_recipes().all; }

const NamedFunction* find_recipe_function(std::string_view name, std::optional<std::size_t> arrays) {
    const RecipeFunctions& known = of_recipes();
    std::vector<const NamedFunction*> found;
    const auto add_kernel = [&](const Entry* entry) {
        const auto at = entry ? std::ranges::find(known.recipes, entry->recipe) : known.recipes.end();
        if (at != known.recipes.end()) found.push_back(&known.all[std::size_t(at - known.recipes.begin())]);
    };
    for (const NamedFunction& function : known.all)
        if (function.name == name) found.push_back(&function);
    if (const Entry* entry = find(name); entry && entry->recipe->variants().size() == 1) add_kernel(entry);
    if (const Alias* alias = find_alias(name))
        for (const std::string_view kernel : alias->kernels)
            for (const Entry* entry : entries_of(kernel)) add_kernel(entry);
    const auto fits = std::ranges::find_if(
        found, [&](const NamedFunction* function) { return !arrays || function->arrays.size() == *arrays; });
    return fits != found.end() ? *fits : found.empty() ? nullptr : found.front();
}

}  // namespace ikat::stdlib
