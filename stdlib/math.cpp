// SPDX-License-Identifier: Apache-2.0
// The f32 functions of math.hpp. Where a step is exact the comment says so; everything else is within the bounds that
// math.hpp states.
#include "stdlib/math.hpp"

#include <initializer_list>
#include <limits>

#include "dsl/control.hpp"

namespace ikat::stdlib::detail {
namespace {

using F = Leaf<float>;
using I = Leaf<std::int32_t>;
using U = Leaf<std::uint32_t>;
using P = Leaf<bool>;

constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
/// 1.5 * 2^23: adding it rounds |x| < 2^22 to an integer, which then stands in the low bits.
constexpr float shifter = 0x1.8p+23f;
constexpr std::int32_t shifter_bits = 0x4b400000;
constexpr float ln2_high = 0x1.62e43p-1f, ln2_low = -0x1.05c61p-29f;
constexpr float log2e_high = 0x1.715476p+0f, log2e_low = 0x1.4ae0cp-26f;

/// c0 + x (c1 + x (c2 + ...)).
F horner(const F& x, std::initializer_list<float> coefficients) {
    const float* c = coefficients.end() - 1;
    F sum = value(fma(x, c[0], c[-1]));
    for (c -= 2; c >= coefficients.begin(); --c) sum = value(fma(sum, x, *c));
    return sum;
}

/// x within [low, high]; NaN stays NaN.
F clamp(const F& x, float low, float high) {
    const F above = value(select(x < low, low, x));
    return value(select(above > high, high, above));
}

/// The sign of `sign` on the magnitude x >= 0.
F with_sign_of(const F& x, const F& sign) {
    return value(bit_cast<f32>(bit_cast<u32>(x) | (bit_cast<u32>(sign) & 0x80000000u)));
}

/// 2^n for -126 <= n <= 127.
F power_of_two(const I& n) { return value(bit_cast<f32>((n + 127) << 23)); }

/// p 2^n for 1/2 < p < 2 and -252 <= n <= 254, rounded once: the first product is exact.
F scale(const F& p, const I& n) {
    const I half = value(n >> 1);
    return value(p * power_of_two(half) * power_of_two(value(n - half)));
}

struct Rounded {
    F value;
    I integer;
};
/// x, |x| < 2^22, to nearest.
Rounded round(const auto& x) {
    const F shifted = value(x + shifter);
    return {value(shifted - shifter), value(bit_cast<i32>(shifted) - shifter_bits)};
}

/// 2^r - 1 over r, |r| <= 1/2.
F exp2_polynomial(const F& r) {
    return horner(r, {0x1.62e43p-1f, 0x1.ebfbep-3f, 0x1.c6b08ep-5f, 0x1.3b2a1cp-7f, 0x1.5d879ep-10f, 0x1.444p-13f,
                      0x1.00a582p-16f});
}

/// exp x = 2^n (1 + rest), |rest| < 0.42.
struct Exponential {
    F rest;
    I n;
};
Exponential exponential(const F& x) {
    const F shifted = value(fma(x, log2e_high, shifter));
    const F n = value(shifted - shifter);
    const F r = value(fma(n, -ln2_low, fma(n, -ln2_high, x)));
    const F q = horner(r, {0x1p-1f, 0x1.555556p-3f, 0x1.5554eap-5f, 0x1.1110ep-7f, 0x1.6d4316p-10f, 0x1.a124e4p-13f});
    return {value(fma(r * r, q, r)), value(bit_cast<i32>(shifted) - shifter_bits)};
}

/// A number as m 2^e, m from 2/3 to 4/3; of those that are positive and finite.
struct Split {
    F m, e;
};
Split split(const F& x) {
    const P tiny = value(x < 0x1p-126f);
    const F normal = value(select(tiny, x * 0x1p+24f, x));
    constexpr std::int32_t two_thirds = 0x3f2aaaab;
    const I bits = value(bit_cast<i32>(normal));
    const I exponent = value((bits - two_thirds) >> 23);
    const F m = value(bit_cast<f32>(bits - (exponent << 23)));
    return {m, value(cast<f32>(exponent) - select(tiny, 24.0f, 0.0f))};
}

/// What a logarithm is where it is not that of a positive finite number.
F log_of(const F& x, const F& regular) {
    const F finite = value(select(x < infinity, regular, x + infinity));  // NaN and infinity stay
    const F positive = value(select(x < 0.0f, nan, finite));
    return value(select(x == 0.0f, -infinity, positive));
}

/// An angle as quadrant * pi/2 + r + low, |r| <= pi/4, low a fraction of r's last place.
struct Angle {
    F r, low;
    I quadrant;
};

/// The bits of 2/pi, behind a word of zeros.
constexpr std::uint32_t two_over_pi[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                         0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};

/// two_over_pi[i + offset], i from 0 to 4.
U word(const U& i, int offset) {
    const std::uint32_t* const from = two_over_pi + offset;
    const U low = value(select(i == 0, from[0], from[1])), high = value(select(i == 2, from[2], from[3]));
    return value(select(i < 2, low, U(value(select(i < 4, high, from[4])))));
}

/// 32 bits of 2/pi from bit `shift` of high:low on.
U window(const U& high, const U& low, const U& shift) { return value(high << shift | low >> (32u - shift)); }

/// |x| = m 2^e with 24 bits of m. x 2/pi / 4 = m 2^(e-2) (2/pi): of 2/pi, the bits that make whole numbers of it are
/// left out, and 96 bits behind them taken; the rest is below 2^-70.
void reduce_large(const F& x, f32& r, f32& low, i32& quadrant) {
    const U bits = value(bit_cast<u32>(x));
    const U exponent = value((bits >> 23) & 255u);
    const U m = value((bits & 0x7fffffu) | 0x800000u);
    const U first = value(exponent - (150 + 2 - 32)), i = value(first >> 5), shift = value(first & 31u);
    const U w0 = word(i, 0), w1 = word(i, 1), w2 = word(i, 2), w3 = word(i, 3);
    const auto product = [&](const U& w) { return value(cast<u64>(m) * cast<u64>(w)); };
    const auto bottom = product(window(w2, w3, shift));
    const auto middle = value(product(window(w1, w2, shift)) + (bottom >> 32));
    const auto high = value(product(window(w0, w1, shift)) + (middle >> 32));
    const auto turn = value(high << 32 | (middle & 0xffffffffu));  // 2^64 is a whole one
    const I quarter = value(cast<i32>((turn + (std::uint64_t{1} << 61)) >> 62));
    const auto exact = value(cast<f64>(cast<i64>(turn << 2)) * (0x1.921fb54442d18p+0 * 0x1p-64));
    const F rest = value(cast<f32>(exact)), rest_low = value(cast<f32>(exact - cast<f64>(rest)));
    const P negative = value(x < 0.0f);
    r = select(abs(x) < infinity, F(value(select(negative, -rest, rest))), nan);
    low = select(negative, -rest_low, rest_low);
    quadrant = select(negative, -quarter, quarter);
}

Angle reduce(const F& x) {
    const F k = value(fma(x, 0x1.45f306p-1f, shifter));
    const F n = value(k - shifter);
    const F first = value(fma(n, -0x1.921fb6p+0f, x));  // exact
    const F more = value(n * 0x1.777a5cp-25f), more_low = value(fma(n, 0x1.777a5cp-25f, -more));
    const F second = value(first + more), added = value(second - first);
    const F error = value((first - (second - added)) + (more - added));  // of the sum, exact
    f32 r = second, low = error + fma(n, 0x1.ee59dap-50f, more_low);
    i32 quadrant = bit_cast<i32>(k);
    if_(abs(x) >= 0x1p+15f, [&] { reduce_large(x, r, low, quadrant); });
    return {value(r), value(low), value(quadrant)};
}

F sin_polynomial(const Angle& angle, const F& square) {
    const F p = horner(square, {-0x1.555556p-3f, 0x1.11110ep-7f, -0x1.a013a6p-13f, 0x1.6dbdc4p-19f});
    return value(angle.r + fma(angle.r * square, p, angle.low));
}
F cos_polynomial(const Angle& angle, const F& square) {
    const F p = horner(square, {0x1.555554p-5f, -0x1.6c12d2p-10f, 0x1.9bd856p-16f});
    const F high = value(fma(square, -0.5f, 1.0f));
    const F rest = value(fma(square, -0.5f, 1.0f - high) + fma(square * square, p, -angle.r * angle.low));
    return value(high + rest);
}

/// The sine of an angle in the given quadrant.
F sine(const Angle& angle, const I& quadrant) {
    const F square = value(angle.r * angle.r);
    const P odd = value((quadrant & 1) != 0), negative = value((quadrant & 2) != 0);
    const F magnitude = value(select(odd, cos_polynomial(angle, square), sin_polynomial(angle, square)));
    return value(select(negative, -magnitude, magnitude));
}

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

/// A number of nearly 48 bits as the sum of two.
struct Pair {
    F high, low;
};

/// log2 of a positive finite number: log2(m) = 2/ln2 (s + s^3/3 + ...), s = (m - 1) / (m + 1).
Pair log2_pair(const F& x) {
    const Split parts = split(x);
    const F f = value(parts.m - 1.0f);  // exact
    const F g = value(parts.m + 1.0f);
    const F g_low = value(parts.m - (g - 1.0f));
    const F s = value(f / g);
    const F s_low = value(fma(-s, g_low, fma(-s, g, f)) / g);
    const F square = value(s * s);
    const F tail = value(s * square * horner(square, {0x1.ec709ep-1f, 0x1.27775ep-1f, 0x1.a58392p-2f, 0x1.5ef13cp-2f}));
    const F product = value(s * (2 * log2e_high));
    const F product_low = value(fma(s, 2 * log2e_high, -product));
    const F low = value(fma(s_low, 2 * log2e_high, fma(s, 2 * log2e_low, product_low)) + tail);
    const F sum = value(parts.e + product);  // |e| > |product| or e = 0
    const F rest = value((product - (sum - parts.e)) + low);
    const F high = value(sum + rest);
    return {high, value(rest - (high - sum))};
}

/// x^y for x positive and finite, y finite.
F pow_regular(const F& x, const F& y) {
    const Pair log = log2_pair(x);
    const F product = value(y * log.high);
    const F low = value(fma(y, log.low, fma(y, log.high, -product)));
    const P in_range = value(abs(product) < 200.0f);
    const F exponent = value(select(in_range, product, F(value(select(product > 0.0f, 200.0f, -200.0f)))));
    const Rounded n = round(exponent);
    const F r = value((exponent - n.value) + select(in_range, low, 0.0f));
    return scale(value(fma(r, exp2_polynomial(r), 1.0f)), n.integer);
}

}  // namespace

F exp(const F& x) {
    const Exponential e = exponential(clamp(x, -105.0f, 90.0f));
    return scale(value(1.0f + e.rest), e.n);
}

F expm1(const F& x) {
    const Exponential e = exponential(clamp(x, -18.0f, 60.0f));
    const F power = power_of_two(e.n);
    const F below = value(fma(e.rest, power, power - 1.0f));
    return value(select(x == 0.0f, x, F(value(select(x < 60.0f, below, exp(x))))));
}

F exp2(const F& x) {
    const F c = clamp(x, -151.0f, 129.0f);
    const Rounded n = round(c);
    const F r = value(c - n.value);  // exact
    return scale(value(fma(r, exp2_polynomial(r), 1.0f)), n.integer);
}

F log(const F& x) {
    const Split parts = split(x);
    const F f = value(parts.m - 1.0f);  // exact
    const F q = horner(f, {-0x1p-1f, 0x1.55552cp-2f, -0x1.ffffb6p-3f, 0x1.99bf86p-3f, -0x1.557832p-3f, 0x1.1fdcfp-3f,
                           -0x1.f75896p-4f, 0x1.1990bcp-3f, -0x1.fcd036p-4f});
    const F low = value(fma(f * f, q, parts.e * ln2_low));
    const F high = value(fma(parts.e, ln2_high, f));
    const F error = value(fma(parts.e, ln2_high, -high) + f);
    return log_of(x, value(high + (low + error)));
}

F log2(const F& x) {
    const Split parts = split(x);
    const F f = value(parts.m - 1.0f);  // exact
    const F q = horner(f, {-0x1.715476p-1f, 0x1.ec7062p-2f, -0x1.71544p-2f, 0x1.279222p-2f, -0x1.eca2eap-3f,
                           0x1.9f4c7p-3f, -0x1.6b1662p-3f, 0x1.963684p-3f, -0x1.6f0804p-3f});
    const F product = value(f * log2e_high);
    const F low = value(fma(f, log2e_high, -product) + fma(f * f, q, f * log2e_low));
    const F high = value(parts.e + product);
    return log_of(x, value(high + ((product - (high - parts.e)) + low)));
}

F sin(const F& x) {
    const Angle angle = reduce(x);
    return value(select(x == 0.0f, x, sine(angle, angle.quadrant)));
}

F cos(const F& x) {
    const Angle angle = reduce(x);
    return sine(angle, value(angle.quadrant + 1));
}

F tan(const F& x) {
    const Angle angle = reduce(x);
    const F square = value(angle.r * angle.r);
    const F p = horner(square, {0x1.555556p-2f, 0x1.111088p-3f, 0x1.ba52bp-5f, 0x1.623c3ep-6f, 0x1.4679eep-7f,
                                0x1.3641bp-10f, 0x1.f7ddfp-9f});
    const F t = value(angle.r + fma(angle.r * square, p, angle.low));
    return value(select(x == 0.0f, x, F(value(select((angle.quadrant & 1) != 0, -rcp(t), t)))));
}

F tanh(const F& x) {
    const F a = value(abs(x)), square = value(x * x);
    const F q = horner(
        square, {-0x1.555556p-2f, 0x1.1110f6p-3f, -0x1.ba0d94p-5f, 0x1.64fad8p-6f, -0x1.1394cap-7f, 0x1.36bdb2p-9f});
    const F small = value(fma(x * square, q, x));
    const F large = with_sign_of(value(1.0f - 2.0f / (exp(value(2.0f * a)) + 1.0f)), x);
    return value(select(x == 0.0f, x, F(value(select(a < 0.6f, small, large)))));
}

F erf(const F& x) {
    const F a = value(abs(x));
    const F small = value(fma(x,
                              horner(value(x * x), {0x1.06eba8p-3f, -0x1.81273ep-2f, 0x1.ce2d1p-4f, -0x1.b7fabap-6f,
                                                    0x1.541272p-8f, -0x1.a45088p-11f, 0x1.4a569p-14f}),
                              x));
    const F log_of_rest = horner(clamp(a, 0.0f, 4.0f),
                                 {0x1.4fb068p-12f, -0x1.2156fap+0f, -0x1.437eb4p-1f, -0x1.c2e356p-4f, 0x1.b0e246p-6f,
                                  -0x1.37ecc6p-8f, 0x1.38e5e6p-11f, -0x1.825ce4p-15f, 0x1.b77832p-20f});
    const F large = with_sign_of(value(1.0f - exp(log_of_rest)), x);
    return value(select(x == 0.0f, x, F(value(select(a < 1.0f, small, large)))));
}

F sigmoid(const F& x) {
    const F e = exp(value(-abs(x)));
    return value(select(x < 0.0f, e, 1.0f) / (1.0f + e));
}

F gelu(const F& x) {
    const F half = value(0.5f * x);
    return value(fma(half, erf(value(x * 0x1.6a09e6p-1f)), half));
}

F gelu_tanh(const F& x) { return value(x * sigmoid(value(x * fma(x * x, 0x1.2444f2p-4f, 0x1.988454p+0f)))); }

F pow(const F& x, const F& y) {
    const F a = value(abs(x));
    const Parity whole = parity(y);
    const P growing = value((a > 1.0f) ^ (y < 0.0f));  // the limit for large |y|, or x 0 or infinite, is infinity
    const F limit = value(select(growing, infinity, 0.0f));
    const P extreme = value((a == 0.0f) | (a == infinity) | (abs(y) == infinity));
    const F magnitude = value(select(extreme, limit, pow_regular(a, y)));
    const F negative = value(select(whole.odd, -magnitude, F(value(select(whole.integer | extreme, magnitude, nan)))));
    const P below_zero = value(bit_cast<i32>(x) < 0);
    const F result = value(select(below_zero, negative, magnitude));
    const F one = value(select((x == 1.0f) | (y == 0.0f) | ((a == 1.0f) & (abs(y) == infinity)), 1.0f, result));
    const P undefined = value(((x != x) & (y != 0.0f)) | ((y != y) & (x != 1.0f)));
    return value(select(undefined, nan, one));
}

}  // namespace ikat::stdlib::detail
