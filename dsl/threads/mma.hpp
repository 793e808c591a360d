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
// docs/language.md has the forms, and which target each needs.
#pragma once
#include "codegen/ir/op/matrix.hpp"
#include "dsl/lanes/registers.hpp"
#include "dsl/record/copies.hpp"
#include "dsl/threads/simt.hpp"

namespace ikat {

// Elements of matrices for which C++ has no type.
struct tf32 {};  // float, of which the low 13 bits are ignored; held as float
struct s4 {};    // integers of 4 bits
struct u4 {};
struct b1 {};  // bits

namespace detail {

/// How a matrix's element is called in PTX, and the host's type of a register that holds some.
template <ir::MatrixElement element_, class Register>
struct MatrixElementIs {
    static constexpr bool known = true;
    static constexpr ir::MatrixElement element = element_;
    using register_type = Register;
};
template <class T>
struct MatrixElementOf {
    static constexpr bool known = false;
    static constexpr ir::MatrixElement element = ir::MatrixElement::F32;
    using register_type = float;
};
#define IKAT_MATRIX_ELEMENT(T, element, Register) \
    template <>                                   \
    struct MatrixElementOf<T> : MatrixElementIs<ir::MatrixElement::element, Register> {};
IKAT_MATRIX_ELEMENT(half, F16, half2)
IKAT_MATRIX_ELEMENT(bfloat16, BF16, bfloat16x2)
IKAT_MATRIX_ELEMENT(tf32, TF32, float)
IKAT_MATRIX_ELEMENT(double, F64, double)
IKAT_MATRIX_ELEMENT(std::int8_t, S8, std::uint32_t)
IKAT_MATRIX_ELEMENT(std::uint8_t, U8, std::uint32_t)
IKAT_MATRIX_ELEMENT(s4, S4, std::uint32_t)
IKAT_MATRIX_ELEMENT(u4, U4, std::uint32_t)
IKAT_MATRIX_ELEMENT(b1, B1, std::uint32_t)
IKAT_MATRIX_ELEMENT(e4m3, E4M3, std::uint32_t)
IKAT_MATRIX_ELEMENT(e5m2, E5M2, std::uint32_t)
IKAT_MATRIX_ELEMENT(float, F32, float)
IKAT_MATRIX_ELEMENT(std::int32_t, S32, std::int32_t)
#undef IKAT_MATRIX_ELEMENT

template <int m, int n, int k, class A, class B, class Sum>
constexpr ir::MatrixForm matrix_form() {
    ir::MatrixForm form{
        .shape = std::uint8_t(std::size(ir::matrix_shapes)),
        .a = MatrixElementOf<A>::element,
        .b = MatrixElementOf<B>::element,
        .sum = MatrixElementOf<Sum>::element,
        .variant = std::is_same_v<A, b1> ? ir::MatrixForm::Variant::Xor : ir::MatrixForm::Variant::Plain};
    for (std::size_t i = 0; i < std::size(ir::matrix_shapes); ++i)
        if (const auto& at = ir::matrix_shapes[i]; at.m == m && at.n == n && at.k == k) form.shape = std::uint8_t(i);
    return form;
}

/// Whether PTX has such a product; if not, what it has of these elements.
template <class A, class B, class Sum, ir::MatrixForm form>
struct CheckedProduct {
    static constexpr bool exists =
        MatrixElementOf<A>::known && MatrixElementOf<B>::known && MatrixElementOf<Sum>::known && ir::exists(form);
    static constexpr bool of_half = std::is_same_v<A, half>, of_bfloat16 = std::is_same_v<A, bfloat16>;
    static constexpr bool of_tf32 = std::is_same_v<A, tf32>, of_double = std::is_same_v<A, double>;
    static constexpr bool of_8 = std::is_same_v<A, std::int8_t> || std::is_same_v<A, std::uint8_t>;
    static constexpr bool of_4 = std::is_same_v<A, s4> || std::is_same_v<A, u4>, of_bits = std::is_same_v<A, b1>;
    static constexpr bool of_float8 = std::is_same_v<A, e4m3> || std::is_same_v<A, e5m2>;
    static_assert(exists || !of_half,
                  "Mma: of half there are 8, 8, 4, 16, 8, 8 and 16, 8, 16, with sums of half or float");
    static_assert(exists || !of_bfloat16, "Mma: of bfloat16 there are 16, 8, 8 and 16, 8, 16, with sums of float");
    static_assert(exists || !of_tf32, "Mma: of tf32 there are 16, 8, 4 and 16, 8, 8, with sums of float");
    static_assert(exists || !of_double,
                  "Mma: of double there are 8, 8, 4 and, from sm_90 on, 16, 8, 4, 16, 8, 8 and 16, 8, 16, with sums "
                  "of double");
    static_assert(exists || !of_8,
                  "Mma: of std::int8_t and std::uint8_t there are 8, 8, 16, 16, 8, 16 and 16, 8, 32, with sums of "
                  "std::int32_t");
    static_assert(exists || !of_4,
                  "Mma: of s4 and u4 there are 8, 8, 32, 16, 8, 32 and 16, 8, 64, with sums of std::int32_t");
    static_assert(exists || !of_bits,
                  "Mma: of b1 there are 8, 8, 128, 16, 8, 128 and 16, 8, 256, with sums of std::int32_t");
    static_assert(exists || !of_float8,
                  "Mma: of e4m3 and e5m2 there are 16, 8, 16 and 16, 8, 32, with sums of half or float");
    static_assert(exists || of_half || of_bfloat16 || of_tf32 || of_double || of_8 || of_4 || of_bits || of_float8,
                  "Mma: matrices are of half, bfloat16, tf32, double, std::int8_t, std::uint8_t, s4, u4, b1, e4m3 or "
                  "e5m2");
};

enum class MatrixPart { A, B, Sum };

/// One of a product's matrices: its element, a lane's registers, and how many elements each of them has.
template <class Product, MatrixPart part_>
struct FragmentRegisters {
    static constexpr MatrixPart part = part_;
    using product = Product;
    static constexpr ir::MatrixForm form = Product::form;
    static constexpr ir::MatrixElement element = part == MatrixPart::A   ? form.a
                                                 : part == MatrixPart::B ? form.b
                                                                         : form.sum;
    static constexpr int registers = int(part == MatrixPart::A   ? ir::registers_of_a(form)
                                         : part == MatrixPart::B ? ir::registers_of_b(form)
                                                                 : ir::registers_of_sum(form));
    static constexpr int each = ir::matrix_bits(element) == 64 ? 1 : 32 / int(ir::matrix_bits(element));
    static constexpr std::uint8_t flags = 0;
};

/// Where its elements are (codegen/ir/op/matrix.hpp).
template <class Product, MatrixPart part>
struct FragmentLayout : FragmentRegisters<Product, part> {
    using Base = FragmentRegisters<Product, part>;
    using Base::each, Base::form;

