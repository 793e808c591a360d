// SPDX-License-Identifier: Apache-2.0
// Products of matrices by the four warps of a warpgroup together, in flight until they are waited for; sm_90a.
//
//     using W = Wgmma<64, 128, 16, bfloat16, float>;      A: 64 x 16, B: 16 x 128; the accumulators are 64 x 128
//     W::C accumulators;                                  each thread's elements, in registers
//     wgmma_fence();
//     for (int k = 0; k < 64; k += W::k)                  a: 64 rows, b: 128 columns of 64 elements, in shared memory
//         wgmma(accumulators, k_major<128>(a[0, k]), k_major<128>(b[0, k]), k > 0);
//     wgmma_commit();
//     wgmma_wait<0>();
//     for (int i = 0; i < W::C::elements; ++i) y(W::C::row(i), W::C::column(i)) = accumulators[i];
//
// From a product to the wait that covers it, its fragments are neither read nor assigned, and the shared memory that
// it reads is not written. docs/language/tensor-cores.md has more.
#pragma once
#include "dsl/record/async/wgmma.hpp"
#include "dsl/threads/mma.hpp"

namespace ikat {

namespace detail {

template <int m, int n, int k, class A, class B, class Sum>
constexpr ir::WgmmaForm wgmma_form() {
    const ir::WgmmaForm form{.columns = std::uint8_t(n > 0 && n <= 256 && n % 8 == 0 ? n / 8 : 0),
                             .a = MatrixElementOf<A>::element,
                             .b = MatrixElementOf<B>::element,
                             .sum = MatrixElementOf<Sum>::element};
    return m == 64 && k == int(form.k()) ? form : ir::WgmmaForm{};
}

/// Whether PTX has such a product; if not, what it has of these elements.
template <class A, class B, class Sum, ir::WgmmaForm form>
struct CheckedWgmma {
    static constexpr bool exists =
        MatrixElementOf<A>::known && MatrixElementOf<B>::known && MatrixElementOf<Sum>::known && form.exists();
    static constexpr bool of_16 = std::is_same_v<A, half> || std::is_same_v<A, bfloat16>;
    static constexpr bool of_tf32 = std::is_same_v<A, tf32>, of_bits = std::is_same_v<A, b1>;
    static constexpr bool of_8 = std::is_same_v<A, std::int8_t> || std::is_same_v<A, std::uint8_t>;
    static constexpr bool of_float8 = std::is_same_v<A, e4m3> || std::is_same_v<A, e5m2>;
    static_assert(
        exists || !of_16,
        "Wgmma: of half and bfloat16 there is 64, n, 16, with n a multiple of 8 up to 256, and accumulators of float, "
        "of half also half");
    static_assert(exists || !of_tf32,
                  "Wgmma: of tf32 there is 64, n, 8, with n a multiple of 8 up to 256, and accumulators of float");
    static_assert(
        exists || !of_float8,
        "Wgmma: of e4m3 and e5m2 there is 64, n, 32, with n a multiple of 8 up to 256, and accumulators of float or "
        "half");
    static_assert(exists || !of_8,
                  "Wgmma: of std::int8_t and std::uint8_t there is 64, n, 32, with n 8, 24 or a multiple of 16 up to "
                  "256, and accumulators of std::int32_t");
    static_assert(exists || !of_bits,
                  "Wgmma: of b1 there is 64, n, 256, with n 8, 24 or a multiple of 16 up to 256, and accumulators of "
                  "std::int32_t");
    static_assert(exists || of_16 || of_tf32 || of_float8 || of_8 || of_bits,
                  "Wgmma: matrices are of half, bfloat16, tf32, e4m3, e5m2, std::int8_t, std::uint8_t or b1");
};

/// Each warp has the rows of A that it would have of a product of 16 rows, and so has it of the accumulators, for each
/// 8 columns.
template <class Product, class OfWarp, MatrixPart part_>
struct WgmmaLayout {
    static constexpr MatrixPart part = part_;
    using product = Product;
    static constexpr ir::MatrixElement element = OfWarp::element;
    static constexpr int registers = part == MatrixPart::A ? OfWarp::registers : int(Product::form.registers_of_sum());
    static constexpr int each = OfWarp::each;

