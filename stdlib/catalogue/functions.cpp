// SPDX-License-Identifier: Apache-2.0
// All functions of the library that have a name.
#include "stdlib/spec/functions.hpp"

#include <algorithm>
#include <map>

#include "codegen/support/diagnostic.hpp"
#include "codegen/support/nearest.hpp"
#include "stdlib/catalogue/aliases.hpp"

namespace ikat::stdlib {
namespace {

std::vector<std::string> words_of(std::string_view name) {
    std::vector<std::string> out(1);
    for (const char c : name)
        if (c == '_')
            out.emplace_back();
        else
            out.back() += c;
    return out;
}

/// How much the words of two names differ, in whatever order they are.
std::size_t distance_of_words(std::string_view a, std::string_view b) {
    std::vector<std::string> left = words_of(a), right = words_of(b);
    std::erase_if(left, [&](const std::string& word) {
        const auto found = std::ranges::find(right, word);
        if (found == right.end()) return false;
        right.erase(found);
        return true;
    });
    std::size_t out = 0;
    for (const std::string& word : left) {
        const auto closest = std::ranges::min_element(right, {}, [&](const auto& x) { return edit_distance(word, x); });
        const bool is_alike =
            closest != right.end() && edit_distance(word, *closest) < std::max(word.size(), closest->size());
        out += is_alike ? edit_distance(word, *closest) : word.size() + 1;
        if (is_alike) right.erase(closest);
    }
    for (const std::string& word : right) out += word.size() + 1;
    return out;
}

/// All functions, and the names that stand for them: first those of their own.
struct Catalogue {
    std::vector<NamedFunction> all;
    std::multimap<std::string_view, const NamedFunction*> by_name;

    Catalogue() {
        for (auto make : {recipe_functions, tensor_core_functions, gemm_f32_functions, gemm_backward_functions,
                          attention_functions, attention_backward_functions, incremental_functions, product_functions,
                          quantiser_functions, fused_functions, cache_functions, embedding_functions, head_functions,
                          loss_functions, reduction_functions})
            for (NamedFunction& function : make()) all.push_back(std::move(function));
        std::ranges::sort(all, {}, &NamedFunction::name);
        for (const NamedFunction& function : all) {
            IKAT_ASSERT(!by_name.contains(function.name), "two functions have one name");
            by_name.emplace(function.name, &function);
        }
        for (const NamedFunction& function : all)
            for (const std::string_view name : function.other_names) by_name.emplace(name, &function);
    }
};

const Catalogue& catalogue() {
    static const Catalogue all;
    return all;
}

/// The name with the words that name() of a kernel has. The type behind another one is that of the results, and is f32.
std::string canonical(std::string_view name) {
    std::string out, before;
    for (const std::string& word : words_of(name)) {
        if (word == "nn") continue;
        if (!out.empty()) out += '_';
        const bool is_of_results = before == "f16" || before == "bf16";
        out += word == "f32" && !is_of_results ? "tf32" : word == "i8" ? "s8" : word;
        before = word;
    }
    return out;
}

}  // namespace

std::span<const NamedFunction> functions() { return catalogue().all; }

std::span<const NamedFunction::Family* const> function_families() {
    static const std::vector<const NamedFunction::Family*> all = [] {
        std::vector<const NamedFunction::Family*> out;
        for (const NamedFunction& function : functions())
            if (std::ranges::find(out, function.family) == out.end()) out.push_back(function.family);
        return out;
    }();
    return all;
}

const NamedFunction* find_function(std::string_view name, std::optional<std::size_t> arrays) {
    const auto& names = catalogue().by_name;
    auto [first, last] = names.equal_range(name);
    if (first == last) std::tie(first, last) = names.equal_range(canonical(name));
    if (first == last) return nullptr;
    const auto fits =
        std::find_if(first, last, [&](const auto& each) { return !arrays || each.second->arrays.size() == *arrays; });
    return (fits == last ? first : fits)->second;
}

std::vector<const NamedFunction*> functions_called(std::string_view name) {
    std::vector<const NamedFunction*> out;
    const auto [first, last] = catalogue().by_name.equal_range(name);
    for (auto each = first; each != last; ++each) out.push_back(each->second);
    return out;
}

std::string nearest_name(std::string_view name) {
    std::string out;
    std::size_t min_distance = 3;  // of other kernels, only what is a slip of the keyboard
    const auto compare = [&](std::string_view other, std::string_view asked) {
        const std::size_t at = std::min(distance_of_words(asked, other), edit_distance(asked, other));
        if (at < min_distance) min_distance = at, out = other;
    };
    for (const Entry& entry : registry()) compare(entry.name, name);
    for (const Alias& alias : aliases()) compare(alias.name, name);
    for (const auto* family : function_families())
        if (family->has_several() && name.starts_with(family->prefix)) min_distance = ~std::size_t{0};
    for (const NamedFunction& function : functions()) compare(function.name, canonical(name));
    for (const NamedFunction& function : functions()) compare(function.name, name);
    return out;
}

}  // namespace ikat::stdlib
