// SPDX-License-Identifier: Apache-2.0
// Products of matrices by a warp (matrix.hpp).
//
// The PTX ISA leaves the order and the width of the sums to the hardware. Here products are exact, and c and the
// products are added in f64, in the order of k, and rounded to the type of d once; so the result is the same on every
// instruction set. Products and sums of f64 are fused. Integers are exact: they wrap or, with .satfinite, saturate
// once, at the end. The 13 low bits of a tf32 are ignored. A NaN is canonical.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/emulator/ops/matrix.cpp"
#include <hwy/foreach_target.h>
// after foreach_target
#include <cmath>

#include "runtime/emulator/ops/lanes.inl"
#include "runtime/emulator/ops/matrix.hpp"

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

inline constexpr unsigned most_registers_of_a = 8, most_parts = 8, block = 64;  // elements of c in a block of 8 x 8

template <class T>
struct alignas(64) Factors {
    T a[most_registers_of_a * most_parts * warp_size / (sizeof(T) / 4)];
    T b[most_registers_of_a / 2 * most_parts * warp_size / (sizeof(T) / 4)];
    T c[2 * block];
};

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

/// Reads a and b, whose registers are in the op's list behind those of d, and adds their product to c.
template <class T, unsigned Parts>
HWY_NOINLINE void multiply_parts(const MatrixProduct& product, const ListedOperands& of, std::byte* frame,
                                 Factors<T>& factors) {
    constexpr unsigned held = warp_size * Parts;
    const unsigned first = product.registers_of(product.d);
    alignas(64) float wide[most_registers_of_a / 2 * held], turned[held];
    float *a = wide, *b = wide;
    if constexpr (sizeof(T) == 4) a = factors.a, b = factors.b;
    for (unsigned r = 0; r < product.a_registers(); ++r)
        widen_elements<Parts>(product.a, lanes_at<std::uint32_t>(frame, of.offset(first + r)), a + r * held);
    if constexpr (sizeof(T) == 8) widen(wide, product.a_registers() * held, factors.a);
    for (unsigned r = 0; r < product.b_registers(); ++r) {
        alignas(64) std::uint32_t cells[warp_size];
        turn(lanes_at<std::uint32_t>(frame, of.offset(first + product.a_registers() + r)), cells);
        widen_elements<Parts>(product.b, cells, turned);
        for (unsigned i = 0; i < 4; ++i) turn_parts<Parts>(turned + 8 * Parts * i, b + r * held + 8 * Parts * i);
    }
    if constexpr (sizeof(T) == 8) widen(wide, product.b_registers() * held, factors.b);
    multiply_blocks<T, Parts>(factors.a, factors.b, factors.c, product.row_blocks, product.k_blocks);
}

template <class T>
HWY_INLINE void multiply(const MatrixProduct& product, const ListedOperands& of, std::byte* frame,
                         Factors<T>& factors) {
    switch (element_bits(product.a)) {
        case 32: return multiply_parts<T, 1>(product, of, frame, factors);
        case 16: return multiply_parts<T, 2>(product, of, frame, factors);
        case 8: return multiply_parts<T, 4>(product, of, frame, factors);
        default: return multiply_parts<T, 8>(product, of, frame, factors);
    }
}

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

/// A block of rows of c, of which a lane has two adjacent elements.
HWY_INLINE void gather_sums(Sum type, const ListedOperands& of, unsigned first, unsigned block_of_rows,
                            std::byte* frame, double* to) {
    alignas(64) float sums[block];
    if (type == Sum::F16) {
        widen(lanes_at<std::uint16_t>(frame, of.offset(first + block_of_rows)), block, sums);
    } else {
        const hn::ScalableTag<float> v;
        const float* const even = lanes_at<float>(frame, of.offset(first + 2 * block_of_rows));
        const float* const odd = lanes_at<float>(frame, of.offset(first + 2 * block_of_rows + 1));
        for (unsigned i = 0; i < warp_size; i += unsigned(hn::Lanes(v)))
            hn::StoreInterleaved2(hn::Load(v, even + i), hn::Load(v, odd + i), v, sums + 2 * i);
    }
    widen(sums, block, to);
}