    /// Of element i.
    static auto row(int i) {
        if constexpr (part == MatrixPart::B)
            return along(i, i / each);
        else if constexpr (part == MatrixPart::A)
            return lane_id() / 4 + 8 * (i / each % tall);
        else
            return lane_id() / 4 + 8 * (i / 2);
    }
    static auto column(int i) {
        if constexpr (part == MatrixPart::B)
            return lane_id() / 4 + 0;
        else if constexpr (part == MatrixPart::A)
            return along(i, i / each / tall);
        else
            return lane_id() % 4 * 2 + i % 2;
    }

private:
    // The registers of A for the same columns: of rows g and, where there are 16, g + 8.
    static constexpr int tall = form.extents().m / 8;
    /// The place in the dimension that A and B share.
    static auto along(int i, int chunk) { return lane_id() % 4 * each + (4 * each * chunk + i % each); }
};

/// The same of a quad pair, which has a product for itself. Transposed: its lanes hold A by columns, B by rows.
template <class Product, MatrixPart part, bool transposed = false>
struct QuadPairLayout : FragmentRegisters<Product, part> {
    using Base = FragmentRegisters<Product, part>;
    static constexpr std::uint8_t flags = !transposed             ? 0
                                          : part == MatrixPart::A ? ir::MatrixForm::TransposesA
                                                                  : ir::MatrixForm::TransposesB;

    static auto row(int i) {
        if constexpr (part == MatrixPart::B)
            return along(i);
        else
            return across(i);
    }
    static auto column(int i) {
        if constexpr (part == MatrixPart::B)
            return across(i);
        else
            return along(i);
    }

private:
    static constexpr bool of_words = Base::each == 1;  // sums of 32 bits
    static auto upper() { return lane_id() / 16 * 4; }
    /// The place in a row of A, C and D, in a column of B.
    static auto along(int i) {
        if constexpr (of_words)
            return (lane_id() & 2) + ((i & 4) + (i & 1));
        else if constexpr (transposed)
            return lane_id() % 4 + 0;
        else
            return constant<std::uint32_t>(i);
    }
    /// Which row or column this is.
    static auto across(int i) {
        if constexpr (of_words)
            return upper() + ((lane_id() & 1) + (i & 2));
        else if constexpr (transposed)
            return upper() + i;
        else
            return upper() + lane_id() % 4;
    }
};

}  // namespace detail

/// A lane's elements of one of the matrices of a product, Mma<...>::A, B or C, as its registers.
template <class Layout, class Register>
class Fragment : public Regs<Register, std::size_t(Layout::registers)> {
    using Base = Regs<Register, std::size_t(Layout::registers)>;

public:
    using layout = Layout;
    /// Declared, not assigned.
    explicit Fragment(const trace::Where& where = trace::Where::current()) : Base(where) {}
    /// One value for all registers, or lanes, as for Regs.
    template <class V>
    requires(!std::same_as<std::remove_cvref_t<V>, Fragment> && std::constructible_from<Base, V, const trace::Where&> &&
             !Lanewise<V>) explicit Fragment(V&& v, const trace::Where& where = trace::Where::current())
        : Base(std::forward<V>(v), where) {}
    template <Lanewise V>
    requires(!std::same_as<std::remove_cvref_t<V>, Fragment>)
        Fragment(V&& v, const trace::Where& where = trace::Where::current())
        : Base(std::forward<V>(v), where) {}
    Fragment(const Fragment&) = default;
    Fragment(Fragment&&) = default;

