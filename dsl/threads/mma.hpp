// SPDX-License-Identifier: Apache-2.0
// Products of small matrices on tensor cores, D = A * B + C, by all 32 lanes of a warp together.
//
//     using M = Mma<16, 8, 16, bfloat16, float>;      A: 16 x 16, B: 16 x 8 of bfloat16; C and D: 16 x 8 of float
//     M::A a; M::B b; M::C c(0.0f);                   each lane's elements, in registers
//     a = load_matrix<4>(s[lane_id() % 16, lane_id() / 16 * 8]);        rows of 16 bytes from shared memory
//     b[0] = ...;
//     c = mma(a, b, c);
//     for (int i = 0; i < M::C::elements; ++i) y(M::C::row(i), M::C::column(i)) = c[i];
//
// A fragment is Regs, so expressions of lanes take it: c = mma(a, b, c) * 0.5f. A register holds one element of 32 or
// 64 bits, two of 16 bits (half2, bfloat16x2), or, as a u32, as many smaller ones as it has room for, the first one
// lowest.
// docs/language/tensor-cores.md has the forms, and which target each needs.
#pragma once
#include "dsl/threads/fragments.hpp"

namespace ikat {

namespace detail {

template <class V>
struct IsFragment : std::false_type {};
template <class Layout, class Register>
struct IsFragment<Fragment<Layout, Register>> : std::true_type {};

template <class A, class B>
constexpr bool check_operands() {
    constexpr bool fragments = IsFragment<A>::value && IsFragment<B>::value;
    static_assert(fragments, "mma(a, b, c): a and b are fragments, M::A and M::B of an Mma");
    if constexpr (fragments) {
        constexpr bool right = A::layout::part == MatrixPart::A && B::layout::part == MatrixPart::B;
        static_assert(right, "mma(a, b, c): a is an M::A and b an M::B");
        static_assert(std::is_same_v<typename A::layout::product, typename B::layout::product>,
                      "mma(a, b, c): the fragments are of different products");
        return right;
    }
    return false;
}

template <class F>
void append_registers(const F& fragment, trace::Recorded*& next) {
    for (int r = 0; r < F::layout::registers; ++r)
        if constexpr (F::layout::element == ir::MatrixElement::TF32)
            *next++ = bit_cast<std::uint32_t>(fragment.lane(std::size_t(r))).recorded();
        else
            *next++ = fragment.lane(std::size_t(r)).recorded();
}

template <class A, class B, class V>
auto product(ir::MatrixForm::Variant variant, const A& a, const B& b, V&& c, const trace::Where& where) {
    if constexpr (check_operands<A, B>()) {
        using Product = typename A::layout::product;
        using C = typename Product::C;
        constexpr std::size_t count = C::layout::registers;
        LaneValues<typename C::element_type, LaneShape<count>> out;
        const IncomingLanes<typename C::element_type, LaneShape<count>> accumulators(std::forward<V>(c), where);
        trace::require_whole_warps();
        trace::Recorded operands[A::layout::registers + B::layout::registers + count], *next = operands;
        append_registers(a, next), append_registers(b, next);
        for (const trace::Recorded& sum : accumulators.values().recorded()) *next++ = sum;
        ir::MatrixForm form = Product::form;
        form.flags = A::layout::flags | B::layout::flags;
        if (variant != ir::MatrixForm::Variant::Plain) form.variant = variant;
        const ir::Type type = ir::register_type(form.sum);
        ir::Type types[count];
        trace::Recorded results[count];
        for (ir::Type& of : types) of = type;
        trace::operation({.op = ir::Op::Mma, .type = type, .operand_type = type, .attribute = ir::pack(form)},
                         {operands, std::uint32_t(std::size(operands))}, {types, results, count}, where);
        for (std::size_t r = 0; r < count; ++r) out.set(r, results[r]);
        return out;
    } else {
        return 0;
    }
}

}  // namespace detail

namespace detail {

template <class P>
constexpr bool is_element_place = requires(const P& place) {
    typename P::device_type;
    { place.slot() } -> std::same_as<const trace::Slot&>;
    place.recorded();
};

/// The register with a lane's elements of a row.
template <class E>
using MatrixRegister = std::conditional_t<is_small_float<E> && sizeof(E) == 2, Pair<E>,
                                          std::conditional_t<sizeof(E) == 4, E, std::uint32_t>>;

template <int N, bool transposed, class P>
constexpr bool check_matrices() {
    constexpr bool right = (N == 1 || N == 2 || N == 4) && is_element_place<P>;
    static_assert(N == 1 || N == 2 || N == 4,
                  "load_matrix<N>, store_matrix<N>: one, two or four matrices of 8 x 8 are loaded or stored together");
    static_assert(is_element_place<P>,
                  "load_matrix<N>(s[i]), store_matrix<N>(s[i], v): a place is an element of a Shared array");
    if constexpr (right) {
        using E = typename P::device_type;
        static_assert(sizeof(E) <= 4, "load_matrix<N>(s[i]), store_matrix<N>(s[i], v): elements have at most 32 bits");
        static_assert(!transposed || sizeof(E) == 2 || std::is_same_v<E, std::uint8_t>,
                      "load_matrix_transposed<N>(s[i]), store_matrix_transposed<N>(s[i], v): elements have 16 bits; "
                      "s.as<half>() takes others by halves");
    }
    return right;
}

template <int N, bool transposed, class P, class V>
void store_matrices(const P& place, V&& values, const trace::Where& where) {
    if constexpr (check_matrices<N, transposed, P>()) {
        using Register = MatrixRegister<typename P::device_type>;
        const IncomingLanes<Register, LaneShape<N>> lanes(std::forward<V>(values), where);
        trace::require_whole_warps();
        trace::Recorded words[N], *next = words;
        for (const trace::Recorded& lane : lanes.values().recorded())
            *next++ = bit_cast<std::uint32_t>(Leaf<Register>(lane)).recorded();
        trace::store_matrix(place.slot(), {.count = N, .transposed = transposed}, {words, N}, where);
    }
}

template <int N, bool transposed, class P>
auto load_matrices(const P& place, const trace::Where& where) {
    if constexpr (check_matrices<N, transposed, P>()) {
        using Register = MatrixRegister<typename P::device_type>;
        trace::require_whole_warps();
        trace::Recorded words[N];
        trace::load_matrix(place.slot(), {.count = N, .transposed = transposed}, words, where);
        LaneValues<Register, LaneShape<N>> out;
        for (std::size_t r = 0; r < N; ++r) out.set(r, bit_cast<Register>(Leaf<std::uint32_t>(words[r])).recorded());
        return out;
    } else {
        return 0;
    }
}

}  // namespace detail

/// N matrices (1, 2 or 4) of 8 rows of 16 bytes from shared memory, by all lanes of the warp: register i is of matrix
/// i, whose row r begins at the place of lane 8 i + r, aligned to 16 bytes. The places of other lanes are not
/// used, but on sm_75 they must be valid, too. A lane gets the 4 bytes of row lane / 4 from byte 4 * (lane % 4) on: of
/// half a half2, of float a float, of bytes a u32.
template <int N, class P>
auto load_matrix(const P& place, const trace::Where& where = trace::Where::current()) {
    return detail::load_matrices<N, false>(place, where);
}
/// The same of the transposes, of 16-bit elements: a lane gets rows 2 * (lane % 4) and the next of column lane / 4. Two
/// bytes of a place of bytes count as one element.
template <int N, class P>
auto load_matrix_transposed(const P& place, const trace::Where& where = trace::Where::current()) {
    return detail::load_matrices<N, true>(place, where);
}
/// The reverse of load_matrix: a register of each of N matrices is stored to the rows whose places lanes 0 to 8 N - 1
/// give. Below sm_90, by shuffles and ordinary stores.
template <int N, class P, class V>
void store_matrix(const P& place, V&& values, const trace::Where& where = trace::Where::current()) {
    detail::store_matrices<N, false>(place, std::forward<V>(values), where);
}
/// The same of the transposes, of 16-bit elements.
template <int N, class P, class V>
void store_matrix_transposed(const P& place, V&& values, const trace::Where& where = trace::Where::current()) {
    detail::store_matrices<N, true>(place, std::forward<V>(values), where);
}
/// An 8 x 8 matrix of 16-bit elements transposed: each lane gives and gets two of row lane / 4, from 2 * (lane % 4) on.
template <DeviceValue V>
auto transpose_matrix(V&& v, const trace::Where& where = trace::Where::current()) {
    using T = DeviceTypeOf<V>;
    static_assert(is_pair<T> && sizeof(T) == 4, "transpose_matrix: of half2 or bfloat16x2");
    trace::require_whole_warps();
    const trace::Recorded word = bit_cast<std::uint32_t>(std::forward<V>(v)).recorded();
    return bit_cast<T>(Leaf<std::uint32_t>(trace::exchange(
        {.op = ir::Op::TransposeMatrix, .type = ir::Type::U32, .operand_type = ir::Type::U32}, {&word, 1}, where)));
}

/// a * b + c. All lanes of the warp come to it together. c is a fragment, an expression of lanes, or one value for all.
/// Sums of integers wrap; of floats, the order and rounding of the sum are not specified. Of bits: how many of a row
/// and a column differ.
template <class A, class B, class V>
auto mma(const A& a, const B& b, V&& c, const trace::Where& where = trace::Where::current()) {
    return detail::product(ir::MatrixForm::Variant::Plain, a, b, std::forward<V>(c), where);
}
/// The same for integers, with sums that are clamped to an i32.
template <class A, class B, class V>
auto mma_saturating(const A& a, const B& b, V&& c, const trace::Where& where = trace::Where::current()) {
    if constexpr (detail::IsFragment<A>::value)
        static_assert(A::layout::product::form.sum == ir::MatrixElement::S32 &&
                          A::layout::product::form.a != ir::MatrixElement::B1,
                      "mma_saturating: for products of integers");
    return detail::product(ir::MatrixForm::Variant::Saturates, a, b, std::forward<V>(c), where);
}
/// Of bits: how many are set in both of a row and a column.
template <class A, class B, class V>
auto mma_and(const A& a, const B& b, V&& c, const trace::Where& where = trace::Where::current()) {
    if constexpr (detail::IsFragment<A>::value)
        static_assert(A::layout::element == ir::MatrixElement::B1, "mma_and: for products of b1");
    return detail::product(ir::MatrixForm::Variant::And, a, b, std::forward<V>(c), where);
}

}  // namespace ikat
