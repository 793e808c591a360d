// SPDX-License-Identifier: Apache-2.0
// What becomes of the sums of a matrix product before they are stored: an expression of your own, which is part of the
// product's kernel.
//
//     gemm_tensor_core(device, A.view(m, k), B.view(k, n), C.view(m, n),
//                      epilogue("silu_gated",
//                               [](auto sum, auto at, auto bias, auto gate) {
//                                   return silu(sum + bias[at.column]) * gate[at];
//                               },
//                               bias, gate.view(m, n)));
//
// The function is called while the kernel is captured, for one element of C at a time: `sum` is alpha A B + beta C, an
// f32, and `at` is where the element is. It gives the element in f32, which is converted to the type of C by cast.
// Behind these two come the arguments of epilogue(): numbers, which are the kernel's parameters, and arrays of any
// type, whose elements are read in f32:
//
//     x[at]           an element for each of C: a view (rows, columns), or (matrices, rows, columns)
//     x[at.column]    an element for each column, or for each row, x[at.row]: a Buffer, or a slice of one
//
// Sums of integers are exact in i32 only. Where A and B are i8, epilogue<i32>() has a function of these:
//
//     epilogue<i32>("shifted", [](auto sum, auto at, auto bias) { return (sum + bias[at.column]) >> 4; }, bias)
//
// Then `sum` is an i32, elements of arrays of integers are read in i32, those of others and of a TensorView in f32, and
// the function gives an i32, or an f32, of which cast takes the integer toward zero.
//
// On the device it is called for elements of C only; at the right edge maybe several times for the same one.
//
// row_sums(S) is an argument that sums along the rows of C are added to, for what follows the product, such as a norm:
//
//     epilogue("with_squares", [](auto sum, auto at, auto squares) { squares[at.row] += sum * sum; return sum; },
//              row_sums(squares.view(m, row_sum_columns(n))))
//
// A host number that the function captures is a constant of the kernel: each value makes a kernel of its own.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "stdlib/spec/given.hpp"

namespace ikat::stdlib {

/// A row or a column of C: a u32.
class EpilogueIndex : public Leaf<std::uint32_t> {
public:
    enum class Axis : std::uint8_t { Row, Column };
    EpilogueIndex(const Leaf<std::uint32_t>& index, Axis axis) : Leaf<std::uint32_t>(index), axis_(axis) {}
    Axis axis() const { return axis_; }

private:
    Axis axis_;
};
/// Where an element of C is; `matrix` is 0 if there is one.
struct EpiloguePlace {
    Leaf<std::uint32_t> matrix;
    EpilogueIndex row, column;
};

/// What an epilogue's arguments are read from while its kernel is captured: by their numbers, in order.
class EpilogueSource {
public:
    virtual ~EpilogueSource() = default;
    /// A number; the element of an array at the row or column of the place, or at the place itself, in the type in
    /// which it is read.
    virtual GivenNumber number(std::size_t argument) const = 0;
    virtual GivenNumber along(std::size_t argument, EpilogueIndex::Axis axis) const = 0;
    virtual GivenNumber at_place(std::size_t argument) const = 0;
    /// Adds to the row's sum.
    virtual void add(std::size_t argument, const Leaf<float>& x) const = 0;
};

/// An array as the function sees it: its elements are read in T, float or std::int32_t.
template <class T>
class EpilogueArray {
public:
    EpilogueArray(const EpilogueSource& source, std::size_t number) : source_(&source), number_(number) {}

    Leaf<T> operator[](const EpiloguePlace&) const { return source_->at_place(number_).template as<T>(); }
    Leaf<T> operator[](const EpilogueIndex& index) const {
        return source_->along(number_, index.axis()).template as<T>();
    }
    template <class I>
    Leaf<T> operator[](const I&) const {
        static_assert(std::is_same_v<I, EpiloguePlace>,
                      "an array of an epilogue is read where the element is: x[at], x[at.row] or x[at.column]");
        return source_->at_place(number_).template as<T>();
    }

private:
    const EpilogueSource* source_;
    std::size_t number_;
};

/// The columns of C whose elements one element of row_sums() is the sum of.
inline constexpr std::uint32_t columns_of_row_sum = 32;
/// How many columns row_sums() have for n columns of C: n / 32, rounded up.
constexpr std::uint64_t row_sum_columns(std::uint64_t n) {
    return n / columns_of_row_sum + (n % columns_of_row_sum != 0);
}

/// What row_sums() makes.
struct RowSums {
    runtime::TensorView sums;
};
/// An array of f32, (rows, columns) or (matrices, rows, columns), with the rows of C and row_sum_columns(n) columns:
/// element (i, j) becomes the sum of what the function adds for columns 32 j to 32 j + 31 of row i of C. It is written
/// and not read. The order of the sum is the same for all ways of computing a product of these types.
inline RowSums row_sums(const runtime::MutableTensorView& sums) { return {sums}; }

/// Row sums as the function sees them: `squares[at.row] += x`, with an f32.
class EpilogueRowSums {
public:
    EpilogueRowSums(const EpilogueSource& source, std::size_t number) : source_(&source), number_(number) {}

    class Sum {
    public:
        Sum(const EpilogueRowSums& of) : of_(of) {}
        void operator+=(const Incoming<float>& x) const { of_.source_->add(of_.number_, Leaf<float>(x.value())); }