    /// All registers, as for Regs.
    Fragment& operator=(const typename Base::Incoming& v) {
        Base::operator=(v);
        return *this;
    }
    Fragment& operator=(const Fragment&) requires(!Lanewise<Base>) = default;
    template <class V>
    requires std::same_as<V, const Fragment> Fragment& operator=(V& other) {
        Base::operator=(static_cast<const Base&>(other));
        return *this;
    }

    /// The elements of each lane, and of each register.
    static constexpr int elements = Layout::registers * Layout::each, elements_per_register = Layout::each;

    /// The row, in the matrix, of element i, a host number, in the executing lane: a u32.
    static auto row(int i) { return Layout::row(trace::checked_element(i, elements)); }
    /// Its column.
    static auto column(int i) { return Layout::column(trace::checked_element(i, elements)); }
};

/// A product of an m x k matrix of T and a k x n matrix of T2, added to an m x n matrix of Sum.
template <int m_, int n_, int k_, class T, class Sum, class T2 = T>
struct Mma : private detail::CheckedProduct<T, T2, Sum, detail::matrix_form<m_, n_, k_, T, T2, Sum>()> {
    static constexpr int m = m_, n = n_, k = k_;
    static constexpr ir::MatrixForm form = detail::matrix_form<m, n, k, T, T2, Sum>();

    using A = Fragment<detail::FragmentLayout<Mma, detail::MatrixPart::A>,
                       typename detail::MatrixElementOf<T>::register_type>;
    using B = Fragment<detail::FragmentLayout<Mma, detail::MatrixPart::B>,
                       typename detail::MatrixElementOf<T2>::register_type>;
    using C = Fragment<detail::FragmentLayout<Mma, detail::MatrixPart::Sum>,
                       typename detail::MatrixElementOf<Sum>::register_type>;
};

/// Four such products, each by a quad pair: product q by lanes 4q to 4q + 3 and 4q + 16 to 4q + 19. A lane's fragments,
/// and the rows and columns of their elements, are of its own product.
template <class Sum>
struct Mma<8, 8, 4, half, Sum, half>
    : private detail::CheckedProduct<half, half, Sum, detail::matrix_form<8, 8, 4, half, half, Sum>()> {
    static constexpr int m = 8, n = 8, k = 4, products = 4;
    static constexpr ir::MatrixForm form = detail::matrix_form<m, n, k, half, half, Sum>();
    /// The product of the executing lane, 0 to 3.
    static auto product() { return lane_id() / 4 % 4; }

    using A = Fragment<detail::QuadPairLayout<Mma, detail::MatrixPart::A>, half2>;
    using AByColumns = Fragment<detail::QuadPairLayout<Mma, detail::MatrixPart::A, true>, half2>;
    using B = Fragment<detail::QuadPairLayout<Mma, detail::MatrixPart::B>, half2>;
    using BByRows = Fragment<detail::QuadPairLayout<Mma, detail::MatrixPart::B, true>, half2>;
    using C = Fragment<detail::QuadPairLayout<Mma, detail::MatrixPart::Sum>,
                       typename detail::MatrixElementOf<Sum>::register_type>;
};

namespace detail {

template <class V>
struct IsFragment : std::false_type {};
template <class Layout, class Register>
struct IsFragment<Fragment<Layout, Register>> : std::true_type {};

template <class A, class B>
constexpr bool check_factors() {
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
    if constexpr (check_factors<A, B>()) {
        using Product = typename A::layout::product;
        using C = typename Product::C;
        constexpr std::size_t count = C::layout::registers;
        LaneValues<typename C::element_type, LaneShape<count>> out;
        const IncomingLanes<typename C::element_type, LaneShape<count>> sums(std::forward<V>(c), where);
        trace::require_whole_warps();
        trace::Recorded operands[A::layout::registers + B::layout::registers + count], *next = operands;
        append_registers(a, next), append_registers(b, next);
        for (const trace::Recorded& sum : sums.values().recorded()) *next++ = sum;
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
        static_assert(!transposed || sizeof(E) == 2,
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
/// The same of the transposes, of 16-bit elements: a lane gets rows 2 * (lane % 4) and the next of column lane / 4.
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
