// SPDX-License-Identifier: Apache-2.0
// The f32 functions of math.hpp, except those of angles.
#include "stdlib/math/math.hpp"

#include "stdlib/math/parts.hpp"

namespace ikat::stdlib::detail {
namespace {

using F = Leaf<float>;
using I = Leaf<std::int32_t>;
using P = Leaf<bool>;
using C = Constants<float>;

/// A number as the sum of two floats; low is a fraction of high's last place.
struct Pair {
    F high, low;
};
/// a + b, exact where |a| >= |b| or a = 0.
Pair sum(const auto& a, const F& b) {
    const F high = value(a + b);
    return {high, value(b - (high - a))};
}
/// a + b, exact for any two.
Pair sum_of_any(const auto& a, const F& b) {
    const F high = value(a + b), of_b = value(high - a);
    return {high, value((a - (high - of_b)) + (b - of_b))};
}
/// a b, exact unless the product is tiny.
Pair product(const F& a, const auto& b) {
    const F high = value(a * b);
    return {high, value(fma(a, b, -high))};
}

/// a b, to nearly 48 bits.
Pair times(const Pair& a, const Pair& b) {
    const Pair high = product(a.high, b.high);
    return {high.high, value(fma(a.high, b.low, fma(a.low, b.high, high.low)))};
}
/// a / b, to nearly 48 bits: the remainder of the first approximation is divided again.
Pair quotient(const Pair& a, const Pair& b) {
    const F reciprocal = value(rcp(b.high));
    const F high = value(a.high * reciprocal);
    const F left = value(fma(-high, b.high, a.high) + fma(-high, b.low, a.low));
    return {high, value(left * reciprocal)};
}
F constant(float number) { return F(ikat::detail::literal<float>(number)); }

/// (2^r - 1) / r for |r| <= 1/2.
F exp2_polynomial(const F& r) {
    return horner(r, {0x1.62e43p-1f, 0x1.ebfbep-3f, 0x1.c6b08ep-5f, 0x1.3b2a1cp-7f, 0x1.5d879ep-10f, 0x1.444p-13f,
                      0x1.00a582p-16f});
}

// ---- functions that tend to 0 at -infinity, and to 1 or x at infinity
//
// For x < 0 they are a tail t(-x), or x t(-x), where t falls from 1/2 to the smallest floats; for x > 0 they are
// 1 - t(x), or x - x t(x).

/// (high + low) 2^n.
struct Tail {
    Pair factor;
    I n;
};

/// factor 2^n, rounded once; n from -190 to 0. The first product is exact.
F scale_down(const F& factor, const I& n) {
    const I first = value(max(n, -64));
    return value(factor * power_of_two<float>(first) * power_of_two<float>(value(n - first)));
}

/// e / (1 + e) for an exponential e <= 1.
Tail logistic_tail(const Exponential<float>& e) {
    const F power = power_of_two<float>(value(max(e.n, -64)));  // smaller powers do not change 1 + power
    const Pair grown = sum(1.0f, e.rest), divisor = sum(1.0f, value(grown.high * power));
    return {quotient(grown, {divisor.high, value(fma(grown.low, power, divisor.low))}), e.n};
}

/// The normal distribution at -a: exp(-a^2/2) h(a), where h falls slowly from 1/2, and (a + c) h(a) is a polynomial of
/// s = (a - c) / (a + c) = 1 - 2 c / (a + c).
Tail normal_tail(const F& a) {
    constexpr float c = 0x1.768p+1f;
    const Pair square = product(a, a);
    const F half_low = value(-0.5f * square.low);
    const Exponential<float> e = exponential(value(-0.5f * square.high), &half_low);

    const Pair share = quotient({constant(1), constant(0)}, sum_of_any(c, a));
    const F s = value(fma(share.low, -2 * c, fma(share.high, -2 * c, 1.0f)));
    const F q = horner(s, {-0x1.ff79c4p-2f, 0x1.babe12p-3f, -0x1.355778p-5f, -0x1.a51c44p-7f, 0x1.8cf2dap-8f,
                           0x1.9d56b4p-10f, -0x1.cd376cp-11f, -0x1.60ba86p-12f, 0x1.9af024p-14f, 0x1.e11ffep-15f});
    constexpr float middle = 0x1.73dbeap-1f;
    const F p = value(fma(s, q, middle)), p_low = value(fma(s, q, middle - p));
    return {times(times(share, {p, p_low}), sum(1.0f, e.rest)), e.n};
}

/// x - x t(x), or x t(-x) below 0. From `limit` on, x t(x) is 0.
F without_tail(const F& x, float limit, auto&& tail) {
    const F a = value(min(abs(x), limit));
    const Tail t = tail(a);
    const F missing = scale_down(value(fma(a, t.factor.high, a * t.factor.low)), t.n);
    return value(select(x < 0.0f, -0.0f, x) - missing);
}

// ---- powers

/// Whether a number is an integer, and an odd one.
struct Parity {
    P integer, odd;
};
Parity parity(const F& y) {
    const P large = value(abs(y) >= 0x1p+24f);  // an even number
    const I whole = value(cast<i32>(y));
    return {value(large | (cast<f32>(whole) == y)),
            value((abs(y) < 0x1p+24f) & (cast<f32>(whole) == y) & ((whole & 1) != 0))};
}

/// log2 of a positive finite number: log2(m) = 2/ln2 (s + s^3/3 + ...), s = (m - 1) / (m + 1).
Pair log2_pair(const F& x) {
    const Split<float> parts = split(x);
    const F f = value(parts.m - 1.0f);  // exact
    const Pair s = quotient({f, constant(0)}, sum(1.0f, parts.m)), square = times(s, s);
    const F q = horner(square.high, {0x1.999996p-3f, 0x1.2495p-3f, 0x1.c5bfcp-4f, 0x1.97ec22p-4f});
    constexpr float third = 0x1.555556p-2f, third_low = -0x1.555556p-27f;
    const F p = value(fma(square.high, q, third)), p_low = value(fma(square.high, q, third - p) + third_low);
    const Pair cubic = times(s, times(square, {p, p_low})), all = sum(s.high, cubic.high);
    const Pair main =
        times({all.high, value(all.low + (s.low + cubic.low))}, {constant(2 * C::log2e), constant(2 * C::log2e_low)});
    const Pair whole = sum(parts.e, main.high);  // |e| > |main| or e = 0
    return sum(whole.high, value(whole.low + main.low));
}

/// x^y for x positive and finite, y finite.
F pow_regular(const F& x, const F& y) {
    const Pair log = log2_pair(x);
    const F product = value(y * log.high);
    const F low = value(fma(y, log.low, fma(y, log.high, -product)));
    const P in_range = value(abs(product) < 200.0f);
    const F exponent = value(select(in_range, product, F(value(select(product > 0.0f, 200.0f, -200.0f)))));
    const Rounded<float> n = unshift<float>(value(exponent + shifter<float>));
    const F r = value((exponent - n.value) + select(in_range, low, 0.0f));
    return scale<float>(value(fma(r, exp2_polynomial(r), 1.0f)), n.integer);
}

}  // namespace

// 16 machine instructions: exp x = 2^n e^r, where n = 129 - steps is log2(e) x to the nearest integer, from -162 to
// 129. `saturate` keeps it there, and makes 129 of NaN. The power is divided between two factors so that nothing else
// need be asked: 2^n e^r = (4 e^r 2^a) 2^(b + 127), a + b = n - 129, a = (n - 129) / 8, downwards. At 129 a is 0, so
// that an infinite or NaN e^r stays what it is; at -162 the second factor is 0, and the first, an infinite e^r whose
// exponent has become smaller, a positive number. In between the first is exact. Of e^r, r^6 has the factor of x in n,
// which is near the best: it is one constant fewer in a register.
F exp(const F& x) {
    constexpr float max_exponent = 129, range = 291, of_x = C::log2e / range;
    const F steps = value(saturate(fma(x, -of_x, max_exponent / range)));
    const F shifted = value(fma(steps, -range, shifter<float>)), n = value(shifted - (shifter<float> - max_exponent));
    const F r = value(fma(n, -C::ln2_low, fma(n, -C::ln2_high, x)));
    const F e = horner(r, {4, 4, 0x1.ffffc2p+0f, 0x1.55549ap-1f, 0x1.558a44p-3f, 0x1.123494p-5f, of_x});
    // n - 129 is in the low bits; what is above them is shifted out.
    const I all = value(bit_cast<i32>(shifted)), a = value(all >> 3), b = value(all - a);
    return value(bit_cast<f32>(bit_cast<i32>(e) + (a << 23)) * bit_cast<f32>((b << 23) + 0x7f000000));
}

F expm1(const F& x) {
    const Exponential<float> e = exponential(clamp(x, -18.0f, 60.0f));
    const F power = power_of_two<float>(e.n);
    const F below = value(fma(e.rest, power, power - 1.0f));
    return value(select(x == 0.0f, x, F(value(select(x < 60.0f, below, exp(x))))));
}

F exp2(const F& x) {
    const F c = clamp(x, -151.0f, 129.0f);
    const Rounded<float> n = unshift<float>(value(c + shifter<float>));
    const F r = value(c - n.value);  // exact
    return scale<float>(value(fma(r, exp2_polynomial(r), 1.0f)), n.integer);
}

F log(const F& x) {
    const Split<float> parts = split(x);
    const F f = value(parts.m - 1.0f);  // exact
    const F q = horner(f, {-0x1p-1f, 0x1.55552cp-2f, -0x1.ffffb6p-3f, 0x1.99bf86p-3f, -0x1.557832p-3f, 0x1.1fdcfp-3f,
                           -0x1.f75896p-4f, 0x1.1990bcp-3f, -0x1.fcd036p-4f});
    const F high = value(fma(parts.e, C::ln2_high, f));
    const F low = value(fma(parts.e, C::ln2_low, fma(parts.e, C::ln2_high, -high) + f));
    return log_of(x, value(high + fma(f * f, q, low)));
}

F log2(const F& x) {
    const Split<float> parts = split(x);
    const F f = value(parts.m - 1.0f);  // exact
    const F q = horner(f, {-0x1.715478p-1f, 0x1.ec70a2p-2f, -0x1.7152a0p-2f, 0x1.2774aep-2f, -0x1.ed118ep-3f,
                           0x1.a6c19cp-3f, -0x1.65af24p-3f, 0x1.3c9fcap-3f, -0x1.855c72p-3f, 0x1.66c046p-3f});
    const Pair main = product(f, C::log2e);
    const Pair whole = sum(parts.e, main.high);
    const F low = value(whole.low + fma(f, C::log2e_low, main.low));
    return log_of(x, value(whole.high + fma(f * f, q, low)));
}

F tanh(const F& x) {
    const F a = value(abs(x)), square = value(x * x);
    const F q = horner(
        square, {-0x1.555556p-2f, 0x1.1110f6p-3f, -0x1.ba0d94p-5f, 0x1.64fad8p-6f, -0x1.1394cap-7f, 0x1.36bdb2p-9f});
    const F near = value(fma(x * square, q, x));
    return odd(x, value(a < 0.6f), near, value(2.0f / (exp(value(2.0f * a)) + 1.0f)));
}

F erf(const F& x) {
    const F a = value(abs(x));
    const F q = horner(value(x * x), {0x1.06eba8p-3f, -0x1.81273ep-2f, 0x1.ce2d1p-4f, -0x1.b7fabap-6f, 0x1.541272p-8f,
                                      -0x1.a45088p-11f, 0x1.4a569p-14f});
    const F log_of_rest = horner(clamp(a, 0.0f, 4.0f),
                                 {0x1.4fb068p-12f, -0x1.2156fap+0f, -0x1.437eb4p-1f, -0x1.c2e356p-4f, 0x1.b0e246p-6f,
                                  -0x1.37ecc6p-8f, 0x1.38e5e6p-11f, -0x1.825ce4p-15f, 0x1.b77832p-20f});
    return odd(x, value(a < 1.0f), value(fma(x, q, x)), exp(log_of_rest));
}

F sigmoid(const F& x) {
    const F v = value(-abs(x));
    const Tail t = logistic_tail(exponential(F(value(select(v < -105.0f, -105.0f, v)))));
    const F tail = scale_down(value(t.factor.high + t.factor.low), t.n);
    return value(select(x < 0.0f, tail, 1.0f - tail));
}

F silu(const F& x) {
    return without_tail(x, 110.0f, [](const F& a) { return logistic_tail(exponential(F(value(-a)))); });
}

F gelu(const F& x) { return without_tail(x, 14.7f, normal_tail); }

/// x / (1 + exp(-2 u)), u = sqrt(2/pi) (x + 0.044715 x^3).
F gelu_tanh(const F& x) {
    return without_tail(x, 11.0f, [](const F& a) {
        constexpr float one = -0x1.988454p+0f, one_low = 0x1.857936p-25f;  // -2 u = a (one + cube a^2)
        constexpr float cube = -0x1.2444f2p-4f, cube_low = -0x1.49b16ap-29f;
        const Pair square = product(a, a), cubic = product(square.high, cube), slope = sum_of_any(one, cubic.high);
        const F cubic_low = value(fma(square.low, cube, fma(square.high, cube_low, cubic.low)));
        const F slope_low = value(slope.low + (cubic_low + one_low));
        const Pair u = product(a, slope.high);
        const F u_low = value(fma(a, slope_low, u.low));
        return logistic_tail(exponential(u.high, &u_low));
    });
}

F pow(const F& x, const F& y) {
    const F a = value(abs(x));
    const Parity whole = parity(y);
    const P growing = value((a > 1.0f) ^ (y < 0.0f));  // the limit for large |y|, or x 0 or infinite, is infinity
    const F limit = value(select(growing, infinity<float>, 0.0f));
    const P extreme = value((a == 0.0f) | (a == infinity<float>) | (abs(y) == infinity<float>));
    const F magnitude = value(select(extreme, limit, pow_regular(a, y)));
    const F negative =
        value(select(whole.odd, -magnitude, F(value(select(whole.integer | extreme, magnitude, nan<float>)))));
    const P below_zero = value(bit_cast<i32>(x) < 0);
    const F result = value(select(below_zero, negative, magnitude));
    const F one = value(select((x == 1.0f) | (y == 0.0f) | ((a == 1.0f) & (abs(y) == infinity<float>)), 1.0f, result));
    const P undefined = value(((x != x) & (y != 0.0f)) | ((y != y) & (x != 1.0f)));
    return value(select(undefined, nan<float>, one));
}

}  // namespace ikat::stdlib::detail
