// SPDX-License-Identifier: Apache-2.0
// Matrix descriptors of wgmma (PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout"): where the blocks
// of an operand (ops/warpgroup.hpp) are in shared memory.
//
//     bits 0-13 start, 16-29 leading dimension offset, 32-45 stride dimension offset, each in 16 bytes;
//     49-51 base offset; 62-63 swizzle: 0 none, 1 of 128 bytes, 2 of 64, 3 of 32
//
// Swizzled, 16 bytes change places within a row of `width` bytes by their address: bits 4 to 6 of it are combined with
// bits 7 to 9 in rows of 128 bytes, 4 and 5 with 7 and 8 in rows of 64, 4 with 7 in rows of 32. Not swizzled, a row is
// that of a block.
#pragma once
#include <cstdint>

namespace ikat::emulator {

struct MatrixDescriptor {
    std::uint32_t start = 0, leading = 0, stride = 0;  // in bytes
    std::uint32_t width = 16;                          // of a row
    std::uint32_t base_offset = 0;
    bool has_reserved_bits = false;

    static constexpr MatrixDescriptor of(std::uint64_t bits) {
        const auto offset = [&](int first) { return std::uint32_t(bits >> first & 0x3fff) << 4; };
        constexpr std::uint32_t widths[] = {16, 128, 64, 32};
        constexpr std::uint64_t used = 0x3fff | 0x3fffull << 16 | 0x3fffull << 32 | 7ull << 49 | 3ull << 62;
        return {.start = offset(0),
                .leading = offset(16),
                .stride = offset(32),
                .width = widths[bits >> 62],
                .base_offset = std::uint32_t(bits >> 49 & 7),
                .has_reserved_bits = (bits & ~used) != 0};
    }

    /// Where row number i of half a block is: 16 bytes. Of a transposed operand, its rows are those of the other
    /// dimension: k.
    constexpr std::uint32_t place(unsigned block, unsigned half, unsigned i, bool is_transposed) const {
        const std::uint32_t parts = width / 16;
        std::uint32_t at = start + i * width;
        if (width == 16)
            at += block * stride + half * leading;
        else if (is_transposed)
            at += block % parts * 16 + block / parts * leading + half * stride;
        else
            at += block * stride + half * 16;
        return at ^ (at >> 3 & (width - 16));
    }
    struct Range {
        std::uint64_t first, last;
    };
    /// Where all rows of these blocks surely are, if the descriptor is aligned.
    constexpr Range range(unsigned blocks, bool is_transposed) const {
        const std::uint64_t parts = width / 16, last_block = blocks - 1;
        std::uint64_t last = start + 7 * width;
        if (width == 16)
            last += last_block * stride + leading + 16;
        else if (is_transposed)
            last += last_block / parts * leading + stride + (blocks < parts ? blocks : parts) * 16;
        else
            last += last_block * stride + 32;
        return {start / width * width, (last + width - 1) / width * width};  // bytes change places in a row
    }
    static constexpr std::uint32_t alignment = 128;
    /// Whether the swizzled rows begin at a multiple of the alignment; an operand with rows of k may begin inside them.
    constexpr bool has_aligned_rows() const { return width == 16 || start / width * width % alignment == 0; }
    constexpr bool is_aligned(bool is_transposed) const {
        return width == 16 || (has_aligned_rows() && (is_transposed || start % width + 32 <= width));
    }
};

}  // namespace ikat::emulator