    template <class Thread>
    static constexpr auto row(int i, const Thread& of) {
        return OfWarp::row(in_block(i), of) + of.warp() * 16;
    }
    template <class Thread>
    static constexpr auto column(int i, const Thread& of) {
        return OfWarp::column(in_block(i), of) + (part == MatrixPart::A ? 0 : i / 4 * 8);
    }

private:
    static constexpr int in_block(int i) { return part == MatrixPart::A ? i : i % 4; }
};

}  // namespace detail

/// A product of an m x k matrix of T and a k x n matrix of T2, added to an m x n matrix of Sum; m is 64, and k elements
/// are 32 bytes.
template <int m_, int n_, int k_, class T, class Sum, class T2 = T>
struct Wgmma : private detail::CheckedWgmma<T, T2, Sum, detail::wgmma_form<m_, n_, k_, T, T2, Sum>()> {
    static constexpr int m = m_, n = n_, k = k_;
    static constexpr ir::WgmmaForm form = detail::wgmma_form<m, n, k, T, T2, Sum>();

private:
    using OfWarp = Mma<16, 8, k, T, Sum, T2>;  // of 16 rows: its fragments are those of each warp

public:
    using A = Fragment<detail::WgmmaLayout<Wgmma, typename OfWarp::A::layout, detail::MatrixPart::A>,
                       typename detail::MatrixElementOf<T>::register_type>;
    using C = Fragment<detail::WgmmaLayout<Wgmma, typename OfWarp::C::layout, detail::MatrixPart::Sum>,
                       typename detail::MatrixElementOf<Sum>::register_type>;
};

/// A matrix in shared memory, as its descriptor. `mn_major`: its rows, or the columns of B, are contiguous.
template <bool mn_major_, bool negated_ = false>
class SharedMatrix {
public:
    static constexpr bool mn_major = mn_major_, negated = negated_;
    explicit SharedMatrix(const trace::Recorded& descriptor) : descriptor_(descriptor) {}

    /// The matrix this many bytes further on, a host or device number, a multiple of 16. Within rows that are swizzled,
    /// 32 bytes further on is the next k.
    template <Operand V>
    SharedMatrix offset(V&& bytes, const trace::Where& where = trace::Where::current()) const {
        if constexpr (DeviceValue<V>) {
            const auto pieces =
                cast<std::uint64_t>(Leaf<std::uint32_t>(Incoming<std::uint32_t>(bytes, where).value()) >> 4u);
            return SharedMatrix(trace::committed((descriptor() + pieces).recorded()));
        } else {
            const std::int64_t pieces = trace::checked_offset(std::int64_t(bytes), where) / 16;
            return SharedMatrix(trace::committed((descriptor() + std::uint64_t(pieces)).recorded()));
        }
    }
    /// For products that are subtracted.
    auto operator-() const { return SharedMatrix<mn_major, !negated>(descriptor_); }

