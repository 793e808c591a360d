// SPDX-License-Identifier: Apache-2.0
// Definedness of matrices that are distributed over a warp (undefined.hpp).
#include "runtime/emulator/core/definedness.hpp"
#include "runtime/emulator/ops/matrix/warpgroup.hpp"

namespace ikat::emulator {

namespace {

using u32 = std::uint32_t;
using Sum = MatrixProduct::Sum;

/// The lanes in which any of `count` bytes of a listed register is undefined, from byte `first` on.
u32 lanes_undefined(const Warp* w, const ListedOperands& of, unsigned i, unsigned first, unsigned count) {
    const u32* const masks = undefined_at(w, of.offset(i));
    u32 lanes = 0;
    for (unsigned k = first; k < first + count; ++k) lanes |= masks[k];
    return lanes;
}

/// The quads with any of these lanes.
u32 quads_of(u32 lanes) {
    u32 quads = 0;
    for (unsigned quad = 0; quad < 8; ++quad)
        if (lanes >> 4 * quad & 15) quads |= 1u << quad;
    return quads;
}

/// The lanes of a block of 8 x 8 whose element j is in one of these rows or columns.
u32 lanes_in(u32 rows, u32 columns, unsigned j) {
    u32 lanes = 0;
    for (unsigned lane = 0; lane < warp_size; ++lane)
        if (rows >> lane / 4 & 1 || columns >> (lane % 4 * 2 + j) & 1) lanes |= 1u << lane;
    return lanes;
}

void set_bytes(const Warp* w, const ListedOperands& of, unsigned i, unsigned first, unsigned count, u32 lanes,
               u32 maker) {
    u32* const masks = undefined_at(w, of.offset(i));
    for (unsigned k = first; k < first + count; ++k) masks[k] = masks[w->definedness->words + k] = lanes;
    if (lanes) maker_of(w, of.offset(i)) = maker;
}

/// m8n8k4 of f16: four products, each of eight threads (matrix.cpp).
void quads_definedness(const Warp* w, const MatrixProduct& product, const ListedOperands& of, u32 maker) {
    const unsigned a = product.registers_of(product.d), b = a + 2, c = b + 2;
    const auto halves = [&](unsigned first, unsigned i) { return lanes_undefined(w, of, first + i / 2, i % 2 * 2, 2); };
    // For each element of a thread, the lanes; of c before d, which may be c, changes.
    u32 left[4], right[4], sums[8], results[8] = {};
    for (unsigned i = 0; i < 4; ++i) left[i] = halves(a, i), right[i] = halves(b, i);
    for (unsigned i = 0; i < 8; ++i)
        sums[i] = product.c == Sum::F16 ? halves(c, i) : lanes_undefined(w, of, c + i, 0, 4);
    for (unsigned quad = 0; quad < 4; ++quad) {
        const auto lane_of = [&](unsigned thread) { return 4 * quad + thread % 4 + 16 * (thread / 4); };
        u32 rows = 0, columns = 0;
        std::uint64_t elements = 0;
        for (unsigned thread = 0; thread < 8; ++thread) {
            const unsigned lane = lane_of(thread), high = thread & 4;
            for (unsigned i = 0; i < 4; ++i) {
                rows |= (left[i] >> lane & 1) << (product.a_columns ? high + i : thread);
                columns |= (right[i] >> lane & 1) << (product.b_rows ? high + i : thread);
            }
            for (unsigned i = 0; i < 8; ++i)
                elements |= std::uint64_t(sums[i] >> lane & 1) << place_in_quads(product.c, thread, i);
        }
        for (unsigned thread = 0; thread < 8; ++thread)
            for (unsigned i = 0; i < 8; ++i) {
                const unsigned at = place_in_quads(product.d, thread, i);
                if (rows >> at / 8 & 1 || columns >> at % 8 & 1 || elements >> at & 1)
                    results[i] |= 1u << lane_of(thread);
            }
    }
    for (unsigned i = 0; i < 8; ++i)
        if (product.d == Sum::F16)
            set_bytes(w, of, i / 2, i % 2 * 2, 2, results[i], maker);
        else
            set_bytes(w, of, i, 0, 4, results[i], maker);
}

}  // namespace

std::optional<unsigned> wrong_metadata(const MicroOp* op, const Warp* w, const std::byte* frame) {
    const MatrixProduct product = MatrixProduct::of(op->y);
    const SparseRows rows = SparseRows::of(product);
    const ListedOperands of{w->lists + op->d};
    const unsigned end = product.registers_of(product.d) + product.a_registers() + product.b_registers() +
                         product.registers_of(product.c);
    const auto* const metadata = reinterpret_cast<const u32*>(frame + of.offset(end));
    const u32 undefined = w->definedness ? lanes_undefined(w, of, end, 0, 4) : 0;
    for (unsigned row = 0; row < 8u * product.row_blocks; ++row)
        for (unsigned chunk = 0; chunk < rows.chunks; ++chunk) {
            const auto [lane, bit] = rows.place(row, chunk, product.selector);
            if (undefined >> lane & 1 || !rows.has_meaning(metadata[lane] >> bit & 15, product.is_ordered)) return lane;
        }
    return {};
}

void matrix_definedness(const MicroOp* op, Warp* w) {
    const MatrixProduct product = MatrixProduct::of(op->y);
    const ListedOperands of{w->lists + op->d};
    const u32 maker = w->index_of(op);
    if (product.of_quads) return quads_definedness(w, product, of, maker);
    const unsigned bytes = product.a == MatrixProduct::Element::F64 ? 8 : 4;
    const unsigned a = product.registers_of(product.d), b = a + product.a_registers(), c = b + product.b_registers();
    u32 rows[2] = {}, columns = 0;
    for (unsigned r = 0; r < product.a_registers(); ++r)
        rows[r % product.row_blocks] |= quads_of(lanes_undefined(w, of, a + r, 0, bytes));
    for (unsigned r = 0; r < product.b_registers(); ++r) columns |= quads_of(lanes_undefined(w, of, b + r, 0, bytes));
    u32 undefined[2][2];  // before d, which may be c, changes
    for (unsigned i = 0; i < product.row_blocks; ++i)
        for (unsigned j = 0; j < 2; ++j)
            undefined[i][j] = lanes_in(rows[i], columns, j) |
                              (product.c == Sum::F16 ? lanes_undefined(w, of, c + i, 2 * j, 2)
                                                     : lanes_undefined(w, of, c + 2 * i + j, 0, bytes));
    for (unsigned i = 0; i < product.row_blocks; ++i)
        for (unsigned j = 0; j < 2; ++j)
            if (product.d == Sum::F16)
                set_bytes(w, of, i, 2 * j, 2, undefined[i][j], maker);
            else
                set_bytes(w, of, 2 * i + j, 0, bytes, undefined[i][j], maker);
}

std::uint64_t undefined_rows_of_a(const Warp* w, const ListedOperands& registers, unsigned first) {
    u32 rows = 0;
    for (unsigned i = 0; i < 4; ++i) rows |= quads_of(lanes_undefined(w, registers, first + i, 0, 4)) << 8 * (i % 2);
    return rows;
}

void warpgroup_definedness(const Warp* w, const ListedOperands& d, const WarpgroupProduct& form, bool adds, u32 rows,
                           const std::array<u32, 8>& columns, u32 maker) {
    const bool is_half = form.d == Sum::F16;
    for (unsigned block = 0; block < form.columns / 4u; ++block)  // two, one below the other, for each 8 columns
        for (unsigned j = 0; j < 2; ++j) {
            const unsigned i = is_half ? block : 2 * block + j, first = is_half ? 2 * j : 0, count = is_half ? 2 : 4;
            const unsigned column = block / 2 * 8;
            const u32 lanes = lanes_in(rows >> block % 2 * 8 & 255, columns[column / 32] >> column % 32 & 255, j);
            set_bytes(w, d, i, first, count, lanes | (adds ? lanes_undefined(w, d, i, first, count) : 0), maker);
        }
}

}  // namespace ikat::emulator
