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
// f32, and `at` is where the element is. It gives the element in f32, which is rounded to the type of C. Behind these
// two come the arguments of epilogue(): numbers, which are the kernel's parameters, and arrays of any type, whose
// elements are read in f32:
//
//     x[at]           an element for each of C: a view (rows, columns), or (matrices, rows, columns)
//     x[at.column]    an element for each column, or for each row, x[at.row]: a Buffer, or a slice of one
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
    /// A number; the element of an array at the row or column of the place, or at the place itself, in f32.
    virtual GivenNumber number(std::size_t argument) const = 0;
    virtual Leaf<float> along(std::size_t argument, EpilogueIndex::Axis axis) const = 0;
    virtual Leaf<float> at_place(std::size_t argument) const = 0;
};

/// An array as the function sees it.
class EpilogueArray {
public:
    EpilogueArray(const EpilogueSource& source, std::size_t number) : source_(&source), number_(number) {}

    Leaf<float> operator[](const EpiloguePlace&) const { return source_->at_place(number_); }
    Leaf<float> operator[](const EpilogueIndex& index) const { return source_->along(number_, index.axis()); }
    template <class I>
    Leaf<float> operator[](const I&) const {
        static_assert(std::is_same_v<I, EpiloguePlace>,
                      "an array of an epilogue is read where the element is: x[at], x[at.row] or x[at.column]");
        return source_->at_place(number_);
    }

private:
    const EpilogueSource* source_;
    std::size_t number_;
};

/// The function, called for one element.
using EpilogueFunction =
    std::function<Leaf<float>(const Leaf<float>& sum, const EpiloguePlace& at, const EpilogueSource& source)>;

/// What epilogue() makes. It refers to the buffers of its arrays.
struct Epilogue {
    std::string name;
    std::vector<GivenArgument> arguments;
    EpilogueFunction function;
};

namespace detail {

template <class A>
auto epilogue_operand(const EpilogueSource& source, std::size_t number) {
    if constexpr (std::is_arithmetic_v<A>)
        return source.number(number).template as<A>();
    else
        return EpilogueArray(source, number);
}

template <class F, class... A, std::size_t... number>
EpilogueFunction epilogue_function(F f, std::index_sequence<number...>) {
    return [f](const Leaf<float>& sum, const EpiloguePlace& at, const EpilogueSource& source) {
        // Leaves can be copied, and a lambda that is given one by `auto` has it for itself.
        auto result = f(sum, at, epilogue_operand<A>(source, number)...);
        static_assert(std::is_same_v<DeviceTypeOf<decltype(result)>, float>,
                      "epilogue: the function gives an f32: cast<f32>(...)");
        return Leaf<float>(value(result));
    };
}

}  // namespace detail

/// An epilogue: a name, which becomes part of the kernel's, a function, and its arguments.
template <class F, class... A>
Epilogue epilogue(std::string name, F f, const A&... arguments) {
    return {std::move(name),
            {detail::given_argument(arguments)...},
            detail::epilogue_function<F, A...>(std::move(f), std::index_sequence_for<A...>{})};
}

}  // namespace ikat::stdlib
