// SPDX-License-Identifier: Apache-2.0
// Functions of the catalogue called by a batch and directly: the same bits.
#include <ikat/batch.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "stdlib/catalogue/registry.hpp"
#include "stdlib/spec/functions.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/batch/members_text.hpp"

namespace ikat::tests {
namespace {
namespace batch_catalogue {

using runtime::MutableTensorView;
using stdlib::Access;
using stdlib::NamedFunction;
using Bytes = std::vector<std::uint8_t>;
using Shape = std::vector<std::uint64_t>;

/// Small extents that every function takes, by name; 3 for others.
std::uint64_t extent_of(const std::string& name) {
    static const std::map<std::string, std::uint64_t> known{
        {"columns", 256}, {"head_dim", 64},  {"m", 16},       {"n", 16},         {"k", 64},
        {"rows", 16},     {"heads", 2},      {"kv_heads", 2}, {"width", 64},     {"dim", 64},
        {"room", 16},     {"page_rows", 16}, {"pages", 8},    {"cache_rows", 8}, {"max_pages", 1},
        {"keys", 16},     {"bias_keys", 16}, {"offsets", 4},  {"words", 4}};
    const auto found = known.find(name);
    return found == known.end() ? 3 : found->second;
}

/// Of several types, cast() makes another one.
ir::Type type_of(const NamedFunction::Array& array, ir::Type real) {
    if (array.is_of_any_type && array.access == Access::Out) return ir::Type::F16;
    return array.type == ir::Type::Void ? real : array.type;
}

/// The bytes of an array: numbers from -1 to 1, or 0, 1, 2 ... in words.
Bytes contents(ir::Type type, std::uint64_t count, std::uint32_t seed) {
    Bytes out(count * ir::info(type).bytes);
    const auto put = [&]<class T>(std::uint64_t i, T element) {
        std::memcpy(&out[i * sizeof(T)], &element, sizeof(T));
    };
    for (std::uint64_t i = 0; i < count; ++i) {
        const float number = float((i * 7 + seed * 3) % 17) / 8 - 1;
        if (type == ir::Type::F32)
            put(i, number);
        else if (type == ir::Type::F16)
            put(i, half(number));
        else if (type == ir::Type::BF16)
            put(i, bfloat16(number));
        else if (type == ir::Type::U32)
            put(i, std::uint32_t(i));
        else
            out[i] = std::uint8_t((i * 5 + seed) % 40);
    }
    return out;
}

/// Of a function's arrays: what they hold, and their shapes.
struct Arrays {
    std::vector<ir::Type> types{};
    std::vector<Shape> shapes{};
    std::vector<Bytes> bytes{};

