// SPDX-License-Identifier: Apache-2.0
// The f64 functions of math.hpp. They go the same ways as those of f32 in math.cpp, with more terms.
#include <initializer_list>
#include <limits>

#include "dsl/control.hpp"
#include "stdlib/math.hpp"

namespace ikat::stdlib::detail {
namespace {

using D = Leaf<double>;
using I = Leaf<std::int64_t>;
using U = Leaf<std::uint64_t>;
using P = Leaf<bool>;

constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
/// 1.5 * 2^52: adding it rounds |x| < 2^51 to an integer, which then stands in the low bits.
constexpr double shifter = 0x1.8p+52;
constexpr double ln2_high = 0x1.62e42fefa39efp-1, ln2_low = 0x1.abc9e3b39803fp-56;

D horner(const D& x, std::initializer_list<double> coefficients) {
    const double* c = coefficients.end() - 1;
    D sum = value(fma(x, c[0], c[-1]));
    for (c -= 2; c >= coefficients.begin(); --c) sum = value(fma(sum, x, *c));
    return sum;
}

D clamp(const D& x, double low, double high) {
    const D above = value(select(x < low, low, x));
    return value(select(above > high, high, above));
}

D with_sign_of(const D& x, const D& sign) {
    return value(bit_cast<f64>(bit_cast<u64>(x) | (bit_cast<u64>(sign) & 0x8000000000000000u)));
}

D power_of_two(const I& n) { return value(bit_cast<f64>((n + 1023) << 52)); }

/// p 2^n for 1/2 < p < 2, rounded once: the first product is exact.
D scale(const D& p, const I& n) {
    const I half = value(n >> 1);
    return value(p * power_of_two(half) * power_of_two(value(n - half)));
}

struct Angle {
    D r, low;
    I quadrant;
};

/// The bits of 2/pi, behind a word of zeros.
constexpr std::uint64_t two_over_pi[] = {0,
                                         0xa2f9836e4e441529,
                                         0xfc2757d1f534ddc0,
                                         0xdb6295993c439041,
                                         0xfe5163abdebbc561,
                                         0xb7246e3a424dd2e0,
                                         0x06492eea09d1921c,
                                         0xfe1deb1cb129a73e,
                                         0xe88235f52ebb4484,
                                         0xe99c7026b45f7e41,
                                         0x3991d639835339f4,
                                         0x9c845f8bbdf9283b,
                                         0x1ff897ffde05980f,
                                         0xef2f118b5a0a6d1f,
                                         0x6d367ecf27cb09b7,
                                         0x4f463f669e5fea2d,
                                         0x7527bac7ebe5f17b,
                                         0x3d0739f78a5292ea,
                                         0x6bfb5fb11f8d5d08,
                                         0x56033046fc7b6bab};

/// As for f32: |x| = m 2^e, and 192 bits of 2/pi behind those that make whole turns.
void reduce_large(const D& x, f64& r, f64& low, i64& quadrant) {
    const U bits = value(bit_cast<u64>(x));
    const U m = value((bits & 0xfffffffffffffu) | 0x10000000000000u);
    const U first = value(((bits >> 52) & 2047u) - (1075 + 2 - 64));
    const Leaf<std::uint32_t> shift = value(cast<u32>(first) & 63u);
    const U i = value(first >> 6);
    u64 w0 = 0, w1 = 0, w2 = 0, w3 = 0;
    for (std::uint64_t word = 0; word + 3 < std::size(two_over_pi); ++word)
        if_(i == word, [&] {
            w0 = two_over_pi[word];
            w1 = two_over_pi[word + 1];
            w2 = two_over_pi[word + 2];
            w3 = two_over_pi[word + 3];
        });
    const auto window = [&](const U& high, const U& below) {
        return value(high << shift | below >> 1 >> (63u - shift));
    };
    const U b0 = window(value(w0), value(w1)), b1 = window(value(w1), value(w2)), b2 = window(value(w2), value(w3));
    // The product m (b0 b1 b2) modulo 2^192, its upper 128 bits.
    const U middle_low = value(m * b1), carry = value(mul_hi(m, b2));
    const U middle = value(middle_low + carry);
    const U top = value(m * b0 + mul_hi(m, b1) + select(middle < carry, std::uint64_t{1}, std::uint64_t{0}));
    const I quarter = value(cast<i64>((top + (std::uint64_t{1} << 61)) >> 62));
    const U turn = value(top << 2 | middle >> 62), turn_low = value(middle << 2);
    // (turn, turn_low) 2^-128 pi/2, in two parts each. turn is signed.
    const I signed_turn = value(cast<i64>(turn));
    const D high = value(cast<f64>(signed_turn));
    const D rest = value(cast<f64>(signed_turn - cast<i64>(high)) + cast<f64>(turn_low) * 0x1p-64);
    constexpr double half_pi = 0x1.921fb54442d18p+0, half_pi_low = 0x1.1a62633145c07p-54;
    const D product = value(high * (half_pi * 0x1p-64));
    const D product_low =
        value(fma(high, half_pi * 0x1p-64, -product) + fma(rest, half_pi * 0x1p-64, high * (half_pi_low * 0x1p-64)));
    const D sum = value(product + product_low), sum_low = value(product_low - (sum - product));
    const P negative = value(x < 0.0);
    r = select(abs(x) < infinity, D(value(select(negative, -sum, sum))), nan);
    low = select(negative, -sum_low, sum_low);
    quadrant = select(negative, -quarter, quarter);
}

Angle reduce(const D& x) {
    const D k = value(fma(x, 0x1.45f306dc9c883p-1, shifter));
    const D n = value(k - shifter);
    const D first = value(fma(n, -0x1.921fb54442d18p+0, x));  // exact
    const D more = value(n * -0x1.1a62633145c07p-54), more_low = value(fma(n, -0x1.1a62633145c07p-54, -more));
    const D second = value(first + more), added = value(second - first);
    const D error = value((first - (second - added)) + (more - added));  // of the sum, exact
    f64 r = second, low = error + fma(n, 0x1.f1976b7ed8fbcp-110, more_low);
    i64 quadrant = bit_cast<i64>(k);
    if_(abs(x) >= 0x1p+20, [&] { reduce_large(x, r, low, quadrant); });
    return {value(r), value(low), value(quadrant)};
}

D sine(const Angle& angle, const I& quadrant) {
    const D square = value(angle.r * angle.r);
    const D s =
        horner(square, {-0x1.5555555555555p-3, 0x1.111111111111p-7, -0x1.a01a01a019936p-13, 0x1.71de3a54604fep-19,
                        -0x1.ae6454124c34fp-26, 0x1.61217eab7b761p-33, -0x1.ab179b6cecc84p-41});
    const D of_sine = value(angle.r + fma(angle.r * square, s, angle.low));
    const D c =
        horner(square, {0x1.5555555555555p-5, -0x1.6c16c16c16c16p-10, 0x1.a01a01a019d09p-16, -0x1.27e4fb7712b74p-22,
                        0x1.1eed8deb61c47p-29, -0x1.9394b9b76cd6p-37, 0x1.ab7828a8a66aap-45});
    const D high = value(fma(square, -0.5, 1.0));
    const D of_cosine = value(high + (fma(square, -0.5, 1.0 - high) + fma(square * square, c, -angle.r * angle.low)));
    const D magnitude = value(select((quadrant & 1) != 0, of_cosine, of_sine));
    return value(select((quadrant & 2) != 0, -magnitude, magnitude));
}

}  // namespace

D exp(const D& x) {
    const D c = clamp(x, -746.0, 710.0);
    const D shifted = value(fma(c, 0x1.71547652b82fep+0, shifter));
    const D n = value(shifted - shifter);
    const D r = value(fma(n, -ln2_low, fma(n, -ln2_high, c)));
    const D q = horner(r, {0x1p-1, 0x1.5555555555557p-3, 0x1.5555555555556p-5, 0x1.11111111100dfp-7,
                           0x1.6c16c16c162d6p-10, 0x1.a01a01abe62ddp-13, 0x1.a01a01a6d7808p-16, 0x1.71de02375656cp-19,
                           0x1.27e4db67b4303p-22, 0x1.af4ddd84882fep-26, 0x1.1f72fc730b4ffp-29});
    return scale(value(1.0 + fma(r * r, q, r)), value(cast<i64>(n)));
}

D log(const D& x) {
    const P tiny = value(x < 0x1p-1022);
    const D normal = value(select(tiny, x * 0x1p+54, x));
    constexpr std::int64_t two_thirds = 0x3fe5555555555555;
    const I bits = value(bit_cast<i64>(normal));
    const I exponent = value((bits - two_thirds) >> 52);
    const D m = value(bit_cast<f64>(bits - (exponent << 52)));
    const D e = value(cast<f64>(exponent) - select(tiny, 54.0, 0.0));
    const D f = value(m - 1.0);  // exact
    // log(1 + f) = 2 atanh(s) = f - (f^2/2 - s (f^2/2 + R)), s = f / (2 + f)
    const D s = value(f / (2.0 + f)), square = value(s * s);
    const D rest = value(square * horner(square, {0x1.5555555555555p-1, 0x1.9999999999f4ap-2, 0x1.24924923d8d53p-2,
                                                  0x1.c71c72e6a0bf3p-3, 0x1.745caa083f891p-3, 0x1.3b2a29705fb2cp-3,
                                                  0x1.0e857c4765545p-3, 0x1.16d0d0a09926bp-3}));
    const D half_square = value(0.5 * f * f);
    const D low = value(fma(e, ln2_low, s * (half_square + rest)) - half_square);
    const D high = value(fma(e, ln2_high, f));
    const D error = value(fma(e, ln2_high, -high) + f);
    const D regular = value(high + (low + error));
    const D finite = value(select(x < infinity, regular, x + infinity));
    const D positive = value(select(x < 0.0, nan, finite));
    return value(select(x == 0.0, -infinity, positive));
}

D sin(const D& x) {
    const Angle angle = reduce(x);
    return value(select(x == 0.0, x, sine(angle, angle.quadrant)));
}

D cos(const D& x) {
    const Angle angle = reduce(x);
    return sine(angle, value(angle.quadrant + 1));
}

D tanh(const D& x) {
    const D a = value(abs(x)), square = value(x * x);
    const D q =
        horner(square, {-0x1.5555555555555p-2, 0x1.11111111110ecp-3, -0x1.ba1ba1ba15daap-5, 0x1.664f487fed22ap-6,
                        -0x1.226e34a851d2cp-7, 0x1.d6d39b48449bfp-9, -0x1.7d9e74586c684p-10, 0x1.350ce30757046p-11,
                        -0x1.efab6555ccc22p-13, 0x1.71eb85bee4b4ap-14, -0x1.8117b15cbb104p-16});
    const D small = value(fma(x * square, q, x));
    const D large = with_sign_of(value(1.0 - 2.0 / (exp(value(2.0 * a)) + 1.0)), x);
    return value(select(x == 0.0, x, D(value(select(a < 0.5, small, large)))));
}

D erf(const D& x) {
    const D a = value(abs(x));
    const D small = value(fma(
        x,
        horner(value(x * x), {0x1.06eba8214db69p-3, -0x1.812746b0379e6p-2, 0x1.ce2f21a042b3p-4, -0x1.b82ce31284e0p-6,
                              0x1.565bcd0dbaa38p-8, -0x1.c02db3dac435fp-11, 0x1.f9a321d5b8e1ep-14,
                              -0x1.f4d1e3183f7aep-17, 0x1.b9df224ca4b97p-20, -0x1.5f1ecb6f0764cp-23,
                              0x1.f7b4bf3b13964p-27, -0x1.389d4f2641625p-30, 0x1.05ffd737fb32ep-34}),
        x));
    // Beyond 1, 1 - exp(the logarithm of the rest), which is a polynomial on each of three pieces.
    const D c = clamp(a, 0.0, 6.0);
    const D near =
        horner(c, {-0x1.bc4bcb9721435p-22, -0x1.20dd2a1691e3bp+0, -0x1.45f5f73fb8392p-1, -0x1.a4ac117bed785p-4,
                   0x1.36f8bf79a57edp-6, 0x1.cd398fa0fe738p-12, -0x1.019ffaa1d7f26p-9, 0x1.b26fc8dc3b7c3p-11,
                   -0x1.835f1a8f5335ap-13, 0x1.88b103eeab383p-17, 0x1.e4990fa17d035p-18, -0x1.86fd1965c3cf5p-19,
                   0x1.295f2ae8ba214p-21, -0x1.ef43a1f71feecp-25, 0x1.6c1b8209733e7p-29});
    const D middle =
        horner(c, {-0x1.2bfc65abb7c31p-18, -0x1.20da8c8f7791p+0, -0x1.460bb3c957496p-1, -0x1.a303ad03677ebp-4,
                   0x1.2c1d696d9b4c7p-6, 0x1.3f99fab3775ep-10, -0x1.5b45986a38b94p-9, 0x1.5110da4b2cd2ap-10,
                   -0x1.b7bc09b1ad45bp-12, 0x1.b40237915e806p-14, -0x1.52afbf486baddp-16, 0x1.9c96f339c1e38p-19,
                   -0x1.83d019458a8f7p-22, 0x1.10160f56d1923p-25, -0x1.0c9988a85e282p-29, 0x1.4cfe67166e51cp-34,
                   -0x1.861b46e2d0e26p-40});
    const D far = horner(c, {0x1.b7d8a1cdfda2bp-10, -0x1.22a23892e1596p+0, -0x1.3f36b0854e746p-1, -0x1.e41e6437ab0a2p-4,
                             0x1.025bf786802e4p-5, -0x1.c7cd5ee239fcdp-8, 0x1.4755931850f6cp-10, -0x1.797702512135cp-13,
                             0x1.5776cb9ad032fp-16, -0x1.e155d6f4a129cp-20, 0x1.f49bce85a3db6p-24,
                             -0x1.6b9d3217a1d8fp-28, 0x1.4915952cd2ba8p-33, -0x1.17440a2f39999p-39});
    const D rest = exp(D(value(select(c < 2.0, near, D(value(select(c < 4.0, middle, far)))))));
    const D large = with_sign_of(value(1.0 - rest), x);
    return value(select(x == 0.0, x, D(value(select(a < 1.0, small, large)))));
}

}  // namespace ikat::stdlib::detail
