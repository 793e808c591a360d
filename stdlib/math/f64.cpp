// SPDX-License-Identifier: Apache-2.0
// The f64 functions of math.hpp, except those of angles. The methods are those of f32 in math.cpp, with more terms.
#include "stdlib/math/math.hpp"
#include "stdlib/math/parts.hpp"

namespace ikat::stdlib::detail {

using D = Leaf<double>;

D exp(const D& x) {
    const Exponential<double> e = exponential(clamp(x, -746.0, 710.0));
    return scale<double>(value(1.0 + e.rest), e.n);
}

D log(const D& x) {
    const Split<double> parts = split(x);
    const D f = value(parts.m - 1.0);  // exact
    // log(1 + f) = 2 atanh(s) = f - (f^2/2 - s (f^2/2 + R)), s = f / (2 + f)
    const D s = value(f / (2.0 + f)), square = value(s * s);
    const D rest = value(square * horner(square, {0x1.5555555555555p-1, 0x1.9999999999f4ap-2, 0x1.24924923d8d53p-2,
                                                  0x1.c71c72e6a0bf3p-3, 0x1.745caa083f891p-3, 0x1.3b2a29705fb2cp-3,
                                                  0x1.0e857c4765545p-3, 0x1.16d0d0a09926bp-3}));
    const D half_square = value(0.5 * f * f);
    const D low = value(fma(parts.e, Constants<double>::ln2_low, s * (half_square + rest)) - half_square);
    const D high = value(fma(parts.e, Constants<double>::ln2_high, f));
    const D error = value(fma(parts.e, Constants<double>::ln2_high, -high) + f);
    return log_of(x, value(high + (low + error)));
}

D tanh(const D& x) {
    const D a = value(abs(x)), square = value(x * x);
    const D q =
        horner(square, {-0x1.555555555554cp-2, 0x1.11111111103abp-3, -0x1.ba1ba1b9444cdp-5, 0x1.664f484c9b4fep-6,
                        -0x1.226e2d6dde265p-7, 0x1.d6d2587e1fd49p-9, -0x1.7d8c6e297bb0ap-10, 0x1.34678ea7a1358p-11,
                        -0x1.e84fcac7c5635p-13, 0x1.5a3617fd404fdp-14, -0x1.3f03ecdb04519p-16});
    return odd(x, value(a < 0.55), value(fma(x * square, q, x)), value(2.0 / (exp(value(2.0 * a)) + 1.0)));
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
    // Beyond 1: 1 - exp(p), where p is a polynomial on each of three pieces.
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
    return odd(x, value(a < 1.0), small, rest);
}

}  // namespace ikat::stdlib::detail
