// SPDX-License-Identifier: Apache-2.0
// ldmatrix, stmatrix and movmatrix: matrices of 8 x 8 elements of 16 bits (matrix.hpp). Lane l holds elements 2 (l % 4)
// and the next one of row l / 4, so the lanes of a register are the rows, one after the other. In memory a row is 16
// bytes; lane 8 i + r gives the address of row r of matrix i.
#include <bit>
#include <cstring>

#include "runtime/emulator/core/definedness.hpp"
#include "runtime/emulator/ops/control.hpp"
#include "runtime/emulator/ops/matrix/matrix.hpp"

namespace ikat::emulator {

namespace {

using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr unsigned row_bytes = 16, rows_of_matrix = 8, matrix_bytes = row_bytes * rows_of_matrix;

/// Rows become columns. The definedness of the bytes is moved likewise.
void transpose(const std::byte* from, std::byte* to) {
    using Row = std::uint16_t __attribute__((vector_size(16)));
    Row a[8], b[8];
    std::memcpy(a, from, sizeof a);
    const auto weave = [](const Row* in, Row* out) {
        for (unsigned i = 0; i < 4; ++i) {
            out[2 * i] = __builtin_shufflevector(in[i], in[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
            out[2 * i + 1] = __builtin_shufflevector(in[i], in[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
        }
    };
    weave(a, b);
    weave(b, a);
    weave(a, b);
    std::memcpy(to, b, sizeof b);
}

/// The rows that the op accesses, each found in shared memory.
struct MatrixRows {
    unsigned count = 0;
    std::byte* host[warp_size];
    u8* written[warp_size];  // the bits of its bytes, from one of offset 0 on; nullptr if all are written
    u8* bits[warp_size];
    u64 offset[warp_size], address[warp_size];
};

/// False on a finding.
bool find_rows(const MicroOp* op, Warp* w, const std::byte* frame, bool stores, MatrixRows& rows) {
    const MatrixAccess access = MatrixAccess::of(op->y);
    rows.count = rows_of_matrix * access.matrices;
    const u32* const undefined = w->definedness ? undefined_at(w, op->a) : nullptr;
    for (unsigned lane = 0; lane < rows.count; ++lane) {
        for (unsigned k = 0; undefined && k < (access.is_wide ? 8 : 4); ++k)
            if (undefined[k] >> lane & 1 && !passes(w, op, {.code = FaultCode::UndefinedAddress, .lane = lane}))
                return false;
        const u64 base = access.is_wide ? reinterpret_cast<const u64*>(frame + op->a)[lane]
                                        : reinterpret_cast<const u32*>(frame + op->a)[lane];
        u64 address = base + u64(std::int64_t(std::int32_t(op->b)));
        if (access.is_generic) {
            if (address >> window_bits != u64(Space::Shared)) {
                fail(w, op, {.code = FaultCode::NotShared, .lane = lane, .address = address});
                return false;
            }
            address &= window_bytes - 1;
        } else if (base >> 32 == 0) {
            address = u32(address);
        }
        const View& view = w->windows[int(Space::Shared)].at(address);
        const u64 offset = address - view.base;
        if (view.bytes < row_bytes || offset > view.bytes - row_bytes || address % row_bytes) {
            if (!passes_access(w, op, FaultCode::OutOfBounds, Space::Shared, lane, address, row_bytes, stores))
                return false;
            w->nowhere = {};
            rows.host[lane] = w->nowhere.data();
            rows.written[lane] = rows.bits[lane] = nullptr;
            continue;
        }
        rows.host[lane] = view.host + offset;
        rows.written[lane] = view.written;
        rows.bits[lane] = view.bits;
        rows.offset[lane] = offset;
        rows.address[lane] = address;
    }
    return true;
}

ListedOperands registers_of(const MicroOp* op, const Warp* w) { return {w->lists + op->d}; }

/// Which bytes of a matrix in registers have their bits set in these masks: 0xff or 0 for each.
void bytes_of(const u32* masks, std::byte* to) {
    for (unsigned i = 0; i < matrix_bytes; ++i) to[i] = std::byte(masks[i % 4] >> i / 4 & 1 ? 0xff : 0);
}
void set_bytes(u32* masks, const std::byte* from) {
    std::fill_n(masks, 4, 0);
    for (unsigned i = 0; i < matrix_bytes; ++i) masks[i % 4] |= u32(from[i] != std::byte{0}) << i / 4;
}

/// In checked code; false on a finding.
bool note_loaded(const MicroOp* op, Warp* w, const MatrixRows& rows, bool transposes) {
    for (unsigned i = 0; i < rows.count / rows_of_matrix; ++i) {
        std::byte undefined[matrix_bytes], turned[matrix_bytes];
        for (unsigned at = 0; at < matrix_bytes; ++at) {
            const unsigned row = rows_of_matrix * i + at / row_bytes;
            const u64 offset = rows.offset[row] + at % row_bytes;
            const bool is = rows.written[row] && !(rows.written[row][offset / 8] >> offset % 8 & 1);
            undefined[at] = std::byte(is ? 0xff : 0);
            if (!is) continue;
            w->definedness->unwritten = {w->index_of(op), Space::Shared, rows.address[row], row_bytes};
            if (touches_agent(w, op, Space::Shared, row, rows.address[row], row_bytes, false)) return false;
        }
        if (transposes) transpose(undefined, turned);
        const u32 to = registers_of(op, w).offset(i);
        set_bytes(undefined_at(w, to), transposes ? turned : undefined);
        std::fill_n(computed_at(w, to), 4, 0);
    }
    return true;
}

template <bool Checked>
[[gnu::noinline]] bool load(const MicroOp* op, Warp* w, std::byte* frame, u32 mask) {
    MatrixRows rows;
    if (!find_rows(op, w, frame, false, rows)) return false;
    const bool transposes = MatrixAccess::of(op->y).transposes;
    if constexpr (Checked) {
        if (!note_loaded(op, w, rows, transposes)) return false;
    } else {
        for (unsigned i = 0; i < rows.count; ++i)
            if (rows.written[i] && !written::all(rows.written[i], rows.offset[i], row_bytes))
                return go_on_checked(op, w, mask) != nullptr;
    }
    alignas(16) std::byte loaded[4 * matrix_bytes];
    for (unsigned i = 0; i < rows.count; ++i) std::memcpy(loaded + row_bytes * i, rows.host[i], row_bytes);
    for (unsigned i = 0; i < rows.count / rows_of_matrix; ++i) {
        std::byte* const d = frame + registers_of(op, w).offset(i);
        if (transposes)
            transpose(loaded + matrix_bytes * i, d);
        else
            std::memcpy(d, loaded + matrix_bytes * i, matrix_bytes);
    }
    return true;
}

template <bool Checked>
[[gnu::noinline]] bool store(const MicroOp* op, Warp* w, std::byte* frame) {
    MatrixRows rows;
    if (!find_rows(op, w, frame, true, rows)) return false;
    const bool transposes = MatrixAccess::of(op->y).transposes;
    for (unsigned i = 0; i < rows.count / rows_of_matrix; ++i) {
        const u32 from = registers_of(op, w).offset(i);
        alignas(16) std::byte matrix[matrix_bytes], undefined[matrix_bytes] = {}, turned[matrix_bytes];
        const auto in_memory = [&](std::byte* bytes) {
            if (!transposes) return;
            transpose(bytes, turned);
            std::memcpy(bytes, turned, matrix_bytes);
        };
        std::memcpy(matrix, frame + from, matrix_bytes);
        in_memory(matrix);
        if constexpr (Checked) {
            bytes_of(undefined_at(w, from), undefined);
            in_memory(undefined);
        }
        for (unsigned r = 0; r < rows_of_matrix; ++r) {
            const unsigned row = rows_of_matrix * i + r;
            std::memcpy(rows.host[row], matrix + row_bytes * r, row_bytes);
            const auto gone = [&](unsigned k) { return undefined[row_bytes * r + k] != std::byte{0}; };
            bool some = false;
            for (unsigned k = 0; Checked && k < row_bytes; ++k) some |= gone(k);
            if (some && rows.bits[row]) {
                if (touches_agent(w, op, Space::Shared, row, rows.address[row], row_bytes, true)) return false;
                w->block->reopen(rows.address[row]);
            }
            // Another row may just have been told apart again from those that are all written.
            if (rows.bits[row]) written::set(rows.bits[row], rows.offset[row], row_bytes, false);
            for (unsigned k = 0; some && rows.bits[row] && k < row_bytes; ++k)
                if (gone(k)) written::set(rows.bits[row], rows.offset[row] + k, 1, false, false);
        }
    }
    return true;
}

template <bool Checked>
const MicroOp* load_matrices(const MicroOp* op, Warp* w, std::byte* frame, u32 mask) {
    if (!whole_warp(op, w, mask) || !load<Checked>(op, w, frame, mask)) return nullptr;
    IKAT_NEXT;
}
template <bool Checked>
const MicroOp* store_matrices(const MicroOp* op, Warp* w, std::byte* frame, u32 mask) {
    if (!whole_warp(op, w, mask) || !store<Checked>(op, w, frame)) return nullptr;
    IKAT_NEXT;
}

[[gnu::noinline]] void turn_registers(std::byte* frame, u32 a, u32 d) {
    alignas(16) std::byte turned[matrix_bytes];
    transpose(frame + a, turned);
    std::memcpy(frame + d, turned, matrix_bytes);
}
[[gnu::noinline]] void turn_definedness(const Warp* w, u32 a, u32 d) {
    std::byte undefined[matrix_bytes], turned[matrix_bytes];
    for (const u32 kind : {0u, w->definedness->words}) {
        bytes_of(undefined_at(w, a) + kind, undefined);
        transpose(undefined, turned);
        set_bytes(undefined_at(w, d) + kind, turned);
    }
    maker_of(w, d) = maker_of(w, a);
}

template <bool Checked>
const MicroOp* transpose_matrix(const MicroOp* op, Warp* w, std::byte* frame, u32 mask) {
    if (!whole_warp(op, w, mask)) return nullptr;
    if constexpr (Checked) turn_definedness(w, op->a, op->d);
    turn_registers(frame, op->a, op->d);
    IKAT_NEXT;
}

}  // namespace

Behaviour select_load_matrices() {
    return {load_matrices<false>,
            {.operation = Op::LoadMatrix,
             .access = {.space = Space::Shared, .bytes = row_bytes, .direction = Direction::Read, .is_of_all = true},
             .checked = load_matrices<true>}};
}
Behaviour select_store_matrices() {
    return {store_matrices<false>,
            {.operation = Op::StoreMatrix,
             .access = {Space::Shared, row_bytes, Direction::Write},
             .checked = store_matrices<true>}};
}
Behaviour select_transpose_matrix() {
    return {transpose_matrix<false>, {.operation = Op::TransposeMatrix, .checked = transpose_matrix<true>}};
}

}  // namespace ikat::emulator
