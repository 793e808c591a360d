// SPDX-License-Identifier: Apache-2.0
// Elementary functions of device values: exp, sin, erf and others.
//
//     y[i] = stdlib::exp(x[i]);          // within 1 ulp
//     y[i] = approx::exp(x[i]);          // two instructions, less accurate
//
// The functions of stdlib use only correctly rounded operations: they give the same bits on every device, and on the
// emulator. Subnormal numbers, infinities and NaNs are valid arguments and results. The errors stated here are bounds,
// in units in the last place of the result (ulp); docs/math.md has the errors measured over all arguments, and the
// methods. Nothing in them is contracted, in any kernel. Compute f16 in f32: cast<f16>(exp(cast<f32>(x))).
#pragma once
#include "dsl/lanes/algebra.hpp"
#include "dsl/threads/control.hpp"

namespace ikat::stdlib {
namespace detail {

#define IKAT_BOTH(name)                     \
    Leaf<float> name(const Leaf<float>& x); \
    Leaf<double> name(const Leaf<double>& x);
#define IKAT_SINGLE(name) Leaf<float> name(const Leaf<float>& x);
IKAT_BOTH(exp)
IKAT_BOTH(log)
IKAT_BOTH(sin)
IKAT_BOTH(cos)
IKAT_BOTH(tanh)
IKAT_BOTH(erf)
IKAT_SINGLE(exp2)
IKAT_SINGLE(expm1)
IKAT_SINGLE(log2)
IKAT_SINGLE(tan)
IKAT_SINGLE(sigmoid)
IKAT_SINGLE(silu)
IKAT_SINGLE(gelu)
IKAT_SINGLE(gelu_tanh)
#undef IKAT_BOTH
#undef IKAT_SINGLE
Leaf<float> pow(const Leaf<float>& x, const Leaf<float>& y);

}  // namespace detail

// On a Vec, Regs or an expression of several lanes they work lane by lane.
#define IKAT_LANES(name)                                                                     \
    template <Lanewise V>                                                                    \
    auto name(V&& v) {                                                                       \
        return each_lane([](const auto& x) { return stdlib::name(x); }, std::forward<V>(v)); \
    }
#define IKAT_BOTH(name)                                                                           \
    template <DeviceValue V>                                                                      \
    auto name(const V& x) {                                                                       \
        using T = DeviceTypeOf<V>;                                                                \
        static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,                      \
                      #name "() is for f32 and f64: compute f16 in f32, and convert the result"); \
        const Leaf<T> argument = value(x);                                                        \
        return exact([&] { return detail::name(argument); });                                     \
    }                                                                                             \
    IKAT_LANES(name)
#define IKAT_SINGLE(name)                                                            \
    template <DeviceValue V>                                                         \
    auto name(const V& x) {                                                          \
        static_assert(std::is_same_v<DeviceTypeOf<V>, float>,                        \
                      #name "() is for f32: convert the argument with cast<f32>()"); \
        const Leaf<float> argument = value(x);                                       \
        return exact([&] { return detail::name(argument); });                        \
    }                                                                                \
    IKAT_LANES(name)
/// e to the power of x. f32 and f64: 1 ulp.
IKAT_BOTH(exp)
/// 2 to the power of x. f32: 1 ulp.
IKAT_SINGLE(exp2)
/// exp(x) - 1, accurate for small x, too. f32: 1.5 ulp.
IKAT_SINGLE(expm1)
/// The natural logarithm; NaN for negative numbers. f32 and f64: 1 ulp.
IKAT_BOTH(log)
/// The logarithm to base 2. f32: 1 ulp.
IKAT_SINGLE(log2)
/// Sine and cosine of an angle of any size in radians. f32 and f64: 1 ulp.
IKAT_BOTH(sin)
IKAT_BOTH(cos)
/// The tangent of an angle of any size in radians. f32: 2 ulp.
IKAT_SINGLE(tan)
/// The hyperbolic tangent. f32: 1.5 ulp; f64: 2 ulp.
IKAT_BOTH(tanh)
/// The error function. f32 and f64: 1.5 ulp.
IKAT_BOTH(erf)
/// 1 / (1 + exp(-x)). f32: 1 ulp.
IKAT_SINGLE(sigmoid)
/// x / (1 + exp(-x)), which is also called swish; -0 for -infinity. f32: 1.5 ulp.
IKAT_SINGLE(silu)
/// x times the standard normal distribution function at x, x/2 (1 + erf(x / sqrt 2)); -0 for -infinity. f32: 2 ulp.
IKAT_SINGLE(gelu)
/// gelu with a hyperbolic tangent: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); -0 for -infinity. f32: 1.5 ulp.
IKAT_SINGLE(gelu_tanh)
#undef IKAT_BOTH
#undef IKAT_SINGLE
#undef IKAT_LANES

/// x to the power of y, with the special values of C's pow. f32: 1.5 ulp.
template <class X, class Y>
requires(DeviceValue<X> || DeviceValue<Y>) auto pow(const X& x, const Y& y) {
    static_assert(std::is_same_v<CommonType<X, Y>, float>, "pow() is for f32: convert the arguments with cast<f32>()");
    const Leaf<float> base(Incoming<float>(x).value()), exponent(Incoming<float>(y).value());
    return exact([&] { return detail::pow(base, exponent); });
}
template <class X, class Y>
requires(Lanewise<X> || Lanewise<Y>) auto pow(X&& x, Y&& y) {
    return each_lane([](const auto& a, const auto& b) { return stdlib::pow(a, b); }, std::forward<X>(x),
                     std::forward<Y>(y));
}

}  // namespace ikat::stdlib

// Fast versions, beside those of the language (approx::sin, cos, tanh and others). Each is a few instructions around
// approx::exp2 or approx::log2; results that would be subnormal may be 0.
namespace ikat::approx {
namespace detail {
template <class V>
concept Floats = Value<V, float> || Lanewise<V, float>;
template <class V>
concept FloatsOrNumber = Floats<V> || Operand<V>;
}  // namespace detail

/// Relative error 2^-21 + |x| 2^-23.
template <detail::Floats V>
auto exp(const V& x) {
    return approx::exp2(x * 0x1.715476p+0f);
}
/// Error 2^-22 + 2^-21 |log x|.
template <detail::Floats V>
auto log(const V& x) {
    return approx::log2(x) * 0x1.62e430p-1f;
}
/// For x > 0. The relative error grows with y: 2^-21 (1 + |y| (1 + |log2 x|)), as long as that is below 1.
template <detail::Floats X, detail::FloatsOrNumber Y>
auto pow(const X& x, const Y& y) {
    return approx::exp2(y * approx::log2(x));
}
/// For |x| < 80, relative error 2^-20 + |x| 2^-23.
template <detail::Floats V>
auto sigmoid(const V& x) {
    return approx::rcp(1.0f + approx::exp(-x));
}
/// gelu_tanh as x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)). Absolute error 2^-20 |x|.
template <detail::Floats V>
auto gelu_tanh(const V& x) {
    const auto v = value(x);
    return v * approx::sigmoid(v * fma(v * v, 0x1.2444f2p-4f, 0x1.988454p+0f));
}

}  // namespace ikat::approx
