// SPDX-License-Identifier: Apache-2.0
// Sine, cosine and tangent of math.hpp, for f32 and f64. An angle is first reduced to within pi/4 of 0 by subtracting a
// multiple of pi/2: small angles with pi/2 in three parts, large ones by multiplying with the bits of 2/pi that matter.
#include <iterator>

#include "dsl/threads/control.hpp"
#include "stdlib/math/math.hpp"
#include "stdlib/math/parts.hpp"

namespace ikat::stdlib::detail {
namespace {

using F = Leaf<float>;
using D = Leaf<double>;

/// half_pi[0] + half_pi[1] + half_pi[2] = pi/2, for angles below `near`. sin_tail(r^2) = (sin r - r) / r^3,
/// cos_tail(r^2) = (cos r - 1 + r^2/2) / r^4 for |r| <= pi/4.
template <class T>
struct Circle;

template <>
struct Circle<float> {
    static constexpr float two_over_pi = 0x1.45f306p-1f;
    static constexpr float half_pi[] = {0x1.921fb6p+0f, -0x1.777a5cp-25f, -0x1.ee59dap-50f};
    static constexpr float near = 0x1p+15f;

    static F sin_tail(const F& square) {
        return horner(square, {-0x1.555556p-3f, 0x1.11110ep-7f, -0x1.a013a6p-13f, 0x1.6dbdc4p-19f});
    }
    static F cos_tail(const F& square) { return horner(square, {0x1.555554p-5f, -0x1.6c12d2p-10f, 0x1.9bd856p-16f}); }
};

template <>
struct Circle<double> {
    static constexpr double two_over_pi = 0x1.45f306dc9c883p-1;
    static constexpr double half_pi[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110};
    static constexpr double near = 0x1p+20;