    Leaf<std::uint64_t> descriptor() const { return Leaf<std::uint64_t>(descriptor_); }

private:
    trace::Recorded descriptor_;
};

namespace detail {

template <int swizzle, class P>
constexpr bool check_shared_matrix() {
    static_assert(swizzle == 0 || swizzle == 32 || swizzle == 64 || swizzle == 128,
                  "matrices are swizzled within 32, 64 or 128 bytes, or with 0 not at all");
    static_assert(is_element_place<P>,
                  "k_major<swizzle>(s[i]), mn_major<swizzle>(s[i]): a place is an element of a Shared array");
    return is_element_place<P>;
}

template <class V>
struct IsSharedMatrix : std::false_type {};
template <bool mn_major, bool negated>
struct IsSharedMatrix<SharedMatrix<mn_major, negated>> : std::true_type {};

template <class V>
constexpr bool is_wgmma_fragment = false;
template <class Product, class OfWarp, MatrixPart part, class Register>
constexpr bool is_wgmma_fragment<Fragment<WgmmaLayout<Product, OfWarp, part>, Register>> = true;

template <class C, class A, class B>
constexpr bool check_wgmma() {
    constexpr bool matrices = is_wgmma_fragment<C> && IsSharedMatrix<B>::value;
    constexpr bool from_shared = IsSharedMatrix<A>::value, from_registers = is_wgmma_fragment<A>;
    static_assert(matrices && (from_shared || from_registers),
                  "wgmma(accumulators, a, b): accumulators are a W::C of a Wgmma, b a k_major<>(s[i]) or "
                  "mn_major<>(s[i]), and a one of these, or a W::A");
    if constexpr (matrices && (from_shared || from_registers)) {
        constexpr bool is_sum = C::layout::part == MatrixPart::Sum;
        static_assert(is_sum, "wgmma(accumulators, a, b): accumulators are a W::C");
        constexpr bool two_bytes = ir::matrix_bits(C::layout::product::form.a) == 16;
        constexpr bool transposes = B::mn_major || [] {
            if constexpr (from_shared) return A::mn_major;
            return false;
        }();
        static_assert(two_bytes || !transposes,
                      "wgmma(accumulators, a, b): only matrices of 16-bit elements can be mn_major");
        if constexpr (from_registers)
            static_assert(std::is_same_v<A, typename C::layout::product::A>,
                          "wgmma(accumulators, a, b): the fragments are of different products");
        return is_sum && (two_bytes || !transposes);
    }
    return false;
}

template <class C, class A, class B>
constexpr ir::WgmmaForm form_of(bool saturates) {
    using Form = ir::WgmmaForm;
    Form form = C::layout::product::form;
    int flags =
        (B::mn_major ? Form::TransposesB : 0) | (B::negated ? Form::NegatesB : 0) | (saturates ? Form::Saturates : 0);
    if constexpr (IsSharedMatrix<A>::value)
        flags |= (A::mn_major ? Form::TransposesA : 0) | (A::negated ? Form::NegatesA : 0);
    else
        flags |= Form::ARegisters;
    form.flags = std::uint8_t(flags);
    return form;
}

template <bool saturates, class C, class A, class B, class P>
void warpgroup_product(const C& accumulators, const A& a, const B& b, P&& adds, const trace::Where& where) {
    if constexpr (check_wgmma<C, A, B>()) {
        constexpr ir::WgmmaForm known = form_of<C, A, B>(saturates);
        static_assert(
            known.exists(),
            "wgmma(accumulators, a, b): matrices of 16-bit elements and of floats have signs, and accumulators "
            "of integers saturate");
        ir::WgmmaForm form = known;
        trace::Recorded operands[3], *next = operands;
        if constexpr (IsSharedMatrix<A>::value) *next++ = a.descriptor().recorded();
        *next++ = b.descriptor().recorded();
        if constexpr (DeviceValue<P>) {
            form.adds = ir::WgmmaForm::Sum::ByPredicate;
            *next++ = Incoming<bool>(std::forward<P>(adds), where).value();
        } else if (!adds) {
            form.adds = ir::WgmmaForm::Sum::Overwrites;
        }
        const trace::Variable* factors = nullptr;
        if constexpr (!IsSharedMatrix<A>::value) factors = &a[0].handle();
        trace::wgmma(form, accumulators[0].handle(), factors, {operands, std::uint32_t(next - operands)}, where);
    }
}

}  // namespace detail

/// A matrix of which each row (of A, or column of B) is contiguous: `swizzle` bytes of it, as a TensorMap's box with
/// that swizzle has them, eight rows one after another. `row_step`: bytes from eight rows to the next eight. Without a
/// swizzle, pieces of 16 bytes of eight rows are together, and `k_step` is from one such block to the next along k.
template <int swizzle, class P>
auto k_major(const P& place, std::int64_t row_step = 8 * swizzle, std::int64_t k_step = 0,
             const trace::Where& where = trace::Where::current()) {
    if constexpr (detail::check_shared_matrix<swizzle, P>())
        return SharedMatrix<false>(trace::shared_matrix(place.slot(), {swizzle, k_step, row_step}, "k_major()", where));
    else
        return SharedMatrix<false>({});
}
/// The transpose, of 16-bit elements: for each k, `swizzle` bytes of rows (of A, or columns of B) are contiguous, as a
/// box has them, and eight k follow one another. `row_step`: bytes from those rows to the next; `k_step`: from
/// eight k to the next eight. Without a swizzle, 16 bytes of rows are contiguous.
template <int swizzle, class P>
auto mn_major(const P& place, std::int64_t row_step, std::int64_t k_step = swizzle ? 8 * swizzle : 128,
              const trace::Where& where = trace::Where::current()) {
    if constexpr (detail::check_shared_matrix<swizzle, P>()) {
        const trace::SharedMatrixLayout layout = swizzle ? trace::SharedMatrixLayout{swizzle, row_step, k_step}
                                                         : trace::SharedMatrixLayout{0, k_step, row_step};
        return SharedMatrix<true>(trace::shared_matrix(place.slot(), layout, "mn_major()", where));
    } else {
        return SharedMatrix<true>({});
    }
}

/// Begins accumulators += a * b; with `adds` false, a host bool or a pred that is the same for the warpgroup,
/// accumulators = a * b. All threads of the four warps come to it together. Blocks are multiples of 128 threads. a and
/// b are where k_major() and mn_major() say, and a may be a W::A; -a or -b subtracts. Sums of integers wrap; of floats,
/// the order and rounding of the sum are not specified. Of bits: how many are set in both of a row and a column.
template <class C, class A, class B, Operand P = bool>
void wgmma(C& accumulators, const A& a, const B& b, P&& adds = true,
           const trace::Where& where = trace::Where::current()) {
    detail::warpgroup_product<false>(accumulators, a, b, std::forward<P>(adds), where);
}
/// The same for integers, with sums that are clamped to an i32.
template <class C, class A, class B, Operand P = bool>
void wgmma_saturating(C& accumulators, const A& a, const B& b, P&& adds = true,
                      const trace::Where& where = trace::Where::current()) {
    detail::warpgroup_product<true>(accumulators, a, b, std::forward<P>(adds), where);
}
/// Before the first product, and between any other use of fragments and the product that uses them.
inline void wgmma_fence(const trace::Where& where = trace::Where::current()) {
    trace::effect({.op = ir::Op::WgmmaFence}, {}, where);
}
/// Makes a group of the warpgroup's products since the last one; it may be empty.
inline void wgmma_commit(const trace::Where& where = trace::Where::current()) {
    trace::effect({.op = ir::Op::WgmmaCommit}, {}, where);
}
/// Waits until at most the N last groups are unfinished, 0 to 7.
template <int N>
void wgmma_wait(const trace::Where& where = trace::Where::current()) {
    static_assert(N >= 0 && N < int(ir::max_groups(ir::Op::WgmmaWait)),
                  "wgmma_wait<N>: N is how many groups may be unfinished, 0 to 7");
    trace::wgmma_wait(N, where);
}

}  // namespace ikat
