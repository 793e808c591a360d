// SPDX-License-Identifier: Apache-2.0
// Limits: the CUDA driver API, cuTensorMapEncodeTiled.
#include "runtime/emulator/agents/bulk/tensor_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ikat::emulator {
namespace {

constexpr std::uint64_t magic = 0x70616d74616b69;  // "ikatmap"

/// The bytes of an encoded map; what the kernel sees.
struct Encoded {
    std::uint64_t magic, address;
    std::array<std::uint64_t, 4> strides;
    std::array<std::uint32_t, 5> last;  // extents less one: an extent may be 2^32
    std::array<std::uint16_t, 5> box;
    std::array<std::uint8_t, 5> element_strides;
    std::uint8_t type, rank, interleave, swizzle, l2_promotion, fills_with_nan;
    std::array<std::uint8_t, 8> zeros;
    std::uint32_t check;  // over all bytes before
};
static_assert(sizeof(Encoded) <= tensor_map_bytes && std::is_trivially_copyable_v<Encoded>);

std::uint32_t checksum(const Encoded& map) {
    std::uint32_t sum = 2166136261u;
    const auto* const bytes = reinterpret_cast<const unsigned char*>(&map);
    for (std::size_t i = 0; i < offsetof(Encoded, check); ++i) sum = (sum ^ bytes[i]) * 16777619u;
    return sum;
}

bool is_one(const Encoded& map) { return map.magic == magic && map.check == checksum(map); }

bool is_float(MapType type) { return type >= MapType::F16; }

}  // namespace

std::uint32_t element_bytes(MapType type) {
    constexpr std::uint8_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    return bytes[int(type)];
}

std::uint32_t box_row_bytes(const TensorMap& map) { return map.box[0] * element_bytes(map.type); }

std::string problem(const TensorMap& map) {
    if (map.type > MapType::Tf32Ftz) return fmt::format("{} is not a data type", int(map.type));
    if (map.rank < 1 || map.rank > 5) return fmt::format("a map of rank {}: it is 1 to 5", map.rank);
    if (map.interleave > 2) return fmt::format("{} is not an interleave", map.interleave);
    if (map.interleave) return "interleaved layouts are not emulated";
    if (map.swizzle > MapSwizzle::B128) return fmt::format("{} is not a swizzle", int(map.swizzle));
    if (map.l2_promotion > 3) return fmt::format("{} is not an L2 promotion", map.l2_promotion);
    if (map.fills_with_nan && !is_float(map.type)) return "NaN fills tensors of a floating-point type only";
    if (map.address == 0 || map.address % 16) return fmt::format("address {:#x}: it is a multiple of 16", map.address);
    for (std::uint32_t i = 0; i < map.rank; ++i) {
        if (map.extents[i] == 0 || map.extents[i] > std::uint64_t{1} << 32)
            return fmt::format("extent {} is {}: it is 1 to 2^32", i, map.extents[i]);
        if (map.box[i] == 0 || map.box[i] > 256) return fmt::format("box {} is {}: it is 1 to 256", i, map.box[i]);
        if (i > 0 && (map.element_strides[i] == 0 || map.element_strides[i] > 8))
            return fmt::format("element stride {} is {}: it is 1 to 8", i, map.element_strides[i]);
        if (i + 1 == map.rank) break;
        const std::uint64_t stride = map.strides[i];
        if (stride % 16 || stride >= std::uint64_t{1} << 40)
            return fmt::format("stride {} is {} bytes: it is a multiple of 16 below 2^40", i + 1, stride);
    }
    const std::uint32_t row = box_row_bytes(map);
    if (row % 16) return fmt::format("a row of the box has {} bytes: it is a multiple of 16", row);
    const std::uint32_t span = map.swizzle == MapSwizzle::None ? 0 : 16u << int(map.swizzle);
    if (span && row > span)
        return fmt::format("a row of the box has {} bytes: with this swizzle it is at most {}", row, span);
    return {};
}

