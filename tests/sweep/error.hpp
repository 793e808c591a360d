// SPDX-License-Identifier: Apache-2.0
// The error of a result in units in the last place (ulp) of the exact one. The exact result is known in a wider type:
// double for f32, long double for f64.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

namespace ikat::test {

template <class T>
using WideOf = std::conditional_t<std::is_same_v<T, float>, double, long double>;

/// One unit in the last place of a T of x's magnitude; for subnormal numbers, the smallest one.
template <class T>
WideOf<T> ulp_of(WideOf<T> x) {
    int exponent = 0;
    std::frexp(x, &exponent);
    using Limits = std::numeric_limits<T>;
    return std::ldexp(WideOf<T>(1), std::max(exponent, Limits::min_exponent) - Limits::digits);
}

/// Whether `got` is correctly rounded: the same number with the same sign, or a NaN for a NaN.
template <class T>
bool correctly_rounded(T got, WideOf<T> want) {
    const T rounded = T(want);
    return (rounded == got && std::signbit(rounded) == std::signbit(got)) || (std::isnan(rounded) && std::isnan(got));
}

/// |got - want|; infinite if only one is a NaN, or if got is finite and want is not. An infinity instead of a finite
/// number counts as the power of two above the largest number.
template <class T>
WideOf<T> distance(T got, WideOf<T> want) {
    using Wide = WideOf<T>;
    if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : Wide(HUGE_VAL);
    if (Wide(got) == want || T(want) == got) return 0;
    if (std::isinf(want)) return HUGE_VAL;
    const Wide limit = std::ldexp(Wide(1), std::numeric_limits<T>::max_exponent);
    return std::abs((std::isinf(got) ? std::copysign(limit, Wide(got)) : Wide(got)) - want);
}

/// The error in ulp; infinite for a result of the wrong sign.
template <class T>
WideOf<T> ulps_between(T got, WideOf<T> want) {
    if (std::signbit(got) != std::signbit(want) && !std::isnan(got)) return HUGE_VAL;
    const WideOf<T> apart = distance(got, want);
    return apart == 0 || std::isinf(apart) ? apart : apart / ulp_of<T>(want);
}

}  // namespace ikat::test