HWY_INLINE void scatter_sums(Sum type, const ListedOperands& of, unsigned block_of_rows, std::byte* frame,
                             const double* from) {
    alignas(64) float sums[block];
    if (type == Sum::F16) {
        alignas(64) std::uint32_t bits[block];
        IKAT_EACH_OF(i, block) sums[i] = to_odd(from[i]);
        narrow_to_halves(sums, bits);
        narrow_to_halves(sums + warp_size, bits + warp_size);
        auto* const d = lanes_at<std::uint16_t>(frame, of.offset(block_of_rows));
        IKAT_EACH_OF(i, block) d[i] = std::uint16_t(bits[i]);
        return;
    }
    IKAT_EACH_OF(i, block) {  // (Highway's DemoteTo makes infinities finite)
        const auto sum = float(from[i]);
        sums[i] = sum != sum ? sem::canonical_nan<float>() : sum;
    }
    const hn::ScalableTag<float> v;
    float* const even = lanes_at<float>(frame, of.offset(2 * block_of_rows));
    float* const odd = lanes_at<float>(frame, of.offset(2 * block_of_rows + 1));
    for (unsigned i = 0; i < warp_size; i += unsigned(hn::Lanes(v))) {
        hn::Vec<decltype(v)> v0, v1;
        hn::LoadInterleaved2(v, sums + 2 * i, v0, v1);
        hn::Store(v0, v, even + i);
        hn::Store(v1, v, odd + i);
    }
}

HWY_NOINLINE void product_of_floats(const MicroOp* op, Warp* w, std::byte* frame) {
    const MatrixProduct product = MatrixProduct::of(op->y);
    const ListedOperands of{w->lists + op->d};
    Factors<double> factors;
    const unsigned c = product.registers_of(product.d) + product.a_registers() + product.b_registers();
    for (unsigned i = 0; i < product.row_blocks; ++i) gather_sums(product.c, of, c, i, frame, factors.c + block * i);
    multiply(product, of, frame, factors);
    for (unsigned i = 0; i < product.row_blocks; ++i) scatter_sums(product.d, of, i, frame, factors.c + block * i);
}

/// Products and sums of integers of 8 bits are below 2^24: exact in f32.
HWY_NOINLINE void product_of_integers(const MicroOp* op, Warp* w, std::byte* frame) {
    const MatrixProduct product = MatrixProduct::of(op->y);
    const ListedOperands of{w->lists + op->d};
    Factors<float> factors;
    std::memset(factors.c, 0, sizeof factors.c);
    multiply(product, of, frame, factors);
    const unsigned count = product.registers_of(Sum::S32);
    const unsigned first = count + product.a_registers() + product.b_registers();
    std::int32_t before[4][warp_size];  // a register of d may be another one of c
    for (unsigned r = 0; r < count; ++r) std::memcpy(before[r], frame + of.offset(first + r), sizeof before[r]);
    for (unsigned r = 0; r < count; ++r) {
        const std::int32_t* const c = before[r];
        auto* const d = lanes_at<std::int32_t>(frame, of.offset(r));
        const float* const sums = factors.c + block * (r / 2) + r % 2;
        IKAT_EACH_LANE(i) {
            const auto sum = std::int32_t(sums[2 * i]), old = c[i];
            const auto wrapped = std::int32_t(std::uint32_t(sum) + std::uint32_t(old));
            const bool overflows = ((sum ^ wrapped) & (old ^ wrapped)) < 0;
            d[i] = product.saturates && overflows ? (old >> 31) ^ 0x7fffffff : wrapped;
        }
    }
}

