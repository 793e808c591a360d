// SPDX-License-Identifier: Apache-2.0
#include "stdlib/spec/functions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "codegen/support/diagnostic.hpp"

namespace ikat::stdlib {
namespace {

std::string joined(std::span<const std::uint64_t> extents) { return fmt::format("{}", fmt::join(extents, " x ")); }

/// Of extent d among those that "..." stands for.
std::string name_of_more(std::size_t d) { return fmt::format("...{}", d); }

template <class T>
T parsed(std::string_view name, std::string_view text, std::string_view what) {
    T out{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (error != std::errc{} || end != text.data() + text.size())
        throw Error(fmt::format("'{}' is '{}'", name, text), fmt::format("it is {}", what));
    return out;
}

/// How many values the last extent of an array is, whose shape is in elements.
std::uint64_t values_of_row(const NamedFunction& function, const NamedFunction::Array& array,
                            std::span<const std::uint64_t> shape) {
    const BlockLayout& blocks = array.blocks;
    if (shape.back() % blocks.elements != 0)
        throw Error(fmt::format("{}: '{}' is {}, and a block of {} has {} elements", function.name, array.name,
                                joined(shape), blocks.name, blocks.elements),
                    fmt::format("'{}' is {}", array.name, array.shape_text()));
    return shape.back() / blocks.elements * blocks.values;
}

/// Whether some array has no shape without it.
bool is_needed(const NamedFunction& function, const NamedFunction::Size& size) {
    return std::ranges::any_of(function.arrays, [&](const NamedFunction::Array& array) {
        const auto names = array.shape.names();
        if (size.is_more) return array.shape.has_more() && names.empty();
        const std::size_t at = array.shape.position(size.name);
        return at >= array.shape.optional() && at < names.size();
    });
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

std::string NamedFunction::Array::shape_text() const {
    if (blocks.name.empty()) return shape.text();
    return fmt::format("{}, {} elements for every {} {}", shape.text(), blocks.elements, blocks.values,
                       shape.names().back());
}

MutableTensorView NamedFunction::Array::view(ir::Type of_elements, const runtime::BufferPart& part,
                                             std::span<const std::uint64_t> shape_of_it,
                                             std::span<const std::uint64_t> pitches_of_it) const {
    if (!blocks.format) return MutableTensorView(TensorView(of_elements, part, shape_of_it, pitches_of_it, Location{}));
    std::vector<std::uint64_t> extents(shape_of_it.begin(), shape_of_it.end());
    std::vector<std::uint64_t> strides(pitches_of_it.begin(), pitches_of_it.end());
    const auto count_values = [&](std::uint64_t& number) { number = number / blocks.elements * blocks.values; };
    count_values(extents.back());
    std::ranges::for_each(strides, count_values);
    return MutableTensorView(TensorView(*blocks.format, part, extents, strides, Location{}));
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
        const std::size_t max_extents = array.shape.has_more() ? OperandShape::max_extents : names;
        if (rank > max_extents || rank < names - array.shape.optional())
            throw Error(fmt::format("{}: '{}' has a shape of rank {}, {}", name, array.name, rank, joined(*given[i])),
                        fmt::format("'{}' is {}", array.name, array.shape_text()));
        const std::size_t more = array.shape.has_more() ? rank - names : 0;
        for (std::size_t d = 0; d < more; ++d) out.try_emplace(name_of_more(d), (*given[i])[d]);
        for (std::size_t d = more; d < rank; ++d) {
            const std::string_view of = array.shape.names()[names - rank + d];
            const std::uint64_t extent = d + 1 == rank ? values_of_row(*this, array, *given[i]) : (*given[i])[d];
            const auto [known, is_new] = out.try_emplace(std::string(of), extent);
            const std::string_view earlier = said_by.try_emplace(of, array.name).first->second;
            if (known->second != extent)
                throw Error(
                    fmt::format("{}: '{}' is {}: its {} is {}, and that of '{}' is {}", name, array.name,
                                joined(*given[i]), of, extent, earlier, known->second),
                    fmt::format("'{}' is {}; `ikat kernels {}` has all shapes", array.name, array.shape_text(), name));
        }
    }
    if (more_extents) more_extents(out, settings);
    return out;
}

NamedExtents NamedFunction::extents_of_sizes(const NamedExtents& sizes, const FunctionSettings& settings) const {
    std::vector<std::string_view> names;
    for (const Size& size : family->sizes) names.push_back(size.name);
    const std::string hint = fmt::format("its sizes are {}", fmt::join(names, ", "));
    for (const auto& [of, extent] : sizes)
        if (std::ranges::find(names, of) == names.end())
            throw Error(fmt::format("'{}' has no size '{}'", name, of), hint);
    NamedExtents out;
    for (const Size& size : family->sizes) {
        const auto said = sizes.find(size.name);
        if (said == sizes.end() && size.usual == 0 && is_needed(*this, size))
            throw Error(fmt::format("'{}' needs the size '{}'", name, size.name),
                        fmt::format("--size {}=N; {}", size.name, hint));
        if (said != sizes.end() || size.usual != 0)
            out.emplace(size.is_more ? name_of_more(0) : std::string(size.name),
                        said != sizes.end() ? said->second : size.usual);
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
    const BlockLayout& blocks = array.blocks;
    if (out.back() % blocks.values != 0)
        throw Error(fmt::format("{}: {} is {}, and '{}' has whole blocks of {}", name, names.back(), out.back(),
                                array.name, blocks.values),
                    fmt::format("'{}' is {}", array.name, array.shape_text()));
    out.back() = out.back() / blocks.values * blocks.elements;
    return out;
}

std::vector<std::uint64_t> NamedFunction::pitches(const Array& array, std::span<const std::uint64_t> shape,
                                                  const FunctionSettings& settings) const {
    const std::string setting = array.pitch_setting();
    const std::optional<std::uint32_t> of_rows = setting.empty() ? std::nullopt : settings.count(setting);
    if (!of_rows) return {};
    if (array.blocks.format && *of_rows % array.blocks.elements != 0)
        throw Error(fmt::format("'{}' is {}, which is not whole blocks of {} elements", setting, *of_rows,
                                array.blocks.elements),
                    fmt::format("'{}' is {}", array.name, array.shape_text()));
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

}  // namespace ikat::stdlib