    Arrays(const NamedFunction& function, const stdlib::FunctionSettings& settings, ir::Type real) {
        stdlib::NamedExtents sizes;
        for (const NamedFunction::Size& size : function.family->sizes)
            sizes[std::string(size.name)] = extent_of(std::string(size.name));
        const auto extents = function.extents_of_sizes(sizes, settings);
        for (const NamedFunction::Array& array : function.arrays) {
            types.push_back(type_of(array, real));
            shapes.push_back(function.shape(array, extents));
            std::uint64_t count = 1;
            for (const std::uint64_t extent : shapes.back()) count *= extent;
            bytes.push_back(contents(types.back(), count, std::uint32_t(bytes.size())));
        }
    }
};

std::vector<runtime::Buffer<std::uint8_t>> uploaded(const runtime::Device& device, const Arrays& arrays) {
    std::vector<runtime::Buffer<std::uint8_t>> out;
    out.reserve(arrays.bytes.size());
    for (const Bytes& bytes : arrays.bytes) out.push_back(device.upload(bytes));
    return out;
}

MutableTensorView view_of(const NamedFunction::Array& array, const Arrays& arrays, std::size_t i,
                          const runtime::Buffer<std::uint8_t>& buffer) {
    return array.view(arrays.types[i], buffer.memory().whole(), arrays.shapes[i], {});
}

/// What is written by the function itself: bytes of the arrays that it changes or makes.
std::vector<Bytes> directly(const runtime::Device& device, const NamedFunction& function, const Arrays& arrays,
                            const stdlib::FunctionSettings& settings) {
    auto buffers = uploaded(device, arrays);
    std::vector<MutableTensorView> views;
    for (std::size_t i = 0; i < buffers.size(); ++i)
        views.push_back(view_of(function.arrays[i], arrays, i, buffers[i]));
    function.run(device, views, settings);
    std::vector<Bytes> out;
    for (std::size_t i = 0; i < buffers.size(); ++i)
        if (function.arrays[i].is_written()) out.push_back(buffers[i].download());
    return out;
}

/// A call of a batch with so many arrays and settings.
template <class... Outputs>
auto called(const Batch& batch, const NamedFunction& function, const std::vector<MutableTensorView>& arrays,
            const stdlib::FunctionSettings& settings) {
    std::vector<stdlib::CallOperand> operands;
    for (const MutableTensorView& array : arrays) operands.push_back({array, true});
    stdlib::CallSettings given;
    for (const auto& [name, text] : settings.texts()) given.emplace_back(name, stdlib::Setting(std::string_view(text)));
    return batch.make<stdlib::ArrayOf<Outputs>...>(function, std::move(operands), given);
}

template <class T>
Bytes bytes_of(const Batch::Value<T>& value) {
    const std::vector<T> elements = value.download();
    Bytes out(elements.size() * sizeof(T));
    if (!out.empty()) std::memcpy(out.data(), elements.data(), out.size());
    return out;
}

/// The same by a batch, of a function that makes one array or none.
std::vector<Bytes> by_batch(const runtime::Device& device, const NamedFunction& function, const Arrays& arrays,
                            const stdlib::FunctionSettings& settings) {
    auto buffers = uploaded(device, arrays);
    std::vector<MutableTensorView> given;
    std::vector<Bytes> out(function.arrays.size());
    const NamedFunction::Array* made = nullptr;
    for (std::size_t i = 0; i < buffers.size(); ++i)
        if (function.arrays[i].access == Access::Out)
            made = &function.arrays[i];
        else
            given.push_back(view_of(function.arrays[i], arrays, i, buffers[i]));
    const Batch batch(device);
    const auto with_output = [&]<class T>(T) {
        const auto value = called<T>(batch, function, given, settings);
        batch.execute();
        return bytes_of<T>(value);
    };
    Bytes of_made;
    if (!made)
        called<>(batch, function, given, settings), batch.execute();
    else if (const ir::Type type = arrays.types[std::size_t(made - function.arrays.data())]; type == ir::Type::F16)
        of_made = with_output(half());
    else if (type == ir::Type::BF16)
        of_made = with_output(bfloat16());
    else if (type == ir::Type::U32)
        of_made = with_output(std::uint32_t());
    else if (type == ir::Type::I32)
        of_made = with_output(std::int32_t());
    else if (type == ir::Type::U8)
        of_made = with_output(std::uint8_t());
    else
        of_made = with_output(float());
    out.clear();
    for (std::size_t i = 0; i < buffers.size(); ++i)
        if (&function.arrays[i] == made)
            out.push_back(of_made);
        else if (function.arrays[i].is_written())
            out.push_back(buffers[i].download());
    return out;
}

stdlib::FunctionSettings settings_of(const NamedFunction& function) {
    stdlib::FunctionSettings out;
    for (const NamedFunction::Setting& setting : function.family->settings) {
        const std::string name(setting.name);
        const bool is_number = setting.meaning.starts_with("a number") && !setting.meaning.contains("if it is not set");
        if (is_number || name == "epsilon") out.set(name, name == "high" ? "0.75" : "0.25");
    }
    return out;
}

std::size_t count_made(const NamedFunction& function) {
    return std::size_t(std::ranges::count(function.arrays, Access::Out, &NamedFunction::Array::access));
}

TEST_CASE("batch: functions of the catalogue give the bits that they give by themselves") {
    const runtime::Device device = test::open_device();
    std::size_t members = 0, others = 0, number = 0;
    for (const NamedFunction& function : stdlib::functions()) {
        if (count_made(function) > 1) continue;
        const bool member = is_member(function);
        if (!member && number++ % 67 != 0) continue;
        INFO(function.name);
        const stdlib::FunctionSettings settings = settings_of(function);
        const Arrays arrays(function, settings, ir::Type::F32);
        CHECK(by_batch(device, function, arrays, settings) == directly(device, function, arrays, settings));
        ++(member ? members : others);
    }
    CHECK(members > 90);
    CHECK(others > 15);
}

}  // namespace batch_catalogue
}  // namespace
}  // namespace ikat::tests
