// SPDX-License-Identifier: Apache-2.0
// The functions that recipes describe, as named functions.
#include <fmt/format.h>

#include <algorithm>
#include <deque>

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

/// Each format of quantised weights is a function, with the kernel's name.
bool is_by_format(const Recipe& recipe) {
    return std::ranges::any_of(recipe.operands.all(), [](const auto& x) { return x.blocks == Blocks::Weights; });
}

/// Recipes with one function have their kernels' names, the last one's.
std::string_view name_of(const Recipe& recipe) {
    const auto is_like_it = [&](const Recipe* other) {
        return other->function() == recipe.function() && !is_by_format(*other);
    };
    return std::ranges::count_if(recipes(), is_like_it) > 1 ? name_of(recipe.variants().back()) : recipe.function();
}

std::vector<NamedFunction::Size> sizes_of(const Recipe& recipe) {
    std::vector<NamedFunction::Size> out;
    bool has_more = false;
    for (const ArrayOperand& operand : recipe.operands.all()) {
        has_more = has_more || operand.shape.has_more();
        for (const std::string_view name : operand.shape.names())
            if (!operand.is_computed && std::ranges::find(out, name, &NamedFunction::Size::name) == out.end())
                out.push_back({name});
    }
    const bool has_rows = std::ranges::find(out, "rows", &NamedFunction::Size::name) != out.end();
    if (has_more) out.insert(out.begin(), {out.empty() ? "n" : has_rows ? "planes" : "rows", 0, true});
    return out;
}

/// "(q4_0|q4_1|q5_0|...)"
std::string list_of_formats() {
    std::string out;
    for (const runtime::QuantisedInfo& each : runtime::quantised_formats)
        out += fmt::format("{}{}", out.empty() ? "(" : "|", each.name);
    return out + ")";
}

/// What the functions of a recipe have in common.
struct RecipeFamily {
    const Recipe& recipe;
    std::string form;
    std::vector<NamedFunction::Size> sizes;
    NamedFunction::Family family;

    explicit RecipeFamily(const Recipe& of) : recipe(of), form(name_of(of)), sizes(sizes_of(of)) {
        std::size_t end = form.size();
        if (is_by_format(of)) {
            std::string_view first = name_of(of.kernels[0]), format = runtime::quantised_formats[0].name;
            end = first.find(format) - 1;  // and a '_'
            form = first;
            form.replace(end + 1, format.size(), list_of_formats());
        }
        family = {.prefix = std::string_view(form).substr(0, end),
                  .form = form,
                  .summary = {},
                  .document = "TYPE is f32, f16 or bf16, the same in all arrays that have it.",
                  .settings = of.settings.all(),
                  .sizes = sizes};
    }
};

std::deque<RecipeFamily> make_families() {
    std::deque<RecipeFamily> out;
    for (const Recipe* recipe : recipes())
        if (recipe->run || takes_rows(*recipe)) out.emplace_back(*recipe);
    return out;
}

BlockLayout layout_of(const ArrayOperand& operand, std::size_t kernel) {
    if (operand.blocks == Blocks::None) return {};
    if (operand.blocks == Blocks::Q8_1) return {"q8_1", 9, 32};
    const auto& [name, weights, bytes] = runtime::quantised_formats[kernel];
    return {name, bytes, weights, runtime::Quantised(kernel)};
}

NamedFunction::Array array_of(const ArrayOperand& operand, std::size_t kernel) {
    constexpr ir::Type of_blocks[] = {ir::Type::Void, ir::Type::U8, ir::Type::U32};
    return {.name = operand.name,
            .type = operand.blocks == Blocks::None ? operand.type : of_blocks[std::size_t(operand.blocks)],
            .shape = operand.shape,
            .access = operand.access,
            .is_of_any_type = operand.is_of_any_type,
            .blocks = layout_of(operand, kernel)};
}

/// The kernels, if there is one for each type, and the aliases that stand for them.
std::vector<std::string_view> other_names(std::span<const Variant> kernels) {
    std::vector<std::string_view> out;
    const auto has = [&](const Entry* entry) {
        return entry->variant >= kernels.data() && entry->variant < kernels.data() + kernels.size();
    };
    for (const Entry& entry : registry())
        if (kernels.size() == 1 && has(&entry)) out.push_back(entry.name);
    for (const Alias& alias : aliases()) {
        const auto stands_for_one = [&](std::string_view kernel) {
            return std::ranges::any_of(entries_of(kernel), has);
        };
        if (alias.chooses && std::ranges::any_of(alias.kernels, stands_for_one)) out.push_back(alias.name);
    }
    return out;
}

/// Of these kernels, of which the first has that number.
NamedFunction function_of(const RecipeFamily& of, std::string_view name, std::span<const Variant> kernels) {
    const Recipe& recipe = of.recipe;
    NamedFunction out{.name = std::string(name), .family = &of.family};
    out.formula = kernels.size() == 1 ? std::string(kernels[0].summary) : list_of_kernels(recipe);
    out.call = recipe.call;
    for (const ArrayOperand& operand : recipe.operands.all())
        out.arrays.push_back(array_of(operand, std::size_t(kernels.data() - recipe.kernels)));
    out.run = [&recipe](const Queue& queue, std::span<const MutableTensorView> arrays,
                        const FunctionSettings& settings) { run_recipe(recipe, queue, arrays, settings); };
    out.other_names = other_names(kernels);
    out.more_extents = recipe.extents;
    return out;
}

}  // namespace

std::vector<NamedFunction> recipe_functions() {
    static const std::deque<RecipeFamily> families = make_families();  // functions point to them
    std::vector<NamedFunction> out;
    for (const RecipeFamily& of : families)
        if (const auto kernels = of.recipe.variants(); is_by_format(of.recipe))
            for (const Variant& kernel : kernels) out.push_back(function_of(of, name_of(kernel), {&kernel, 1}));
        else
            out.push_back(function_of(of, of.form, kernels));
    return out;
}

}  // namespace ikat::stdlib
