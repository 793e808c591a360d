// SPDX-License-Identifier: Apache-2.0
// Products of matrices by a warp (matrix.hpp).
//
// The PTX ISA leaves the order and the width of the sums to the hardware. Here products are exact, and c and the
// products are added in f64, in the order of k, and rounded to the type of d once; so the result is the same on every
// instruction set. Products and sums of f64 are fused. Integers are exact: they wrap or, with .satfinite, saturate
// once, at the end. The 13 low bits of a tf32 are ignored. A NaN is canonical.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/emulator/ops/matrix/matrix.cpp"
#include <hwy/foreach_target.h>
// after foreach_target
#include <cmath>

#include "runtime/emulator/ops/matrix/products.inl"

HWY_BEFORE_NAMESPACE();
namespace ikat::emulator {
namespace HWY_NAMESPACE {

inline constexpr unsigned max_registers_of_a = 8, max_parts = 8;

template <class T>
struct alignas(64) Factors {
    T a[max_registers_of_a * max_parts * warp_size / (sizeof(T) / 4)];
    T b[max_registers_of_a / 2 * max_parts * warp_size / (sizeof(T) / 4)];
    T c[2 * block];
};

/// Places the elements of a sparse a, of which `held` has a block of 8 rows after the other, in a dense one.
template <unsigned Parts>
HWY_NOINLINE void place_sparse(const MatrixProduct& product, const std::uint32_t* metadata, const float* held,
                               float* dense) {
    constexpr unsigned width = 4 * Parts, size = 8 * width;  // columns of a block, its elements
    const SparseRows rows = SparseRows::of(product);
    std::fill_n(dense, 2 * product.a_registers() * size, 0.0f);
    for (unsigned r = 0; r < product.a_registers(); ++r)
        for (unsigned i = 0; i < size; ++i) {
            const unsigned lower = r % product.row_blocks, column = r / product.row_blocks * width + i % width;
            const auto [lane, bit] = rows.place(8 * lower + i / width, column / rows.kept, product.selector);
            const unsigned to = rows.column(column, metadata[lane] >> bit & 15);
            dense[(to / width * product.row_blocks + lower) * size + i / width * width + to % width] =
                held[r * size + i];
        }
}

/// Reads a and b, whose registers are in the op's list after those of d, and adds their product to c.
template <class T, unsigned Parts>
HWY_NOINLINE void multiply_parts(const MatrixProduct& product, const ListedOperands& of, std::byte* frame,
                                 Factors<T>& factors) {
    constexpr unsigned held = warp_size * Parts;
    const unsigned first = product.registers_of(product.d);
    alignas(64) float wide[max_registers_of_a * held];
    float *a = wide, *b = wide;
    if constexpr (sizeof(T) == 4) a = factors.a, b = factors.b;
    alignas(64) float sparse[max_registers_of_a / 2 * held];
    for (unsigned r = 0; r < product.a_registers(); ++r)
        widen_elements<Parts>(product.a, lanes_at<std::uint32_t>(frame, of.offset(first + r)),
                              (product.is_sparse ? sparse : a) + r * held);
    if (product.is_sparse) {
        const unsigned end = first + product.a_registers() + product.b_registers() + product.registers_of(product.c);
        place_sparse<Parts>(product, lanes_at<std::uint32_t>(frame, of.offset(end)), sparse, a);
    }
    if constexpr (sizeof(T) == 8) widen(wide, product.row_blocks * product.k_blocks * held, factors.a);
    for (unsigned r = 0; r < product.b_registers(); ++r)
        widen_columns<Parts>(product.b, lanes_at<std::uint32_t>(frame, of.offset(first + product.a_registers() + r)),
                             b + r * held);
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

/// Calls f(even, odd) with the places of a block of c or d, whose registers begin at `first`.
template <class F>
HWY_INLINE void with_block(Sum type, const ListedOperands& of, unsigned first, unsigned i, F f) {
    const unsigned even = first + (type == Sum::F16 ? i : 2 * i);
    f(of.offset(even), of.offset(type == Sum::F16 ? even : even + 1));
}

HWY_NOINLINE void product_of_floats(const MicroOp* op, Warp* w, std::byte* frame) {
    const MatrixProduct product = MatrixProduct::of(op->y);
    const ListedOperands of{w->lists + op->d};
    Factors<double> factors;
    const unsigned c = product.registers_of(product.d) + product.a_registers() + product.b_registers();
    for (unsigned i = 0; i < product.row_blocks; ++i)
        with_block(product.c, of, c, i, [&](std::uint32_t even, std::uint32_t odd) HWY_ATTR {
            read_sums(product.c, frame, even, odd, factors.c + block * i);
        });
    multiply(product, of, frame, factors);
    for (unsigned i = 0; i < product.row_blocks; ++i)
        with_block(product.d, of, 0, i, [&](std::uint32_t even, std::uint32_t odd) HWY_ATTR {
            write_sums(product.d, factors.c + block * i, frame, even, odd);
        });
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
        IKAT_EACH_LANE(i) d[i] = add_integers(std::int32_t(sums[2 * i]), c[i], product.saturates);
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
    if (MatrixProduct::of(op->y).is_sparse)
        if (const auto lane = wrong_metadata(op, w, frame)) {
            fail(w, op, {.code = FaultCode::SparseMetadata, .lane = *lane});
            return nullptr;
        }
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

Behaviour select_matrix_product(ProductKind kind) {
    const auto choose = HWY_DYNAMIC_DISPATCH(choose_matrix_product);
    return {choose(kind, false), {.operation = Op::Mma, .checked = choose(kind, true)}};
}
}  // namespace ikat::emulator
#endif