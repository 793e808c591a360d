// SPDX-License-Identifier: Apache-2.0
// Functions that a layer applies to its sums. Each has one definition, which kernels of elements, of biases and the
// epilogues of products share:
//
//     y[i] = stdlib::relu(x[i]);
//     c = activated(Activation::gelu, sum);          the host knows which
#pragma once
#include <cstdint>
#include <type_traits>

#include "stdlib/math/math.hpp"

namespace ikat::stdlib {

/// What is applied to each element of a result. `none` leaves it.
enum class Activation : std::uint8_t { none, relu, gelu, gelu_tanh, silu };
/// How many there are.
inline constexpr std::size_t activation_count = 5;

/// 0 for negative numbers, else x; NaN stays NaN.
template <DeviceValue V>
auto relu(const V& x) {
    using T = DeviceTypeOf<V>;
    const Leaf<T> v = value(x);
    if constexpr (std::is_floating_point_v<T>)
        return value(select(v < T{}, T{}, v));
    else
        return value(max(v, T{}));  // there is no NaN
}

/// activation(x) in f32; of integers there are none and relu.
template <class T>
Leaf<T> activated(Activation activation, const Leaf<T>& x) {
    if constexpr (std::is_same_v<T, float>) {
        if (activation == Activation::gelu) return gelu(x);
        if (activation == Activation::gelu_tanh) return gelu_tanh(x);
        if (activation == Activation::silu) return silu(x);
    }
    return activation == Activation::relu ? Leaf<T>(relu(x)) : x;
}

}  // namespace ikat::stdlib