HWY_NOINLINE void product_of_bits(const MicroOp* op, Warp* w, std::byte* frame) {
    const MatrixProduct product = MatrixProduct::of(op->y);
    const ListedOperands of{w->lists + op->d};
    const unsigned count = product.registers_of(Sum::S32), first = count + product.a_registers();
    const auto at = [&](unsigned i) HWY_ATTR { return lanes_at<std::uint32_t>(frame, of.offset(i)); };
    std::uint32_t sums[2 * block] = {};
    for (unsigned k = 0; k < product.k_blocks; ++k)
        for (unsigned i = 0; i < 8u * product.row_blocks; ++i) {
            const std::uint32_t* const a = at(count + k * product.row_blocks + i / 8) + 4 * (i % 8);
            const std::uint32_t* const b = at(first + k);
            for (unsigned n = 0; n < 8; ++n)
                for (unsigned quarter = 0; quarter < 4; ++quarter) {
                    const std::uint32_t x = a[quarter], y = b[4 * n + quarter];
                    sums[8 * i + n] += std::uint32_t(std::popcount(product.is_and ? x & y : x ^ y));
                }
        }
    const auto sum_at = [&](unsigned r, unsigned i) -> std::uint32_t& { return sums[block * (r / 2) + 2 * i + r % 2]; };
    for (unsigned r = 0; r < count; ++r)
        for (unsigned i = 0; i < warp_size; ++i) sum_at(r, i) += at(first + product.b_registers() + r)[i];
    for (unsigned r = 0; r < count; ++r)  // when all of c is read: a register of d may be another one of c
        for (unsigned i = 0; i < warp_size; ++i) at(r)[i] = sum_at(r, i);
}

inline constexpr bool has_fma = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2;

HWY_NOINLINE void product_of_doubles(const MicroOp* op, Warp* w, std::byte* frame) {
    const MatrixProduct product = MatrixProduct::of(op->y);
    const ListedOperands of{w->lists + op->d};
    const auto at = [&](unsigned i) HWY_ATTR { return lanes_at<double>(frame, of.offset(i)); };
    Factors<double> factors;
    const unsigned count = product.registers_of(Sum::F64);
    for (unsigned r = 0; r < product.a_registers(); ++r)
        std::memcpy(factors.a + r * warp_size, at(count + r), warp_size * sizeof(double));
    const unsigned b = count + product.a_registers(), c = b + product.b_registers();
    for (unsigned r = 0; r < product.b_registers(); ++r)
        for (unsigned i = 0; i < warp_size; ++i) factors.b[r * warp_size + i % 4 * 8 + i / 4] = at(b + r)[i];
    for (unsigned r = 0; r < count; ++r)
        for (unsigned i = 0; i < warp_size; ++i) factors.c[block * (r / 2) + 2 * i + r % 2] = at(c + r)[i];
    if constexpr (has_fma) {
        multiply_blocks<double, 1>(factors.a, factors.b, factors.c, product.row_blocks, product.k_blocks);
    } else {
        for (unsigned k = 0; k < 4u * product.k_blocks; ++k)
            for (unsigned i = 0; i < 8u * product.row_blocks; ++i) {
                const double left = factors.a[(k / 4 * product.row_blocks + i / 8) * warp_size + 4 * (i % 8) + k % 4];
                for (unsigned n = 0; n < 8; ++n)
                    factors.c[8 * i + n] = std::fma(left, factors.b[8 * k + n], factors.c[8 * i + n]);
            }
    }
    for (unsigned r = 0; r < count; ++r)
        for (unsigned i = 0; i < warp_size; ++i) {
            const double sum = factors.c[block * (r / 2) + 2 * i + r % 2];
            at(r)[i] = sum != sum ? sem::canonical_nan<double>() : sum;
        }
}

