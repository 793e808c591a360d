// SPDX-License-Identifier: Apache-2.0
// Products of matrices by a warpgroup, four warps (wgmma): d, 64 x n, = a * b or a * b + d. A row of a and a column of
// b have 32 bytes. a and b are cut into blocks of 8 rows (of b, columns) by 16 bytes, two for each 8: as registers of
// mma.sync hold them (matrix.hpp), if consecutive elements of a row of a, or of a column of b, are adjacent in memory.
#pragma once
#include <array>

#include "runtime/emulator/ops/matrix/matrix.hpp"

namespace ikat::emulator {

struct WarpgroupProduct {
    MatrixProduct::Element a = MatrixProduct::Element::F16, b = MatrixProduct::Element::F16;
    MatrixProduct::Sum d = MatrixProduct::Sum::F32;
    std::uint16_t columns = 8;
    bool a_in_registers = false;
    bool a_by_columns = false;  // transposed: its blocks are 8 columns (of b, rows) of 8 elements
    bool b_by_rows = false;
    bool negates = false;  // the product
    bool saturates = false;

    constexpr std::uint32_t bits() const {
        return std::uint32_t(a) | std::uint32_t(b) << 4 | std::uint32_t(d) << 8 | std::uint32_t(columns / 8) << 10 |
               std::uint32_t(a_in_registers) << 16 | std::uint32_t(a_by_columns) << 17 |
               std::uint32_t(b_by_rows) << 18 | std::uint32_t(negates) << 19 | std::uint32_t(saturates) << 20;
    }
    static constexpr WarpgroupProduct of(std::uint32_t bits) {
        return {.a = MatrixProduct::Element(bits & 15),
                .b = MatrixProduct::Element(bits >> 4 & 15),
                .d = MatrixProduct::Sum(bits >> 8 & 3),
                .columns = std::uint16_t((bits >> 10 & 63) * 8),
                .a_in_registers = (bits >> 16 & 1) != 0,
                .a_by_columns = (bits >> 17 & 1) != 0,
                .b_by_rows = (bits >> 18 & 1) != 0,
                .negates = (bits >> 19 & 1) != 0,
                .saturates = (bits >> 20 & 1) != 0};
    }
    /// Of d, in a thread. A block of 8 x 8 is one register of pairs of f16, or two; two blocks of rows, one below the
    /// other, are followed by those of the next 8 columns.
    unsigned registers() const { return columns / (d == MatrixProduct::Sum::F16 ? 4u : 2u); }
    /// What makes its shape: two products of different shapes are not ordered by themselves.
    std::uint32_t shape() const { return columns | element_bits(a) << 16; }
};

inline constexpr unsigned warps_of_group = 4, block_bytes = 128;
struct WarpgroupWork {
    WarpgroupProduct form;
    bool adds = true;  // d
    std::array<std::byte*, warps_of_group> frames;
    ListedOperands d;
    const std::byte* a;  // the first halves of the 64 rows, then the second ones; aligned to 64 bytes
    const std::byte* b;  // the two halves of 8 columns, then those of the next 8
};
void multiply_by_warpgroup(const WarpgroupWork& work);

/// In checked code: the rows of a warp of which something is undefined, bit by bit, if a is in registers, from `first`
/// on.
std::uint64_t undefined_rows_of_a(const Warp* w, const ListedOperands& registers, unsigned first);
/// An element of d becomes undefined if one of its row of a (of a warp: 16), of its column of b, or what it is added to
/// is.
void warpgroup_definedness(const Warp* w, const ListedOperands& d, const WarpgroupProduct& form, bool adds,
                           std::uint32_t rows, const std::array<std::uint32_t, 8>& columns, std::uint32_t maker);

}  // namespace ikat::emulator
