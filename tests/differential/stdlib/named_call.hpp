// SPDX-License-Identifier: Apache-2.0
// A call of a function of the library by its name, with arrays of given or of random numbers.
#pragma once
#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "stdlib/spec/functions.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/encoded_rows.hpp"

namespace ikat::tests {

using stdlib::NamedFunction;
using Shape = std::vector<std::uint64_t>;

/// Numbers as an array of the function holds them, and as doubles.
struct Numbers {
    std::vector<std::uint8_t> bytes;
    std::vector<double> values;
};

template <class T>
void append(Numbers& to, double value) {
    const T element = std::is_same_v<T, e4m3> ? T(value) : T(float(value));
    const auto* first = reinterpret_cast<const std::uint8_t*>(&element);
    to.bytes.insert(to.bytes.end(), first, first + sizeof(T));
    to.values.push_back(value);
}
inline void append(Numbers& to, ir::Type type, double value) {
    if (type == ir::Type::F16) return append<half>(to, value);
    if (type == ir::Type::BF16) return append<bfloat16>(to, value);
    if (type == ir::Type::I8) return append<std::int8_t>(to, value);
    if (type == ir::Type::I32) return append<std::int32_t>(to, value);
    if (type == ir::Type::U32) return append<std::uint32_t>(to, value);
    if (type == ir::Type::E4M3) return append<e4m3>(to, value);
    append<float>(to, value);
}

template <class T>
std::vector<double> read(const std::vector<std::uint8_t>& bytes) {
    std::vector<T> elements(bytes.size() / sizeof(T));
    std::ranges::copy(bytes, reinterpret_cast<std::uint8_t*>(elements.data()));
    return {elements.begin(), elements.end()};
}
/// The bytes of an array whose rows follow each other, with pitches; 0xff between rows: NaN.
inline std::vector<std::uint8_t> spread(const std::vector<std::uint8_t>& bytes, const Shape& shape,
                                        const Shape& pitches, std::size_t element, bool is_back = false) {
    const std::size_t row = shape.back() * element;
    std::vector<std::uint8_t> out(is_back ? bytes.size() : runtime::view_size(shape, pitches) * element, 0xff);
    std::size_t rows = 1;
    for (std::size_t d = 0; d + 1 < shape.size(); ++d) rows *= shape[d];
    for (std::size_t i = 0; i < rows; ++i) {
        std::size_t at = 0, rest = i;
        for (std::size_t d = shape.size() - 1; d-- > 0; rest /= shape[d]) at += rest % shape[d] * pitches[d] * element;
        std::memcpy(&out[is_back ? i * row : at], &bytes[is_back ? at : i * row], row);
    }
    if (is_back) out.resize(rows * row);
    return out;
}

inline std::vector<double> read(const std::vector<std::uint8_t>& bytes, ir::Type type) {
    if (type == ir::Type::F16) return read<half>(bytes);
    if (type == ir::Type::BF16) return read<bfloat16>(bytes);
    return type == ir::Type::I32 ? read<std::int32_t>(bytes) : read<float>(bytes);
}

/// Such numbers in blocks of Q8_0, and what they are then, rounded to the type that they are decoded to.
inline Numbers in_blocks(const std::vector<double>& values, ir::Type type) {
    Numbers out;
    const std::vector<float> numbers(values.begin(), values.end());
    out.bytes = encoded(Encoding::q8_0, numbers);
    Numbers rounded;
    for (const float x : tests::decoded<float>(Encoding::q8_0, out.bytes)) append(rounded, type, x);
    out.values = read(rounded.bytes, type);
    return out;
}

/// What the function makes of inputs by their names, for these extents. Arrays of any type are of `of_any`.
class Called {
public:
    Called(const std::string& name, const stdlib::NamedExtents& extents, std::span<const double> choices,
           const stdlib::FunctionSettings& settings = {}, const std::map<std::string, std::vector<double>>& words = {},
           ir::Type of_any = ir::Type::F16)
        : function(stdlib::find_function(name)) {
        REQUIRE(function);
        const runtime::Device device = test::open_device();
        std::vector<runtime::Buffer<std::uint8_t>> buffers;
        buffers.reserve(function->arrays.size());
        std::vector<runtime::MutableTensorView> given;
        std::mt19937 random(7);
        for (const NamedFunction::Array& array : function->arrays) {
            const ir::Type type = array.type == ir::Type::Void ? of_any : array.type;
            types[std::string(array.name)] = type;
            const Shape shape = function->shape(array, extents);
            std::size_t count = 1;
            for (const std::uint64_t extent : shape) count *= extent;
            count = count / array.blocks.elements * array.blocks.values;
            Numbers& numbers = arrays[std::string(array.name)];
            const auto said = words.find(std::string(array.name));
            for (std::size_t i = 0; i < count; ++i)
                append(numbers, array.blocks.format ? ir::Type::F32 : type,
                       said != words.end()  ? said->second.at(i)
                       : array.is_written() ? -77
                                            : choices[random() % choices.size()]);
            if (array.blocks.format) numbers = in_blocks(numbers.values, of_any);
            const Shape pitches = function->pitches(array, shape, settings);
            if (!pitches.empty()) numbers.bytes = spread(numbers.bytes, shape, pitches, ir::info(type).bytes);
            buffers.push_back(device.upload(numbers.bytes, array.name));
            given.push_back(array.view(type, buffers.back().memory().whole(), shape, pitches));
        }
        function->run(device, given, settings);
        for (std::size_t i = 0; i < buffers.size(); ++i) {
            const NamedFunction::Array& array = function->arrays[i];
            if (!array.is_written()) continue;
            std::vector<std::uint8_t> bytes = buffers[i].download();
            const runtime::MutableTensorView& view = given[i];
            if (const std::size_t rank = view.rank; rank > 1)
                bytes =
                    spread(bytes, {view.extents.begin(), view.extents.begin() + rank},
                           {view.strides.begin(), view.strides.begin() + rank - 1}, ir::info(view.type).bytes, true);
            arrays[std::string(array.name)].values = read(bytes, view.type);
        }
    }
    const std::vector<double>& operator[](const std::string& array) const { return arrays.at(array).values; }
    ir::Type type_of(const std::string& array) const { return types.at(array); }
    bool has(const std::string& array) const { return arrays.contains(array); }

    const NamedFunction* function;
    std::map<std::string, Numbers> arrays{};
    std::map<std::string, ir::Type> types{};
};

}  // namespace ikat::tests