std::array<std::byte, tensor_map_bytes> encode(const TensorMap& map) {
    Encoded out;
    std::memset(&out, 0, sizeof out);
    out.magic = magic;
    out.address = map.address;
    for (std::uint32_t i = 0; i < map.rank; ++i) {
        out.last[i] = std::uint32_t(map.extents[i] - 1);
        out.box[i] = std::uint16_t(map.box[i]);
        out.element_strides[i] = std::uint8_t(map.element_strides[i]);
        if (i + 1 < map.rank) out.strides[i] = map.strides[i];
    }
    out.type = std::uint8_t(map.type);
    out.rank = std::uint8_t(map.rank);
    out.interleave = map.interleave;
    out.swizzle = std::uint8_t(map.swizzle);
    out.l2_promotion = map.l2_promotion;
    out.fills_with_nan = map.fills_with_nan;
    out.check = checksum(out);
    std::array<std::byte, tensor_map_bytes> bytes{};
    std::memcpy(bytes.data(), &out, sizeof out);
    return bytes;
}

std::optional<TensorMap> decode(std::span<const std::byte, tensor_map_bytes> bytes) {
    Encoded in;
    std::memcpy(&in, bytes.data(), sizeof in);
    if (!is_one(in)) return {};
    TensorMap map{.type = MapType(in.type), .rank = in.rank, .address = in.address};
    for (std::uint32_t i = 0; i < map.rank; ++i) {
        map.extents[i] = std::uint64_t(in.last[i]) + 1;
        map.box[i] = in.box[i];
        map.element_strides[i] = in.element_strides[i];
        if (i + 1 < map.rank) map.strides[i] = in.strides[i];
    }
    map.interleave = in.interleave;
    map.swizzle = MapSwizzle(in.swizzle);
    map.l2_promotion = in.l2_promotion;
    map.fills_with_nan = in.fills_with_nan;
    return map;
}

std::uint32_t replaced_values(MapField field) {
    switch (field) {
        case MapField::Type: return 13;
        case MapField::Interleave: return 3;
        case MapField::Swizzle: return 4;
        case MapField::FillsWithNan: return 2;
        default: return 0;
    }
}

MapType replaced_type(std::uint32_t value) {
    using enum MapType;
    constexpr MapType types[] = {U8, U16, U32, I32, U64, I64, F16, F32, F32Ftz, F64, Bf16, Tf32, Tf32Ftz};
    return types[value];
}

std::string replace(std::span<std::byte, tensor_map_bytes> bytes, MapField field, std::uint32_t dimension,
                    std::uint64_t value) {
    Encoded map;
    std::memcpy(&map, bytes.data(), sizeof map);
    if (std::ranges::all_of(bytes, [](std::byte each) { return each == std::byte{0}; }))
        map.magic = magic;
    else if (!is_one(map))
        return "these bytes are none";
    const auto is_in = [&](std::uint64_t min, std::uint64_t max) { return value >= min && value <= max; };
    const auto wrong = [&](const char* what, const char* range) {
        return fmt::format("{} {} is {}: it is {}", what, dimension, value, range);
    };
    switch (field) {
        case MapField::Address: map.address = value; break;
        case MapField::Rank:
            if (!is_in(0, 4)) return fmt::format("a rank of {}, less one: it is 0 to 4", value);
            map.rank = std::uint8_t(value + 1);
            break;
        case MapField::Box:
            if (!is_in(1, 256)) return wrong("box", "1 to 256");
            map.box[dimension] = std::uint16_t(value);
            break;
        case MapField::Extent:
            if (!is_in(1, std::uint64_t{1} << 32)) return wrong("extent", "1 to 2^32");
            map.last[dimension] = std::uint32_t(value - 1);
            break;
        case MapField::Stride: map.strides[dimension] = value; break;
        case MapField::ElementStride:
            if (!is_in(1, 8)) return wrong("element stride", "1 to 8");
            map.element_strides[dimension] = std::uint8_t(value);
            break;
        case MapField::Type: map.type = std::uint8_t(replaced_type(std::uint32_t(value))); break;
        case MapField::Interleave: map.interleave = std::uint8_t(value); break;
        case MapField::Swizzle: map.swizzle = std::uint8_t(value); break;
        case MapField::FillsWithNan: map.fills_with_nan = std::uint8_t(value); break;
    }
    map.check = checksum(map);
    std::memcpy(bytes.data(), &map, sizeof map);
    return {};
}

}  // namespace ikat::emulator
