// SPDX-License-Identifier: Apache-2.0
// Tensor maps: what a bulk tensor copy knows of a tensor in global memory and of the box that it moves. A kernel sees
// 128 opaque bytes. On a device the driver encodes them; here they are ours, so maps of one never fit the other.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace ikat::emulator {

/// The values are those of the driver API's CUtensorMap... enumerations.
enum class MapType : std::uint8_t { U8, U16, U32, I32, U64, I64, F16, F32, F64, Bf16, F32Ftz, Tf32, Tf32Ftz };
enum class MapSwizzle : std::uint8_t { None, B32, B64, B128 };

/// Sizes and strides are innermost first; the innermost elements are adjacent.
struct TensorMap {
    MapType type = MapType::F32;
    std::uint32_t rank = 1;                          // 1 to 5
    std::uint64_t address = 0;                       // in global memory
    std::array<std::uint64_t, 5> extents{};          // of the tensor, in elements
    std::array<std::uint64_t, 4> strides{};          // of dimensions 1 to rank - 1, in bytes
    std::array<std::uint32_t, 5> box{};              // what one copy moves, in elements before element strides
    std::array<std::uint32_t, 5> element_strides{};  // every how many elements are taken; the first counts as 1
    std::uint8_t interleave = 0;                     // 0: none
    MapSwizzle swizzle = MapSwizzle::None;
    std::uint8_t l2_promotion = 0;  // 0 to 3
    bool fills_with_nan = false;    // outside the tensor, instead of zeros
    bool operator==(const TensorMap&) const = default;
};

inline constexpr std::size_t tensor_map_bytes = 128, tensor_map_alignment = 64;

/// Bytes of an element.
std::uint32_t element_bytes(MapType type);
/// Bytes of a row of the box in shared memory.
std::uint32_t box_row_bytes(const TensorMap& map);

/// What a driver would not accept, or "".
std::string problem(const TensorMap& map);

std::array<std::byte, tensor_map_bytes> encode(const TensorMap& map);
/// Nothing if neither encode() nor replace() made these bytes.
std::optional<TensorMap> decode(std::span<const std::byte, tensor_map_bytes> bytes);

/// What a kernel can replace in a map.
enum class MapField : std::uint8_t {
    Address,
    Rank,  // the value is one less
    Box,   // of one dimension, as are the next three
    Extent,
    Stride,  // of dimension + 1, in bytes
    ElementStride,
    Type,  // by replaced_type()
    Interleave,
    Swizzle,
    FillsWithNan,
};
/// How many values there are for a field that can only be a constant; 0: it can be any.
std::uint32_t replaced_values(MapField field);
/// The types as tensormap.replace numbers them, which is not as the driver API does.
MapType replaced_type(std::uint32_t value);
/// Replaces a field of a map. If the bytes are all zeros, they become one of which all other fields are 0, or 1 for
/// extents. What is wrong, or "": then they are as before. Whether the map as a whole makes sense is for who uses it.
std::string replace(std::span<std::byte, tensor_map_bytes> bytes, MapField field, std::uint32_t dimension,
                    std::uint64_t value);

}  // namespace ikat::emulator
