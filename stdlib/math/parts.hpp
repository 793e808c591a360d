// SPDX-License-Identifier: Apache-2.0
// The steps that the f32 and f64 functions of math.hpp share: polynomials, reducing the argument, assembling the
// result. They differ in Constants<T>. Steps that are exact are marked so.
#pragma once
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <type_traits>

#include "dsl/values/math.hpp"

namespace ikat::stdlib::detail {

template <class T>
using Same = std::type_identity_t<T>;

template <class T>
inline constexpr T infinity = std::numeric_limits<T>::infinity();
template <class T>
inline constexpr T nan = std::numeric_limits<T>::quiet_NaN();

/// c0 + x (c1 + x (c2 + ...)).
template <class T>
Leaf<T> horner(const Leaf<T>& x, std::initializer_list<Same<T>> coefficients) {
    const T* c = coefficients.end() - 1;
    Leaf<T> sum = value(fma(x, c[0], c[-1]));
    for (c -= 2; c >= coefficients.begin(); --c) sum = value(fma(sum, x, *c));
    return sum;
}

/// The layout of a float's bits, and the constants of its width. ln2_high + ln2_low = ln 2;
/// exp_tail(r) = (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2.
template <class T>
struct Constants;

template <>
struct Constants<float> {
    using Int = std::int32_t;
    static constexpr int fraction = 23, bias = 127;
    static constexpr float log2e = 0x1.715476p+0f, log2e_low = 0x1.4ae0cp-26f;
    static constexpr float ln2_high = 0x1.62e43p-1f, ln2_low = -0x1.05c61p-29f;

    static Leaf<float> exp_tail(const Leaf<float>& r) {
        return horner(r, {0x1p-1f, 0x1.555556p-3f, 0x1.5554eap-5f, 0x1.1110ep-7f, 0x1.6d4316p-10f, 0x1.a124e4p-13f});
    }
};

template <>
struct Constants<double> {
    using Int = std::int64_t;
    static constexpr int fraction = 52, bias = 1023;
    static constexpr double log2e = 0x1.71547652b82fep+0;
    static constexpr double ln2_high = 0x1.62e42fefa39efp-1, ln2_low = 0x1.abc9e3b39803fp-56;

    static Leaf<double> exp_tail(const Leaf<double>& r) {
        return horner(r, {0x1p-1, 0x1.5555555555557p-3, 0x1.5555555555556p-5, 0x1.11111111100dfp-7,
                          0x1.6c16c16c162d6p-10, 0x1.a01a01abe62ddp-13, 0x1.a01a01a6d7808p-16, 0x1.71de02375656cp-19,
                          0x1.27e4db67b4303p-22, 0x1.af4ddd84882fep-26, 0x1.1f72fc730b4ffp-29});
    }
};

template <class T>
using IntOf = typename Constants<T>::Int;

/// x within [low, high]; NaN stays NaN.
template <class T>
Leaf<T> clamp(const Leaf<T>& x, Same<T> low, Same<T> high) {
    const Leaf<T> above = value(select(x < low, low, x));
    return value(select(above > high, high, above));
}

// Rounding to an integer

/// 1.5 * 2^23 for f32: adding it rounds |x| < 2^22 to an integer, which is then in the low bits. f64 likewise.
template <class T>
inline constexpr T shifter = T(3) * T(std::int64_t{1} << (Constants<T>::fraction - 1));

template <class T>
struct Rounded {
    Leaf<T> value;
    Leaf<IntOf<T>> integer;
};
/// x rounded to nearest, from x + shifter.
template <class T>
Rounded<T> unshift(const Leaf<T>& shifted) {
    return {value(shifted - shifter<T>), value(bit_cast<IntOf<T>>(shifted) - std::bit_cast<IntOf<T>>(shifter<T>))};
}

// Exponentials

/// 2^n, a normal number.
template <class T>
Leaf<T> power_of_two(const Leaf<IntOf<T>>& n) {
    return value(bit_cast<T>((n + Constants<T>::bias) << Constants<T>::fraction));
}

/// p 2^n for p near 1, rounded once: the first product is exact. The result may overflow, be subnormal or 0. For f32, n
/// is from -252 to 254.
template <class T>
Leaf<T> scale(const Leaf<T>& p, const Leaf<IntOf<T>>& n) {
    const Leaf<IntOf<T>> half = value(n >> 1);
    return value(p * power_of_two<T>(half) * power_of_two<T>(value(n - half)));
}

/// exp x = 2^n (1 + rest), |rest| < 0.42.
template <class T>
struct Exponential {
    Leaf<T> rest;
    Leaf<IntOf<T>> n;
};
/// Of x, or of x + low where low is a fraction of x's last place.
template <class T>
Exponential<T> exponential(const Leaf<T>& x, const Leaf<T>* low = nullptr) {
    using C = Constants<T>;
    const Rounded<T> n = unshift<T>(value(fma(x, C::log2e, shifter<T>)));
    const Leaf<T> high = value(fma(n.value, -C::ln2_high, x));
    const Leaf<T> r =
        low ? Leaf<T>(value(high + fma(n.value, -C::ln2_low, *low))) : Leaf<T>(value(fma(n.value, -C::ln2_low, high)));
    return {value(fma(r * r, C::exp_tail(r), r)), n.integer};
}

// Logarithms

/// A positive finite number as m 2^e, m from 2/3 to 4/3.
template <class T>
struct Split {
    Leaf<T> m, e;
};
template <class T>
Split<T> split(const Leaf<T>& x) {
    constexpr int digits = Constants<T>::fraction + 1;
    const Leaf<bool> tiny = value(x < std::numeric_limits<T>::min());
    const Leaf<T> normal = value(select(tiny, x * T(std::int64_t{1} << digits), x));
    constexpr auto two_thirds = std::bit_cast<IntOf<T>>(T(2) / T(3));
    const Leaf<IntOf<T>> bits = value(bit_cast<IntOf<T>>(normal));
    const Leaf<IntOf<T>> exponent = value((bits - two_thirds) >> Constants<T>::fraction);
    const Leaf<T> m = value(bit_cast<T>(bits - (exponent << Constants<T>::fraction)));
    return {m, value(cast<T>(exponent) - select(tiny, T(digits), T(0)))};
}

/// The logarithm of x: `regular` for positive finite numbers, else the special values.
template <class T>
Leaf<T> log_of(const Leaf<T>& x, const Leaf<T>& regular) {
    const Leaf<T> finite = value(select(x < infinity<T>, regular, x + infinity<T>));  // NaN and infinity stay
    const Leaf<T> positive = value(select(x < T(0), nan<T>, finite));
    return value(select(x == T(0), -infinity<T>, positive));
}

// Odd functions whose limit is 1

/// x + x^3 q near 0, elsewhere 1 - rest with the sign of x.
template <class T>
Leaf<T> odd(const Leaf<T>& x, const Leaf<bool>& near, const Leaf<T>& small, const Leaf<T>& rest) {
    const Leaf<T> large = value(copysign(T(1) - rest, x));
    return value(select(x == T(0), x, Leaf<T>(value(select(near, small, large)))));
}

}  // namespace ikat::stdlib::detail