/// m8n8k4 of f16 is four products, one by the lanes 4 q to 4 q + 3 and the same 16 further, which have the numbers 0 to
/// 7 below. A thread has a row of a or, with columns, half of one; of b likewise. Of c and d it has a row if it is f16;
/// if it is f32, two elements of two rows, twice.
HWY_NOINLINE void product_of_quads(const MicroOp* op, Warp* w, std::byte* frame) {
    const MatrixProduct product = MatrixProduct::of(op->y);
    const ListedOperands of{w->lists + op->d};
    const unsigned a = product.registers_of(product.d), b = a + 2, c = b + 2;
    const auto cells = [&](unsigned i) HWY_ATTR { return lanes_at<std::uint32_t>(frame, of.offset(i)); };
    const auto half_at = [&](unsigned first, unsigned i, unsigned lane) HWY_ATTR {
        return half::from_bits(std::uint16_t(cells(first + i / 2)[lane] >> 16 * (i % 2)));
    };
    double left[4][8][4], right[4][4][8], sums[4][block];
    for (unsigned quad = 0; quad < 4; ++quad)
        for (unsigned thread = 0; thread < 8; ++thread) {
            const unsigned lane = 4 * quad + thread % 4 + 16 * (thread / 4), high = thread & 4;
            for (unsigned i = 0; i < 4; ++i) {
                const double x = double(float(half_at(a, i, lane))), y = double(float(half_at(b, i, lane)));
                (product.a_columns ? left[quad][high + i][thread % 4] : left[quad][thread][i]) = x;
                (product.b_rows ? right[quad][thread % 4][high + i] : right[quad][i][thread]) = y;
            }
            for (unsigned i = 0; i < 8; ++i)
                sums[quad][place_in_quads(product.c, thread, i)] =
                    product.c == Sum::F16 ? double(float(half_at(c, i, lane)))
                                          : double(std::bit_cast<float>(cells(c + i)[lane]));
        }
    for (unsigned quad = 0; quad < 4; ++quad)
        for (unsigned i = 0; i < 8; ++i)
            for (unsigned k = 0; k < 4; ++k)
                for (unsigned n = 0; n < 8; ++n) sums[quad][8 * i + n] += left[quad][i][k] * right[quad][k][n];
    for (unsigned quad = 0; quad < 4; ++quad)
        for (unsigned thread = 0; thread < 8; ++thread) {
            const unsigned lane = 4 * quad + thread % 4 + 16 * (thread / 4);
            for (unsigned i = 0; i < 8; ++i) {
                const double sum = sums[quad][place_in_quads(product.d, thread, i)];
                if (product.d == Sum::F32) {
                    cells(i)[lane] =
                        std::bit_cast<std::uint32_t>(sum != sum ? sem::canonical_nan<float>() : float(sum));
                    continue;
                }
                const std::uint32_t bits = sem::convert<half>(to_odd(sum), Rounding::Nearest).bits;
                std::uint32_t& cell = cells(i / 2)[lane];
                cell = i % 2 ? (cell & 0xffff) | bits << 16 : (cell & 0xffff0000) | bits;
            }
        }
}

template <ProductKind Kind, bool Checked>
IKAT_HANDLER(matrix_product) {
    if (!whole_warp(op, w, mask)) return nullptr;
    if constexpr (Checked) matrix_definedness(op, w);
    switch (Kind) {
        case ProductKind::Floats: product_of_floats(op, w, frame); break;
        case ProductKind::Doubles: product_of_doubles(op, w, frame); break;
        case ProductKind::Integers: product_of_integers(op, w, frame); break;
        case ProductKind::Bits: product_of_bits(op, w, frame); break;
        case ProductKind::Quads: product_of_quads(op, w, frame); break;
    }
    IKAT_NEXT;
}

Handler choose_matrix_product(ProductKind kind, bool checked) {
    using enum ProductKind;
    switch (kind) {
        case Floats: return checked ? matrix_product<Floats, true> : matrix_product<Floats, false>;
        case Doubles: return checked ? matrix_product<Doubles, true> : matrix_product<Doubles, false>;
        case Integers: return checked ? matrix_product<Integers, true> : matrix_product<Integers, false>;
        case Bits: return checked ? matrix_product<Bits, true> : matrix_product<Bits, false>;
        case Quads: return checked ? matrix_product<Quads, true> : matrix_product<Quads, false>;
    }
    return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace ikat::emulator
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ikat::emulator {
HWY_EXPORT(choose_matrix_product);

Handler select_matrix_product(ProductKind kind) { return HWY_DYNAMIC_DISPATCH(choose_matrix_product)(kind, false); }
Handler select_checked_matrix_product(ProductKind kind) {
    return HWY_DYNAMIC_DISPATCH(choose_matrix_product)(kind, true);
}
}  // namespace ikat::emulator
#endif
