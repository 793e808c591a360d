// SPDX-License-Identifier: Apache-2.0
// Which elements of a matrix a lane holds in its registers, for products on tensor cores (mma.hpp).
#pragma once
#include "codegen/ir/op/forms/matrices.hpp"
#include "dsl/lanes/registers.hpp"
#include "dsl/record/async/copies.hpp"
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
        .extent = std::uint8_t(std::size(ir::matrix_shapes)),
        .a = MatrixElementOf<A>::element,
        .b = MatrixElementOf<B>::element,
        .sum = MatrixElementOf<Sum>::element,
        .variant = std::is_same_v<A, b1> ? ir::MatrixForm::Variant::Xor : ir::MatrixForm::Variant::Plain};
    for (std::size_t i = 0; i < std::size(ir::matrix_shapes); ++i)
        if (const auto& at = ir::matrix_shapes[i]; at.m == m && at.n == n && at.k == k) form.extent = std::uint8_t(i);
    return form;
}

/// Whether PTX has such a product; if not, what it has of these elements.
template <class A, class B, class Sum, ir::MatrixForm form>
struct CheckedProduct {
    static constexpr bool exists =
        MatrixElementOf<A>::known && MatrixElementOf<B>::known && MatrixElementOf<Sum>::known && form.exists();
    static constexpr bool of_half = std::is_same_v<A, half>, of_bfloat16 = std::is_same_v<A, bfloat16>;
    static constexpr bool of_tf32 = std::is_same_v<A, tf32>, of_double = std::is_same_v<A, double>;
    static constexpr bool of_8 = std::is_same_v<A, std::int8_t> || std::is_same_v<A, std::uint8_t>;
    static constexpr bool of_4 = std::is_same_v<A, s4> || std::is_same_v<A, u4>, of_bits = std::is_same_v<A, b1>;
    static constexpr bool of_float8 = std::is_same_v<A, e4m3> || std::is_same_v<A, e5m2>;
    static_assert(exists || !of_half,
                  "Mma: of half there are 8, 8, 4, 16, 8, 8 and 16, 8, 16, with accumulators of half or float");
    static_assert(exists || !of_bfloat16,
                  "Mma: of bfloat16 there are 16, 8, 8 and 16, 8, 16, with accumulators of float");
    static_assert(exists || !of_tf32, "Mma: of tf32 there are 16, 8, 4 and 16, 8, 8, with accumulators of float");
    static_assert(
        exists || !of_double,
        "Mma: of double there are 8, 8, 4 and, from sm_90 on, 16, 8, 4, 16, 8, 8 and 16, 8, 16, with accumulators "
        "of double");
    static_assert(
        exists || !of_8,
        "Mma: of std::int8_t and std::uint8_t there are 8, 8, 16, 16, 8, 16 and 16, 8, 32, with accumulators of "
        "std::int32_t");
    static_assert(exists || !of_4,
                  "Mma: of s4 and u4 there are 8, 8, 32, 16, 8, 32 and 16, 8, 64, with accumulators of std::int32_t");
    static_assert(exists || !of_bits,
                  "Mma: of b1 there are 8, 8, 128, 16, 8, 128 and 16, 8, 256, with accumulators of std::int32_t");
    static_assert(exists || !of_float8,
                  "Mma: of e4m3 and e5m2 there are 16, 8, 16 and 16, 8, 32, with accumulators of half or float");
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
    static constexpr int registers = int(part == MatrixPart::A   ? form.registers_of_a()
                                         : part == MatrixPart::B ? form.registers_of_b()
                                                                 : form.registers_of_sum());
    static constexpr int each = ir::matrix_bits(element) == 64 ? 1 : 32 / int(ir::matrix_bits(element));
    static constexpr std::uint8_t flags = 0;
};

/// The executing thread, and one of a warp or a warpgroup by its number on the host: a layout serves both.
struct ThisThread {
    static auto lane() { return lane_id(); }
    static auto warp() { return warp_id() % 4; }
    static auto number(int i) { return constant<std::uint32_t>(i); }
};
struct ThreadOnHost {
    std::uint32_t thread;
    constexpr std::uint32_t lane() const { return thread % 32; }
    constexpr std::uint32_t warp() const { return thread / 32 % 4; }
    static constexpr std::uint32_t number(int i) { return std::uint32_t(i); }
};

/// Where its elements are (codegen/ir/op/forms/matrices.hpp).
template <class Product, MatrixPart part>
struct FragmentLayout : FragmentRegisters<Product, part> {
    using Base = FragmentRegisters<Product, part>;
    using Base::each, Base::form;

    /// Of element i.
    template <class Thread>
    static constexpr auto row(int i, const Thread& of) {
        if constexpr (part == MatrixPart::B)
            return along(i, i / each, of);
        else if constexpr (part == MatrixPart::A)
            return of.lane() / 4 + 8 * (i / each % tall);
        else
            return of.lane() / 4 + 8 * (i / 2);
    }
    template <class Thread>
    static constexpr auto column(int i, const Thread& of) {
        if constexpr (part == MatrixPart::B)
            return of.lane() / 4 + 0;
        else if constexpr (part == MatrixPart::A)
            return along(i, i / each / tall, of);
        else
            return of.lane() % 4 * 2 + i % 2;
    }

private:
    // The registers of A for the same columns: of rows g and, where there are 16, g + 8.
    static constexpr int tall = form.extents().m / 8;
    /// The place in the dimension that A and B share.
    template <class Thread>
    static constexpr auto along(int i, int chunk, const Thread& of) {
        return of.lane() % 4 * each + (4 * each * chunk + i % each);
    }
};

/// The same of a quad pair, which has a product for itself. Transposed: its lanes hold A by columns, B by rows.
template <class Product, MatrixPart part, bool transposed = false>
struct QuadPairLayout : FragmentRegisters<Product, part> {
    using Base = FragmentRegisters<Product, part>;
    static constexpr std::uint8_t flags = !transposed             ? 0
                                          : part == MatrixPart::A ? ir::MatrixForm::TransposesA
                                                                  : ir::MatrixForm::TransposesB;

    template <class Thread>
    static constexpr auto row(int i, const Thread& of) {
        if constexpr (part == MatrixPart::B)
            return along(i, of);
        else
            return across(i, of);
    }
    template <class Thread>
    static constexpr auto column(int i, const Thread& of) {
        if constexpr (part == MatrixPart::B)
            return across(i, of);
        else
            return along(i, of);
    }

private:
    static constexpr bool of_words = Base::each == 1;  // accumulators of 32 bits
    template <class Thread>
    static constexpr auto upper(const Thread& of) {
        return of.lane() / 16 * 4;
    }
    /// The place in a row of A, C and D, in a column of B.
    template <class Thread>
    static constexpr auto along(int i, const Thread& of) {
        if constexpr (of_words)
            return (of.lane() & 2) + ((i & 4) + (i & 1));
        else if constexpr (transposed)
            return of.lane() % 4 + 0;
        else
            return of.number(i);
    }
    /// Which row or column this is.
    template <class Thread>
    static constexpr auto across(int i, const Thread& of) {
        if constexpr (of_words)
            return upper(of) + ((of.lane() & 1) + (i & 2));
        else if constexpr (transposed)
            return upper(of) + i;
        else
            return upper(of) + of.lane() % 4;
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
    static auto row(int i) { return Layout::row(trace::checked_element(i, elements), detail::ThisThread()); }
    /// Its column.
    static auto column(int i) { return Layout::column(trace::checked_element(i, elements), detail::ThisThread()); }
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

}  // namespace ikat
