// SPDX-License-Identifier: Apache-2.0
// What a kernel knows of a parameter that is the map of a tensor: the boxes that it copies.
#pragma once
#include <array>
#include <cstdint>

#include "codegen/ir/type.hpp"

namespace ikat {

/// What a launch needs to make the map of a tensor from a view: the box and how it is written to shared memory.
struct TensorMapInfo {
    static constexpr std::uint32_t bytes = 128;  // of the parameter
    std::uint32_t parameter = 0;                 // its number
    ir::Type element = ir::Type::Void;
    std::uint32_t rank = 0;              // 1 to 5
    std::array<std::uint32_t, 5> box{};  // in elements, as rows and columns are written: the innermost last
    std::array<std::uint32_t, 5> every{1, 1, 1, 1, 1};  // of these each, or each second …, is copied
    std::uint32_t swizzle = 0;                          // bytes of a row of the box that is swizzled: 32, 64, 128; or 0
    bool fills_with_nan = false;                        // for elements outside of the tensor, else zeros
    bool is_written = false;                            // the kernel stores through it

    /// Of a box in shared memory.
    constexpr std::uint64_t box_bytes() const {
        std::uint64_t out = ir::info(element).bytes;
        for (std::uint32_t d = 0; d < rank; ++d) out *= (box[d] + every[d] - 1) / every[d];
        return out;
    }
    /// Of a box in shared memory, so that its pattern begins where the address says.
    constexpr std::uint32_t alignment() const { return swizzle ? 8 * swizzle : 128; }
    bool operator==(const TensorMapInfo&) const = default;
};

}  // namespace ikat
