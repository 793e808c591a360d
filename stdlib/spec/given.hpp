// SPDX-License-Identifier: Apache-2.0
// What a caller gives with a function of their own that becomes part of a kernel: numbers and arrays, which are
// parameters of the kernel.
#pragma once
#include <bit>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "dsl/values/math.hpp"
#include "runtime/tensor_view.hpp"

namespace ikat::stdlib {

/// A number in the kernel: the one of its type.
struct GivenNumber {
    std::optional<Leaf<float>> f{};
    std::optional<Leaf<std::uint32_t>> u{};
    std::optional<Leaf<std::int32_t>> i{};

    /// One of type T: float, std::uint32_t or std::int32_t.
    template <class T>
    static GivenNumber of(const Leaf<T>& number) {
        if constexpr (std::is_same_v<T, float>)
            return {.f = number};
        else if constexpr (std::is_same_v<T, std::uint32_t>)
            return {.u = number};
        else
            return {.i = number};
    }
    template <class T>
    const Leaf<T>& as() const {
        if constexpr (std::is_same_v<T, float>)
            return *f;
        else if constexpr (std::is_same_v<T, std::uint32_t>)
            return *u;
        else
            return *i;
    }
};

/// An argument: an array, or a number.
struct GivenArgument {
    ir::Type type = ir::Type::Void;  // of the number, or of the array's elements
    std::uint32_t bits = 0;          // of the number
    std::optional<runtime::TensorView> array{};
};

namespace detail {

template <class A>
GivenArgument given_argument(const A& given) {
    if constexpr (std::is_same_v<A, float> || std::is_same_v<A, std::uint32_t> || std::is_same_v<A, std::int32_t>)
        return {.type = ir::type_of<A>, .bits = std::bit_cast<std::uint32_t>(given)};
    else if constexpr (std::is_arithmetic_v<A>) {
        static_assert(!std::is_arithmetic_v<A>, "numbers after the function are float, std::uint32_t or std::int32_t");
        return {};
    } else {
        const runtime::TensorView array(given);
        return {.type = array.type, .array = array};
    }
}

}  // namespace detail
}  // namespace ikat::stdlib
