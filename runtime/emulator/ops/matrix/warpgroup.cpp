// SPDX-License-Identifier: Apache-2.0
// Products of matrices by a warpgroup (warpgroup.hpp). They are computed as those of mma.sync (matrix.cpp), with the
// same bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/emulator/ops/matrix/warpgroup.cpp"
#include <hwy/foreach_target.h>
// after foreach_target
#include "runtime/emulator/ops/matrix/products.inl"
#include "runtime/emulator/ops/matrix/warpgroup.hpp"

HWY_BEFORE_NAMESPACE();
namespace ikat::emulator {
namespace HWY_NAMESPACE {

inline constexpr unsigned row_blocks = 8, halves = 2;

HWY_INLINE const std::uint32_t* cells_of_block(const std::byte* matrix, unsigned i) {
    return reinterpret_cast<const std::uint32_t*>(__builtin_assume_aligned(matrix + block_bytes * i, 64));
}

/// 8 x 8 elements of 16 bits.
HWY_INLINE void transpose_block(const std::uint32_t* from, std::uint32_t* to) {
    const auto* const in = reinterpret_cast<const std::uint16_t*>(from);
    auto* const out = reinterpret_cast<std::uint16_t*>(to);
    for (unsigned i = 0; i < 8; ++i)
        for (unsigned k = 0; k < 8; ++k) out[8 * i + k] = in[8 * k + i];
}

/// Calls f(warp's frame, place of the even elements in it, of the odd ones, number of the block of rows) for the blocks
/// of 8 columns of d.
template <class F>
HWY_INLINE void each_block_of_sums(const WarpgroupWork& work, unsigned block_of_columns, F f) {
    const bool is_half = work.form.d == Sum::F16;
    for (unsigned i = 0; i < row_blocks; ++i) {
        const unsigned number = halves * block_of_columns + i % 2;
        f(work.frames[i / 2], work.d.offset(is_half ? number : 2 * number),
          work.d.offset(is_half ? number : 2 * number + 1), i);
    }
}

template <class T, unsigned Parts>
HWY_INLINE void widen_rows(const WarpgroupWork& work, T* a) {
    constexpr unsigned held = warp_size * Parts, count = row_blocks * halves;
    alignas(64) float wide[sizeof(T) == 8 ? count * held : 1];
    float* to = wide;
    if constexpr (sizeof(T) == 4) to = a;
    for (unsigned i = 0; i < count; ++i) {
        const std::uint32_t* cells = cells_of_block(work.a, i);
        alignas(64) std::uint32_t turned[warp_size];
        if (work.form.a_by_columns) transpose_block(cells, turned), cells = turned;
        widen_elements<Parts>(work.form.a, cells, to + held * i);
    }
    if (work.form.negates) IKAT_EACH_OF(i, count * held) to[i] = -to[i];
    if constexpr (sizeof(T) == 8) widen(wide, count * held, a);
}

template <class T, unsigned Parts>
HWY_INLINE void widen_block_of_columns(const WarpgroupWork& work, unsigned block_of_columns, T* b) {
    constexpr unsigned held = warp_size * Parts;
    alignas(64) float wide[sizeof(T) == 8 ? halves * held : 1];
    float* to = wide;
    if constexpr (sizeof(T) == 4) to = b;
    for (unsigned half = 0; half < halves; ++half) {
        const std::uint32_t* const cells = cells_of_block(work.b, halves * block_of_columns + half);
        if (work.form.b_by_rows)
            widen_elements<Parts>(work.form.b, cells, to + held * half);
        else
            widen_columns<Parts>(work.form.b, cells, to + held * half);
    }
    if constexpr (sizeof(T) == 8) widen(wide, halves * held, b);
}

template <unsigned Parts>
HWY_NOINLINE void multiply_floats(const WarpgroupWork& work) {
    constexpr unsigned held = warp_size * Parts;
    alignas(64) double a[row_blocks * halves * held], b[halves * held], c[row_blocks * block];
    widen_rows<double, Parts>(work, a);
    for (unsigned j = 0; j < work.form.columns / 8u; ++j) {
        widen_block_of_columns<double, Parts>(work, j, b);
        if (work.adds)
            each_block_of_sums(work, j,
                               [&](std::byte* frame, std::uint32_t even, std::uint32_t odd, unsigned i)
                                   HWY_ATTR { read_sums(work.form.d, frame, even, odd, c + block * i); });
        else
            std::memset(c, 0, sizeof c);
        multiply_blocks<double, Parts>(a, b, c, row_blocks, halves);
        each_block_of_sums(work, j, [&](std::byte* frame, std::uint32_t even, std::uint32_t odd, unsigned i) HWY_ATTR {
            write_sums(work.form.d, c + block * i, frame, even, odd);
        });
    }
}

/// d = sums (+ d)
template <class T>
HWY_INLINE void finish_integers(const WarpgroupWork& work, unsigned block_of_columns, const T* sums) {
    each_block_of_sums(
        work, block_of_columns, [&](std::byte* frame, std::uint32_t even, std::uint32_t odd, unsigned i) HWY_ATTR {
            for (unsigned j = 0; j < 2; ++j) {
                auto* const d = lanes_at<std::int32_t>(frame, j == 0 ? even : odd);
                const T* const from = sums + block * i + j;
                const std::int32_t keep = work.adds ? -1 : 0;
                IKAT_EACH_LANE(lane)
                d[lane] = add_integers(std::int32_t(from[2 * lane]), d[lane] & keep, work.form.saturates);
            }
        });
}

/// Sums of 32 products are below 2^24: exact in f32.
HWY_NOINLINE void multiply_integers(const WarpgroupWork& work) {
    constexpr unsigned held = warp_size * 4;
    alignas(64) float a[row_blocks * halves * held], b[halves * held], c[row_blocks * block];
    widen_rows<float, 4>(work, a);
    for (unsigned j = 0; j < work.form.columns / 8u; ++j) {
        widen_block_of_columns<float, 4>(work, j, b);
        std::memset(c, 0, sizeof c);
        multiply_blocks<float, 4>(a, b, c, row_blocks, halves);
        finish_integers(work, j, c);
    }
}

HWY_NOINLINE void multiply_bits(const WarpgroupWork& work) {
    for (unsigned j = 0; j < work.form.columns / 8u; ++j) {
        std::uint32_t sums[row_blocks * block] = {};
        for (unsigned half = 0; half < halves; ++half) {
            const std::uint32_t* const b = cells_of_block(work.b, halves * j + half);
            for (unsigned i = 0; i < 8 * row_blocks; ++i) {
                const std::uint32_t* const a = cells_of_block(work.a, row_blocks * half + i / 8) + 4 * (i % 8);
                for (unsigned n = 0; n < 8; ++n)
                    for (unsigned quarter = 0; quarter < 4; ++quarter)
                        sums[8 * i + n] += std::uint32_t(std::popcount(a[quarter] & b[4 * n + quarter]));
            }
        }
        finish_integers(work, j, sums);
    }
}

void multiply_warpgroup(const WarpgroupWork& work) {
    switch (element_bits(work.form.a)) {
        case 1: return multiply_bits(work);
        case 16: return multiply_floats<2>(work);
        case 32: return multiply_floats<1>(work);
        default: return work.form.d == Sum::S32 ? multiply_integers(work) : multiply_floats<4>(work);
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace ikat::emulator
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ikat::emulator {
HWY_EXPORT(multiply_warpgroup);
void multiply_by_warpgroup(const WarpgroupWork& work) { HWY_DYNAMIC_DISPATCH(multiply_warpgroup)(work); }
}  // namespace ikat::emulator
#endif