    static D sin_tail(const D& square) {
        return horner(square,
                      {-0x1.5555555555555p-3, 0x1.111111111111p-7, -0x1.a01a01a019936p-13, 0x1.71de3a54604fep-19,
                       -0x1.ae6454124c34fp-26, 0x1.61217eab7b761p-33, -0x1.ab179b6cecc84p-41});
    }
    static D cos_tail(const D& square) {
        return horner(square,
                      {0x1.5555555555555p-5, -0x1.6c16c16c16c16p-10, 0x1.a01a01a019d09p-16, -0x1.27e4fb7712b74p-22,
                       0x1.1eed8deb61c47p-29, -0x1.9394b9b76cd6p-37, 0x1.ab7828a8a66aap-45});
    }
};

/// The bits of 2/pi, after a word of zeros.
constexpr std::uint64_t words[] = {0,
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

/// An angle as quadrant * pi/2 + r + low, where |r| <= pi/4 and low is a fraction of r's last place.
template <class T>
struct Angle {
    Leaf<T> r, low;
    Leaf<IntOf<T>> quadrant;
};

// ---- large angles
//
// |x| = m 2^e with m of 24 bits (f64: 53). x 2/pi / 4 = m 2^(e-2) (2/pi): the bits of 2/pi that only
// contribute whole turns are skipped, and the next 96 bits (192) are used; the rest is below 2^-70 (2^-138).

using U32 = Leaf<std::uint32_t>;
using U64 = Leaf<std::uint64_t>;

/// The bits of 2/pi in words of 32, after a word of zeros.
constexpr std::uint32_t half_word(int i) {
    return i == 0 ? 0 : std::uint32_t(words[(i + 1) / 2] >> (i % 2 != 0 ? 32 : 0));
}

/// half_word(i + offset), i from 0 to 4.
U32 half_word(const U32& i, int offset) {
    const auto from = [&](int k) { return half_word(k + offset); };
    const U32 low = value(select(i == 0, from(0), from(1))), high = value(select(i == 2, from(2), from(3)));
    return value(select(i < 2, low, U32(value(select(i < 4, high, from(4))))));
}

void reduce_large(const F& x, f32& r, f32& low, i32& quadrant) {
    const U32 bits = value(bit_cast<u32>(x));
    const U32 exponent = value((bits >> 23) & 255u);
    const U32 m = value((bits & 0x7fffffu) | 0x800000u);
    const U32 first = value(exponent - (150 + 2 - 32)), i = value(first >> 5), shift = value(first & 31u);
    const U32 w0 = half_word(i, 0), w1 = half_word(i, 1), w2 = half_word(i, 2), w3 = half_word(i, 3);
    const auto times_window = [&](const U32& high, const U32& low) {
        return value(cast<u64>(m) * cast<u64>(high << shift | low >> (32u - shift)));
    };
    const auto bottom = times_window(w2, w3);
    const auto middle = value(times_window(w1, w2) + (bottom >> 32));
    const auto high = value(times_window(w0, w1) + (middle >> 32));
    const auto turn = value(high << 32 | (middle & 0xffffffffu));  // 2^64 is a whole turn
    const auto quarter = value(cast<i32>((turn + (std::uint64_t{1} << 61)) >> 62));
    const D exact = value(cast<f64>(cast<i64>(turn << 2)) * (0x1.921fb54442d18p+0 * 0x1p-64));
    const F rest = value(cast<f32>(exact)), rest_low = value(cast<f32>(exact - cast<f64>(rest)));
    const auto negative = value(x < 0.0f);
    r = select(abs(x) < infinity<float>, F(value(select(negative, -rest, rest))), nan<float>);
    low = select(negative, -rest_low, rest_low);
    quadrant = select(negative, -quarter, quarter);
}

void reduce_large(const D& x, f64& r, f64& low, i64& quadrant) {
    const U64 bits = value(bit_cast<u64>(x));
    const U64 m = value((bits & 0xfffffffffffffu) | 0x10000000000000u);
    const U64 first = value(((bits >> 52) & 2047u) - (1075 + 2 - 64));
    const U32 shift = value(cast<u32>(first) & 63u);
    const U64 i = value(first >> 6);
    u64 w0 = 0, w1 = 0, w2 = 0, w3 = 0;
    for (std::uint64_t word = 0; word + 3 < std::size(words); ++word)
        if_(i == word, [&] {
            w0 = words[word];
            w1 = words[word + 1];
            w2 = words[word + 2];
            w3 = words[word + 3];
        });
    const auto window = [&](const U64& high, const U64& below) {
        return value(high << shift | below >> 1 >> (63u - shift));
    };
    const U64 b0 = window(value(w0), value(w1)), b1 = window(value(w1), value(w2)), b2 = window(value(w2), value(w3));
    // The product m (b0 b1 b2) modulo 2^192, its upper 128 bits.
    const U64 middle_low = value(m * b1), carry = value(mul_hi(m, b2));
    const U64 middle = value(middle_low + carry);
    const U64 top = value(m * b0 + mul_hi(m, b1) + select(middle < carry, std::uint64_t{1}, std::uint64_t{0}));
    const auto quarter = value(cast<i64>((top + (std::uint64_t{1} << 61)) >> 62));
    const U64 turn = value(top << 2 | middle >> 62), turn_low = value(middle << 2);
    // (turn, turn_low) 2^-128 pi/2, in two parts each. turn is signed.
    const auto signed_turn = value(cast<i64>(turn));
    const D high = value(cast<f64>(signed_turn));
    const D rest = value(cast<f64>(signed_turn - cast<i64>(high)) + cast<f64>(turn_low) * 0x1p-64);
    constexpr double half_pi = 0x1.921fb54442d18p+0, half_pi_low = 0x1.1a62633145c07p-54;
    const D product = value(high * (half_pi * 0x1p-64));
    const D product_low =
        value(fma(high, half_pi * 0x1p-64, -product) + fma(rest, half_pi * 0x1p-64, high * (half_pi_low * 0x1p-64)));
    const D sum = value(product + product_low), sum_low = value(product_low - (sum - product));
    const auto negative = value(x < 0.0);
    r = select(abs(x) < infinity<double>, D(value(select(negative, -sum, sum))), nan<double>);
    low = select(negative, -sum_low, sum_low);
    quadrant = select(negative, -quarter, quarter);
}

// ---- any angle

template <class T>
Angle<T> reduce(const Leaf<T>& x) {
    using C = Circle<T>;
    const Leaf<T> shifted = value(fma(x, C::two_over_pi, shifter<T>));
    const Leaf<T> n = value(shifted - shifter<T>);
    const Leaf<T> first = value(fma(n, -C::half_pi[0], x));  // exact
    const Leaf<T> more = value(n * -C::half_pi[1]), more_low = value(fma(n, -C::half_pi[1], -more));
    const Leaf<T> second = value(first + more), added = value(second - first);
    const Leaf<T> error = value((first - (second - added)) + (more - added));  // of the sum, exact
    Var<T> r = second, low = error + fma(n, -C::half_pi[2], more_low);
    Var<IntOf<T>> quadrant = bit_cast<IntOf<T>>(shifted);
    if_(abs(x) >= C::near, [&] { reduce_large(x, r, low, quadrant); });
    return {value(r), value(low), value(quadrant)};
}

/// r^3 tail + low, which is added to r.
template <class T>
Leaf<T> correction(const Angle<T>& angle, const Leaf<T>& square, const Leaf<T>& tail) {
    return value(fma(angle.r * square, tail, angle.low));
}

template <class T>
Leaf<T> cos_near(const Angle<T>& angle, const Leaf<T>& square) {
    const Leaf<T> high = value(fma(square, T(-0.5), T(1)));
    const Leaf<T> tail = value(fma(square * square, Circle<T>::cos_tail(square), -angle.r * angle.low));
    return value(high + (fma(square, T(-0.5), T(1) - high) + tail));
}

/// The sine of the angle plus `more` quadrants.
template <class T>
Leaf<T> sine(const Angle<T>& angle, int more) {
    const Leaf<T> square = value(angle.r * angle.r);
    const Leaf<IntOf<T>> quadrant = value(angle.quadrant + more);
    const Leaf<bool> odd = value((quadrant & 1) != 0), negative = value((quadrant & 2) != 0);
    const Leaf<T> sin_near = value(angle.r + correction(angle, square, Circle<T>::sin_tail(square)));
    const Leaf<T> magnitude = value(select(odd, cos_near(angle, square), sin_near));
    return value(select(negative, -magnitude, magnitude));
}

template <class T>
Leaf<T> sin_of(const Leaf<T>& x) {
    return value(select(x == T(0), x, sine(reduce(x), 0)));
}

}  // namespace

F sin(const F& x) { return sin_of(x); }
D sin(const D& x) { return sin_of(x); }
F cos(const F& x) { return sine(reduce(x), 1); }
D cos(const D& x) { return sine(reduce(x), 1); }

F tan(const F& x) {
    const Angle<float> angle = reduce(x);
    const F square = value(angle.r * angle.r);
    const F tail = horner(square, {0x1.555556p-2f, 0x1.111088p-3f, 0x1.ba52bp-5f, 0x1.623c3ep-6f, 0x1.4679eep-7f,
                                   0x1.3641bp-10f, 0x1.f7ddfp-9f});
    const F rest = correction(angle, square, tail);
    const F t = value(angle.r + rest), t_low = value(rest - (t - angle.r));
    const F reciprocal = value(rcp(t)), left = value(fma(-t_low, reciprocal, fma(-t, reciprocal, 1.0f)));
    const F cotangent = value(fma(reciprocal, left, reciprocal));
    return value(select(x == 0.0f, x, F(value(select((angle.quadrant & 1) != 0, -cotangent, t)))));
}

}  // namespace ikat::stdlib::detail