    private:
        const EpilogueRowSums& of_;
    };
    template <class I>
    Sum operator[](const I& index) const {
        static_assert(std::is_same_v<I, EpilogueIndex>, "row_sums are added to by the row: sums[at.row] += x");
        if constexpr (std::is_same_v<I, EpilogueIndex>) check(index.axis());
        return *this;
    }

private:
    /// Throws Error for a column.
    static void check(EpilogueIndex::Axis axis);

    const EpilogueSource* source_;
    std::size_t number_;
};

/// The function, called for one element: of a sum and with a result of the types that the epilogue has.
using EpilogueFunction =
    std::function<GivenNumber(const GivenNumber& sum, const EpiloguePlace& at, const EpilogueSource& source)>;

/// An argument of epilogue().
struct EpilogueArgument : GivenArgument {
    ir::Type read = ir::Type::Void;  // of an array's elements, as the function has them: F32 or I32
    bool is_row_sums = false;
};

/// What epilogue() makes. It refers to the buffers of its arrays.
struct Epilogue {
    std::string name;
    std::vector<EpilogueArgument> arguments;
    ir::Type sum = ir::Type::F32, result = ir::Type::F32;  // or I32
    EpilogueFunction function;
};

namespace detail {

/// The type in which elements of an argument A are read by a function of sums of type Sum.
template <class Sum, class A>
constexpr auto epilogue_type() {
    if constexpr (requires { requires std::is_integral_v<typename A::value_type>; })
        return std::type_identity<Sum>{};
    else
        return std::type_identity<float>{};
}
template <class Sum, class A>
using EpilogueRead = typename decltype(epilogue_type<Sum, A>())::type;

template <class Sum, class A>
auto epilogue_operand(const EpilogueSource& source, std::size_t number) {
    if constexpr (std::is_arithmetic_v<A>)
        return source.number(number).template as<A>();
    else if constexpr (std::is_same_v<A, RowSums>)
        return EpilogueRowSums(source, number);
    else
        return EpilogueArray<EpilogueRead<Sum, A>>(source, number);
}

template <class Sum, class A>
EpilogueArgument epilogue_argument(const A& given) {
    if constexpr (std::is_same_v<A, RowSums>)
        return {given_argument(given.sums), ir::type_of<float>, true};
    else
        return {given_argument(given), ir::type_of<EpilogueRead<Sum, A>>};
}

/// The result of a function that does not take what it is given, about which there is an error already.
struct NotCalled {};

/// What a function of sums gives.
template <class Sum, class F, class... A>
constexpr auto epilogue_result() {
    const auto given = []<class... Given>(std::type_identity<Given>...) {
        constexpr bool takes = std::is_invocable_v<const F&, const Leaf<Sum>&, const EpiloguePlace&, Given...>;
        static_assert(takes, "epilogue: the function takes (sum, at), and then one value for each argument");
        if constexpr (takes)
            return std::type_identity<
                DeviceTypeOf<std::invoke_result_t<const F&, const Leaf<Sum>&, const EpiloguePlace&, Given...>>>{};
        else
            return std::type_identity<NotCalled>{};
    };
    return given(std::type_identity<decltype(epilogue_operand<Sum, A>(std::declval<const EpilogueSource&>(), 0))>{}...);
}
template <class Sum, class F, class... A>
using EpilogueResult = typename decltype(epilogue_result<Sum, F, A...>())::type;

template <class Sum, class F, class... A, std::size_t... number>
EpilogueFunction epilogue_function(F f, std::index_sequence<number...>) {
    return [f](const GivenNumber& sum, const EpiloguePlace& at, const EpilogueSource& source) {
        using Result = EpilogueResult<Sum, F, A...>;
        constexpr bool is_right = std::is_same_v<Result, float> || std::is_same_v<Result, Sum>;
        static_assert(is_right || std::is_same_v<Result, NotCalled>,
                      "epilogue: the function gives an f32, or, of epilogue<i32>, an i32: cast<f32>(...)");
        // Leaves can be copied, and a lambda that is given one by `auto` has it for itself.
        if constexpr (is_right)
            return GivenNumber::of(
                Leaf<Result>(value(f(sum.as<Sum>(), at, epilogue_operand<Sum, A>(source, number)...))));
        else
            return (void)f, sum;
    };
}

}  // namespace detail

/// An epilogue: a name, which becomes part of the kernel's, a function, and its arguments. The sums are f32, or, of
/// products of i8, i32.
template <class Sums = f32, class F, class... A>
Epilogue epilogue(std::string name, F f, const A&... arguments) {
    using Sum = DeviceTypeOf<Sums>;
    static_assert(std::is_same_v<Sum, float> || std::is_same_v<Sum, std::int32_t>,
                  "sums are f32, or, of products of i8, i32: epilogue<i32>(...)");
    return {std::move(name),
            {detail::epilogue_argument<Sum>(arguments)...},
            ir::type_of<Sum>,
            ir::type_of<detail::EpilogueResult<Sum, F, A...>>,
            detail::epilogue_function<Sum, F, A...>(std::move(f), std::index_sequence_for<A...>{})};
}

}  // namespace ikat::stdlib
