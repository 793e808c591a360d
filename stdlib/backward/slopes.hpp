// SPDX-License-Identifier: Apache-2.0
// Derivatives of activations on the device. Their errors are absolute: at most 2^-20, of numbers between -0.2 and 1.2.
// Those of infinite numbers are 0 and 1, that of a NaN is NaN.
#pragma once
#include <utility>

#include "stdlib/math/math.hpp"

namespace ikat::stdlib {
namespace detail {

/// The nearest number from -limit to limit; NaN stays NaN.
inline Leaf<float> within(const Leaf<float>& x, float limit) {
    const Leaf<float> not_above = value(select(x > limit, limit, x));
    return value(select(not_above < -limit, -limit, not_above));
}

/// sigmoid(x) and its derivative, sigmoid(x) sigmoid(-x).
inline std::pair<Leaf<float>, Leaf<float>> logistic(const Leaf<float>& x) {
    const Leaf<float> tail = exp(Leaf<float>(value(-abs(x))));
    const Leaf<float> large = value(1.0f / (1.0f + tail)), small = value(tail * large);
    return {value(select(x < 0.0f, small, large)), value(small * large)};
}

}  // namespace detail

/// silu(x) = x s, within 7 roundings of f32, and its slope s + x s (1 - s), with s = sigmoid(x).
inline std::pair<Leaf<float>, Leaf<float>> silu_and_slope(const Leaf<float>& x) {
    const Leaf<float> v = detail::within(x, 110.0f);  // further out the exponential is 0
    const auto [s, slope] = detail::logistic(v);
    return {value(select(x < 0.0f, v, x) * s), value(fma(v, slope, s))};
}
inline Leaf<float> silu_slope(const Leaf<float>& x) { return silu_and_slope(x).second; }

/// P(x) + x p(x), with the standard normal distribution P and its density p.
inline Leaf<float> gelu_slope(const Leaf<float>& x) {
    const Leaf<float> v = detail::within(x, 15.0f);
    const Leaf<float> distribution = value(fma(0.5f, erf(Leaf<float>(value(v * 0x1.6a09e6p-1f))), 0.5f));
    const Leaf<float> density = value(0x1.988454p-2f * exp(Leaf<float>(value(v * v * -0.5f))));
    return value(fma(v, density, distribution));
}

/// s + x 2 u' s (1 - s), s = sigmoid(2 u), u = sqrt(2/pi) (x + 0.044715 x^3).
inline Leaf<float> gelu_tanh_slope(const Leaf<float>& x) {
    const Leaf<float> v = detail::within(x, 12.0f);
    const Leaf<float> square = value(v * v), first = value(v * 0x1.988454p+0f);
    const auto [s, slope] = detail::logistic(value(first * fma(square, 0.044715f, 1.0f)));
    return value(fma(value(first * fma(square, 0.134145f, 1.0f)), slope, s));
}

}  // namespace ikat::stdlib
