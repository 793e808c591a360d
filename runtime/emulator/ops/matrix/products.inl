// SPDX-License-Identifier: Apache-2.0
// Pieces of products of matrices, by a warp (matrix.cpp) and by four (warpgroup.cpp). A register of a, or of b, is a
// block of 8 rows (of b, 8 columns) of 16 bytes; one of c and d, with its neighbour if the elements have 32 bits, a
// block of 8 x 8 elements. Included once per instruction set, like lanes.inl.
#if defined(IKAT_EMULATOR_PRODUCTS) == defined(HWY_TARGET_TOGGLE)
#ifdef IKAT_EMULATOR_PRODUCTS
#undef IKAT_EMULATOR_PRODUCTS
#else
#define IKAT_EMULATOR_PRODUCTS
#endif

#include "runtime/emulator/ops/lanes.inl"
#include "runtime/emulator/ops/matrix/matrix.hpp"

#ifndef IKAT_UNROLLED  // clang does it unasked
#if defined(__clang__)
#define IKAT_UNROLLED
#else
#define IKAT_UNROLLED _Pragma("GCC unroll 8")
#endif
#endif

HWY_BEFORE_NAMESPACE();
namespace ikat::emulator {
namespace HWY_NAMESPACE {

using Element = MatrixProduct::Element;
using Sum = MatrixProduct::Sum;

inline constexpr unsigned block = 64;  // elements in a block of 8 x 8

// ---- elements as numbers: each conversion is exact

/// f16 as f32.
HWY_INLINE void widen(const std::uint16_t* from, unsigned count, float* to) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
    for (unsigned i = 0; i < count; ++i) to[i] = sem::convert<float>(half::from_bits(from[i]), Rounding::Nearest);
#else
    const hn::ScalableTag<float> v;
    const hn::Rebind<std::uint16_t, decltype(v)> shorts;
    const hn::Rebind<hwy::float16_t, decltype(v)> halves;
    IKAT_UNROLLED for (unsigned i = 0; i < count; i += unsigned(hn::Lanes(v)))
        hn::Store(hn::PromoteTo(v, hn::BitCast(halves, hn::Load(shorts, from + i))), v, to + i);
#endif
}

/// f32 as f64.
HWY_INLINE void widen(const float* from, unsigned count, double* to) {
    const hn::ScalableTag<double> v;
    const hn::Rebind<float, decltype(v)> narrow;
    IKAT_UNROLLED for (unsigned i = 0; i < count; i += unsigned(hn::Lanes(v)))
        hn::Store(hn::PromoteTo(v, hn::Load(narrow, from + i)), v, to + i);
}

/// The elements of 32 cells, Parts in each, from the lowest bits on.
template <unsigned Parts>
HWY_INLINE void widen_elements(Element element, const std::uint32_t* cells, float* to) {
    const auto* const shorts = reinterpret_cast<const std::uint16_t*>(cells);
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(cells);
    constexpr unsigned count = warp_size * Parts;
    if constexpr (Parts == 1) {  // tf32
        IKAT_EACH_OF(i, count) {
            const bool is_nan = (cells[i] & 0x7fffffff) > 0x7f800000;
            to[i] = std::bit_cast<float>(is_nan ? 0x7fffffff : cells[i] & 0xffffe000);
        }
    } else if constexpr (Parts == 2) {
        if (element == Element::F16) return widen(shorts, count, to);
        IKAT_EACH_OF(i, count) to[i] = std::bit_cast<float>(std::uint32_t(shorts[i]) << 16);
    } else if constexpr (Parts == 4) {
        alignas(64) std::uint16_t halves[count];
        switch (element) {
            case Element::S8: IKAT_EACH_OF(i, count) to[i] = float(std::int8_t(bytes[i])); return;
            case Element::U8: IKAT_EACH_OF(i, count) to[i] = float(bytes[i]); return;
            case Element::E5M2:  // the upper byte of an f16
                IKAT_EACH_OF(i, count) halves[i] = std::uint16_t(bytes[i] << 8);
                return widen(halves, count, to);
            default:  // as an f16, an e4m3 is 2^-8 of what it is, if it is not a NaN
                IKAT_EACH_OF(i, count) halves[i] = std::uint16_t((bytes[i] & 0x80) << 8 | (bytes[i] & 0x7f) << 7);
                widen(halves, count, to);
                IKAT_EACH_OF(i, count)
                to[i] = (bytes[i] & 0x7f) == 0x7f ? sem::canonical_nan<float>() : to[i] * 256;
        }
    } else if (element == Element::S4) {
        IKAT_EACH_OF(i, count / 2) {
            to[2 * i] = float(std::int8_t(bytes[i] << 4) >> 4);
            to[2 * i + 1] = float(std::int8_t(bytes[i]) >> 4);
        }
    } else {
        IKAT_EACH_OF(i, count / 2) to[2 * i] = float(bytes[i] & 15), to[2 * i + 1] = float(bytes[i] >> 4);
    }
}

/// From 8 x 4 cells to 4 x 8.
HWY_INLINE void turn(const std::uint32_t* cells, std::uint32_t* to) {
    const hn::CappedTag<std::uint32_t, 8> v;
    for (unsigned n = 0; n < 8; n += unsigned(hn::Lanes(v))) {
        hn::Vec<decltype(v)> v0, v1, v2, v3;
        hn::LoadInterleaved4(v, cells + 4 * n, v0, v1, v2, v3);
        hn::Store(v0, v, to + n);
        hn::Store(v1, v, to + 8 + n);
        hn::Store(v2, v, to + 16 + n);
        hn::Store(v3, v, to + 24 + n);
    }
}

/// From 8 x Parts numbers to Parts x 8.
template <unsigned Parts>
HWY_INLINE void turn_parts(const float* from, float* to) {
    const hn::CappedTag<float, 8> v;
    using V = hn::Vec<decltype(v)>;
    if constexpr (Parts == 8) {
        for (unsigned n = 0; n < 8; ++n)
            for (unsigned part = 0; part < 8; ++part) to[8 * part + n] = from[8 * n + part];
        return;
    }
    for (unsigned n = 0; n < 8; n += unsigned(hn::Lanes(v))) {
        if constexpr (Parts == 1) hn::Store(hn::Load(v, from + n), v, to + n);
        if constexpr (Parts == 2) {
            V v0, v1;
            hn::LoadInterleaved2(v, from + 2 * n, v0, v1);
            hn::Store(v0, v, to + n);
            hn::Store(v1, v, to + 8 + n);
        }
        if constexpr (Parts == 4) {
            V v0, v1, v2, v3;
            hn::LoadInterleaved4(v, from + 4 * n, v0, v1, v2, v3);
            hn::Store(v0, v, to + n);
            hn::Store(v1, v, to + 8 + n);
            hn::Store(v2, v, to + 16 + n);
            hn::Store(v3, v, to + 24 + n);
        }
    }
}

/// A register of b, 8 columns of 4 Parts elements, as 4 Parts rows of 8.
template <unsigned Parts>
HWY_INLINE void widen_columns(Element element, const std::uint32_t* cells, float* to) {
    alignas(64) std::uint32_t turned_cells[warp_size];
    alignas(64) float turned[warp_size * Parts];
    turn(cells, turned_cells);
    widen_elements<Parts>(element, turned_cells, turned);
    for (unsigned i = 0; i < 4; ++i) turn_parts<Parts>(turned + 8 * Parts * i, to + 8 * Parts * i);
}

// ---- products

/// c += a * b. Of a, each register is 8 rows of 4 Parts elements; of b, 4 Parts rows of 8.
template <class T, unsigned Parts>
HWY_INLINE void multiply_blocks(const T* a, const T* b, T* c, unsigned row_blocks, unsigned k_blocks) {
    const hn::CappedTag<T, 8> v;
    using V = hn::Vec<decltype(v)>;
    constexpr unsigned lanes = unsigned(hn::MaxLanes(v)), vectors = 8 / lanes, rows = 8 / vectors, width = 4 * Parts;
    for (unsigned block_of_rows = 0; block_of_rows < row_blocks; ++block_of_rows)
        for (unsigned first = 0; first < 8; first += rows) {
            T* const to = c + block * block_of_rows + 8 * first;
            V sums[rows][vectors];
            for (unsigned i = 0; i < rows; ++i)
                for (unsigned j = 0; j < vectors; ++j) sums[i][j] = hn::Load(v, to + 8 * i + lanes * j);
            for (unsigned block_of_k = 0; block_of_k < k_blocks; ++block_of_k) {
                const T* const left = a + (block_of_k * row_blocks + block_of_rows) * 8 * width + width * first;
                const T* const right = b + block_of_k * 8 * width;
                IKAT_UNROLLED for (unsigned k = 0; k < width; ++k) {
                    V row[vectors];
                    for (unsigned j = 0; j < vectors; ++j) row[j] = hn::Load(v, right + 8 * k + lanes * j);
                    for (unsigned i = 0; i < rows; ++i) {
                        const V factor = hn::Set(v, left[width * i + k]);
                        for (unsigned j = 0; j < vectors; ++j) sums[i][j] = hn::MulAdd(factor, row[j], sums[i][j]);
                    }
                }
            }
            for (unsigned i = 0; i < rows; ++i)
                for (unsigned j = 0; j < vectors; ++j) hn::Store(sums[i][j], v, to + 8 * i + lanes * j);
        }
}

// ---- sums

/// Rounded to odd: a later rounding to fewer digits is then the same as of x.
HWY_INLINE float to_odd(double x) {
    const float near = float(x);
    const auto bits = std::bit_cast<std::uint32_t>(near);
    const double back = near;
    const bool is_exact = back == x || x != x;
    const double magnitude = x < 0 ? -x : x, near_magnitude = back < 0 ? -back : back;
    const std::uint32_t odd = bits & 1 ? bits : near_magnitude < magnitude ? bits + 1 : bits - 1;
    return std::bit_cast<float>(is_exact ? bits : odd);
}

/// A block of c: of f16 it is one register, else two, of which a lane has adjacent elements.
HWY_INLINE void read_sums(Sum type, std::byte* frame, std::uint32_t even_at, std::uint32_t odd_at, double* to) {
    alignas(64) float sums[block];
    if (type == Sum::F16) {
        widen(lanes_at<std::uint16_t>(frame, even_at), block, sums);
    } else {
        const hn::ScalableTag<float> v;
        const float *const even = lanes_at<float>(frame, even_at), *const odd = lanes_at<float>(frame, odd_at);
        for (unsigned i = 0; i < warp_size; i += unsigned(hn::Lanes(v)))
            hn::StoreInterleaved2(hn::Load(v, even + i), hn::Load(v, odd + i), v, sums + 2 * i);
    }
    widen(sums, block, to);
}

HWY_INLINE void write_sums(Sum type, const double* from, std::byte* frame, std::uint32_t even_at,
                           std::uint32_t odd_at) {
    alignas(64) float sums[block];
    if (type == Sum::F16) {
        alignas(64) std::uint32_t bits[block];
        IKAT_EACH_OF(i, block) sums[i] = to_odd(from[i]);
        narrow_to_halves(sums, bits);
        narrow_to_halves(sums + warp_size, bits + warp_size);
        auto* const d = lanes_at<std::uint16_t>(frame, even_at);
        IKAT_EACH_OF(i, block) d[i] = std::uint16_t(bits[i]);
        return;
    }
    IKAT_EACH_OF(i, block) {  // (Highway's DemoteTo makes infinities finite)
        const auto sum = float(from[i]);
        sums[i] = sum != sum ? sem::canonical_nan<float>() : sum;
    }
    const hn::ScalableTag<float> v;
    float *const even = lanes_at<float>(frame, even_at), *const odd = lanes_at<float>(frame, odd_at);
    for (unsigned i = 0; i < warp_size; i += unsigned(hn::Lanes(v))) {
        hn::Vec<decltype(v)> v0, v1;
        hn::LoadInterleaved2(v, sums + 2 * i, v0, v1);
        hn::Store(v0, v, even + i);
        hn::Store(v1, v, odd + i);
    }
}

/// d = old + sum
HWY_INLINE std::int32_t add_integers(std::int32_t sum, std::int32_t old, bool saturates) {
    const auto wrapped = std::int32_t(std::uint32_t(sum) + std::uint32_t(old));
    const bool overflows = ((sum ^ wrapped) & (old ^ wrapped)) < 0;
    return saturates && overflows ? (old >> 31) ^ 0x7fffffff : wrapped;
}

}  // namespace HWY_NAMESPACE
}  // namespace ikat::emulator
HWY_AFTER_NAMESPACE();
#endif
