// SPDX-License-Identifier: Apache-2.0
#include "stdlib/spec/functions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "codegen/support/diagnostic.hpp"
#include "codegen/support/nearest.hpp"
#include "stdlib/catalogue/aliases.hpp"

namespace ikat::stdlib {
namespace {

std::string joined(std::span<const std::uint64_t> extents) { return fmt::format("{}", fmt::join(extents, " x ")); }

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

std::map<std::string, NamedFunction, std::less<>> make_functions() {
    std::map<std::string, NamedFunction, std::less<>> out;
    for (auto make : {tensor_core_functions, attention_functions, incremental_functions})
        for (NamedFunction& function : make()) {
            std::string name = function.name;
            out.emplace(std::move(name), std::move(function));
        }
    return out;
}

const auto& functions() {
    static const auto all = make_functions();
    return all;
}

/// Of extent d among those that "..." stands for.
std::string name_of_more(std::size_t d) { return fmt::format("...{}", d); }

/// The name with the words that name() of a kernel has.
std::string canonical(std::string_view name) {
    std::string out;
    for (const std::string& word : words_of(name)) {
        if (word == "nn") continue;
        if (!out.empty()) out += '_';
        out += word == "f32" ? "tf32" : word == "i8" ? "s8" : word;
    }
    return out;
}

template <class T>
T parsed(std::string_view name, std::string_view text, std::string_view what) {
    T out{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (error != std::errc{} || end != text.data() + text.size())
        throw Error(fmt::format("'{}' is '{}'", name, text), fmt::format("it is {}", what));
    return out;
}

}  // namespace

const std::string* FunctionSettings::find(std::string_view name) const {
    const auto found = texts_.find(name);
    return found == texts_.end() ? nullptr : &found->second;
}

std::optional<float> FunctionSettings::number(std::string_view name) const {
    const std::string* text = find(name);
    return text ? std::optional(parsed<float>(name, *text, "a number")) : std::nullopt;
}

std::optional<std::uint32_t> FunctionSettings::count(std::string_view name) const {
    const std::string* text = find(name);
    return text ? std::optional(parsed<std::uint32_t>(name, *text, "a number from 0 on")) : std::nullopt;
}

std::size_t FunctionSettings::one_of(std::string_view name, std::span<const std::string_view> names) const {
    const std::string* text = find(name);
    if (!text) return 0;
    const auto found = std::ranges::find(names, *text);
    if (found == names.end())
        throw Error(fmt::format("'{}' is '{}'", name, *text), fmt::format("it is one of {}", fmt::join(names, ", ")));
    return std::size_t(found - names.begin());
}

float FunctionSettings::required(std::string_view name) const {
    if (const std::optional<float> given = number(name)) return *given;
    throw Error(fmt::format("'{}' is not set", name), fmt::format("--set {}=VALUE", name));
}

std::string NamedFunction::Array::pitch_setting() const {
    return shape.names().size() > row || shape.has_more() ? fmt::format("{}_pitch", name) : "";
}

std::vector<std::string> NamedFunction::names_of_settings() const {
    std::vector<std::string> out;
    for (const Setting& setting : family->settings) out.emplace_back(setting.name);
    for (const Array& array : arrays)
        if (std::string pitch = array.pitch_setting(); !pitch.empty()) out.push_back(std::move(pitch));
    return out;
}

void NamedFunction::check(const FunctionSettings& settings) const {
    const std::vector<std::string> names = names_of_settings();
    for (const auto& [key, text] : settings.texts())
        if (std::ranges::find(names, key) == names.end())
            throw Error(fmt::format("'{}' has no setting '{}'", name, key),
                        fmt::format("its settings are {}", fmt::join(names, ", ")));
}

NamedExtents NamedFunction::extents(std::span<const std::optional<std::vector<std::uint64_t>>> given,
                                    const FunctionSettings& settings) const {
    NamedExtents out;
    std::map<std::string_view, std::string_view> said_by;
    for (std::size_t i = 0; i < given.size(); ++i) {
        if (!given[i]) continue;
        const Array& array = arrays[i];
        if (array.shape.is_any()) continue;
        const std::size_t rank = given[i]->size(), names = array.shape.names().size();
        const std::size_t max_rank = array.shape.has_more() ? OperandShape::max_extents : names;
        if (rank > max_rank || rank < names - array.shape.optional())
            throw Error(fmt::format("{}: '{}' has a shape of rank {}, {}", name, array.name, rank, joined(*given[i])),
                        fmt::format("'{}' is {}", array.name, array.shape.text()));
        const std::size_t more = array.shape.has_more() ? rank - names : 0;
        for (std::size_t d = 0; d < more; ++d) out.try_emplace(name_of_more(d), (*given[i])[d]);
        for (std::size_t d = more; d < rank; ++d) {
            const std::string_view of = array.shape.names()[names - rank + d];
            const auto [known, is_new] = out.try_emplace(std::string(of), (*given[i])[d]);
            const std::string_view earlier = said_by.try_emplace(of, array.name).first->second;
            if (known->second != (*given[i])[d])
                throw Error(
                    fmt::format("{}: '{}' is {}: its {} is {}, and that of '{}' is {}", name, array.name,
                                joined(*given[i]), of, (*given[i])[d], earlier, known->second),
                    fmt::format("'{}' is {}; `ikat kernels {}` has all shapes", array.name, array.shape.text(), name));
        }
    }
    if (more_extents) more_extents(out, settings);
    return out;
}

std::vector<std::uint64_t> NamedFunction::shape(const Array& array, const NamedExtents& extents) const {
    if (array.shape.is_any()) return {1};
    std::vector<std::uint64_t> out;
    const auto names = array.shape.names();
    if (array.shape.has_more())
        for (auto more = extents.find(name_of_more(0)); more != extents.end();
             more = extents.find(name_of_more(out.size())))
            out.push_back(more->second);
    for (std::size_t i = 0; i < names.size(); ++i) {
        const auto found = extents.find(names[i]);
        if (found != extents.end())
            out.push_back(found->second);
        else
            IKAT_ASSERT(i < array.shape.optional(), "the extents of an output are those of inputs");
    }
    return out;
}

std::vector<std::uint64_t> NamedFunction::pitches(const Array& array, std::span<const std::uint64_t> shape,
                                                  const FunctionSettings& settings) const {
    const std::string setting = array.pitch_setting();
    const std::optional<std::uint32_t> of_rows = setting.empty() ? std::nullopt : settings.count(setting);
    if (!of_rows) return {};
    std::vector<std::uint64_t> out(shape.size() - 1);
    std::uint64_t pitch = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
        if (__builtin_mul_overflow(pitch, shape[d], &pitch) || pitch >> 40)
            throw Error(fmt::format("'{}' is larger than any memory with {} of {}", array.name, setting, *of_rows),
                        "the pitch is in elements");
        if (d + array.row == shape.size()) {
            if (*of_rows < pitch)
                throw Error(
                    fmt::format("'{}' is {}, and a row of '{}' has {} elements", setting, *of_rows, array.name, pitch),
                    "it is the number of elements from one row to the next");
            if (*of_rows == pitch) return {};
            pitch = *of_rows;
        }
        if (d > 0) out[d - 1] = pitch;
    }
    return out;
}

std::span<const NamedFunction::Family* const> function_families() {
    static const std::vector<const NamedFunction::Family*> all = [] {
        std::vector<const NamedFunction::Family*> out;
        for (const auto& [name, function] : functions())
            if (std::ranges::find(out, function.family) == out.end()) out.push_back(function.family);
        return out;
    }();
    return all;
}

const NamedFunction* find_function(std::string_view name) {
    auto found = functions().find(name);
    if (found == functions().end()) found = functions().find(canonical(name));
    return found == functions().end() ? nullptr : &found->second;
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
        if (name.starts_with(family->prefix)) min_distance = ~std::size_t{0};
    for (const auto& [other, function] : functions()) compare(other, canonical(name));
    for (const NamedFunction& function : recipe_functions()) compare(function.name, name);
    return out;
}

}  // namespace ikat::stdlib
