// SPDX-License-Identifier: Apache-2.0
// The angles of rotary position embedding, and how a pair of elements is turned.
#pragma once
#include <numbers>

#include "dsl/kernel/kernel.hpp"
#include "stdlib/math/math.hpp"

namespace ikat::stdlib {

/// The angle between -pi and pi, rounded to f32.
inline Leaf<float> reduced_angle(const auto& angle) {
    constexpr double turn = 2 * std::numbers::pi;
    const auto turns = value(cast<f64>(cast<i32>(angle * (1 / turn), Rounding::Nearest)));
    return value(cast<f32>(fma(-turns, turn, angle)));
}

/// The logarithm of the factor between the angles of neighbouring pairs.
inline auto rope_rate(const f32& base, const u32& rotary) {
    return value(-2 * log(cast<f64>(base)) / cast<f64>(rotary));
}
/// Of a pair, at a position in f64.
inline Leaf<float> rope_angle(const auto& position, const auto& rate, const auto& pair) {
    return reduced_angle(value(position * exp(rate * cast<f64>(pair))));
}

/// The first and the second element of a pair, turned by an angle with this sine and cosine.
auto first_turned(const auto& first, const auto& second, const auto& sine, const auto& cosine) {
    return first * cosine - second * sine;
}
auto second_turned(const auto& first, const auto& second, const auto& sine, const auto& cosine) {
    return first * sine + second * cosine;
}

}  // namespace ikat::stdlib
