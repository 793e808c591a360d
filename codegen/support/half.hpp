// SPDX-License-Identifier: Apache-2.0
// Binary floating-point formats and rounding into them, and the host's types for the small ones: half, bfloat16, e4m3,
// e5m2, and pairs of them.
// Every rounding that the hardware does in one step (f64 → f32, f32 → f16, i64 → f32, the sum inside an f16 fma) is
// done in one step here, too, from an exact value significand * 2^exponent.
#pragma once
#include <bit>
#include <compare>
#include <cstdint>

namespace ikat {

/// To nearest even, toward zero, toward minus and plus infinity: PTX's rn, rz, rm, rp.
enum class Rounding : std::uint8_t { Nearest, Zero, Down, Up };

/// A format of floats: how many bits its parts have, and what its largest numbers mean.
struct FloatFormat {
    int mantissa_bits;  // stored
    int exponent_bits;
    bool clamps = false;       // overflow gives the largest number, not infinity
    bool no_infinity = false;  // the highest exponent is used for numbers, too; NaN is all ones
    bool no_nan = false;       // ... and even that is a number
    constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
    constexpr std::uint64_t infinity() const { return ((std::uint64_t{1} << exponent_bits) - 1) << mantissa_bits; }
    /// PTX's canonical NaN: all ones except the sign.
    constexpr std::uint64_t nan() const { return (std::uint64_t{1} << (mantissa_bits + exponent_bits)) - 1; }
    /// The first magnitude that is not a number.
    constexpr std::uint64_t beyond() const { return no_nan ? nan() + 1 : no_infinity ? nan() : infinity(); }
    constexpr std::uint64_t overflow() const { return clamps ? beyond() - 1 : infinity(); }
};
/// The formats of f16, f32, f64 and bf16.
inline constexpr FloatFormat binary16{10, 5}, binary32{23, 8}, binary64{52, 11}, brain16{7, 8};
/// The 8-bit formats of OCP, to which PTX converts only with .satfinite.
inline constexpr FloatFormat four_three{3, 4, true, true}, five_two{2, 5, true};

/// A finite number without its sign: significand * 2^exponent, plus less than one unit of it when `sticky`.
struct ExactMagnitude {
    std::uint64_t significand;
    int exponent;
    bool sticky = false;
};

/// Whether a magnitude with the given last kept bit and remainder (compared to half a unit) rounds away from zero.
constexpr bool rounds_up(Rounding rounding, bool negative, bool odd, std::strong_ordering to_half, bool exact) {
    if (exact) return false;
    switch (rounding) {
        case Rounding::Nearest: return to_half > 0 || (to_half == 0 && odd);
        case Rounding::Zero: return false;
        case Rounding::Down: return negative;
        case Rounding::Up: return !negative;
    }
    return false;
}

/// The bits of the number in `format`, correctly rounded; overflow goes to infinity or the largest finite number,
/// depending on the rounding.
constexpr std::uint64_t encode(bool negative, ExactMagnitude x, FloatFormat format, Rounding rounding) {
    const std::uint64_t sign = std::uint64_t(negative) << (format.mantissa_bits + format.exponent_bits);
    if (x.significand == 0 && !x.sticky) return sign;
    const int leading = 63 - std::countl_zero(x.significand | 1);
    const int lowest = 1 - format.bias() - format.mantissa_bits;  // exponent of the smallest subnormal
    int unit = x.exponent + leading - format.mantissa_bits;       // exponent of the last kept bit
    if (unit < lowest) unit = lowest;
    const int drop = unit - x.exponent;
    std::uint64_t kept = 0;
    std::strong_ordering to_half = std::strong_ordering::less;
    bool exact = !x.sticky;
    if (drop <= 0) {
        kept = x.significand << -drop;
    } else if (drop > 64) {
        exact = false;
    } else {
        kept = drop == 64 ? 0 : x.significand >> drop;
        const std::uint64_t rest = drop == 64 ? x.significand : x.significand & ((std::uint64_t{1} << drop) - 1);
        const std::uint64_t half_unit = std::uint64_t{1} << (drop - 1);
        to_half = rest == half_unit && x.sticky ? std::strong_ordering::greater : rest <=> half_unit;
        exact = exact && rest == 0;
    }
    kept += rounds_up(rounding, negative, kept & 1, to_half, exact);
    // A carry out of the mantissa lands in the exponent field, where it belongs.
    const std::uint64_t exponent_field = kept >> format.mantissa_bits ? std::uint64_t(unit - lowest) : 0;
    const std::uint64_t magnitude = kept + (exponent_field << format.mantissa_bits);
    if (magnitude < format.beyond()) return sign | magnitude;
    const bool away = rounding == Rounding::Nearest || rounds_up(rounding, negative, true, to_half, false);
    return sign | (away ? format.overflow() : format.beyond() - 1);
}

/// A double rounded into `format`, as bits. NaN gives PTX's canonical NaN.
constexpr std::uint64_t encode(double x, FloatFormat format, Rounding rounding, bool sticky = false) {
    const auto bits = std::bit_cast<std::uint64_t>(x);
    const bool negative = bits >> 63;
    const int field = int(bits >> 52 & 0x7ff);
    const std::uint64_t mantissa = bits & 0xfffffffffffffull;
    const std::uint64_t sign = std::uint64_t(negative) << (format.mantissa_bits + format.exponent_bits);
    if (field == 0x7ff && mantissa) return format.nan();
    if (field == 0x7ff) return sign | format.overflow();
    const std::uint64_t significand = field ? mantissa | std::uint64_t{1} << 52 : mantissa;
    return encode(negative, {significand, (field ? field : 1) - 1075, sticky}, format, rounding);
}

/// The value of `bits` in a format of at most 32 bits; a double represents it exactly.
constexpr double decode(std::uint64_t bits, FloatFormat format) {
    const bool negative = bits >> (format.mantissa_bits + format.exponent_bits) & 1;
    const std::uint64_t field = bits >> format.mantissa_bits & ((std::uint64_t{1} << format.exponent_bits) - 1);
    std::uint64_t mantissa = bits & ((std::uint64_t{1} << format.mantissa_bits) - 1);
    const std::uint64_t sign = std::uint64_t(negative) << 63;
    const std::uint64_t magnitude = bits & format.nan();
    if (magnitude >= format.beyond())
        return std::bit_cast<double>(sign | 0x7ff0000000000000ull | mantissa << (52 - format.mantissa_bits));
    int exponent = int(field) - format.bias();
    if (field == 0) {
        if (mantissa == 0) return std::bit_cast<double>(sign);
        const int shift = format.mantissa_bits + 1 - std::bit_width(mantissa);
        mantissa = mantissa << shift & ((std::uint64_t{1} << format.mantissa_bits) - 1);
        exponent = 1 - format.bias() - shift;
    }
    return std::bit_cast<double>(sign | std::uint64_t(exponent + 1023) << 52 | mantissa << (52 - format.mantissa_bits));
}

/// A float of 8 or 16 bits on the host: storage and conversion. Arithmetic happens on the device, or in float.
template <FloatFormat Format, class Bits>
struct SmallFloat {
    static constexpr FloatFormat format = Format;
    Bits bits = 0;

    SmallFloat() = default;
    constexpr explicit SmallFloat(double x, Rounding rounding = Rounding::Nearest)
        : bits(Bits(encode(x, Format, rounding))) {}
    constexpr operator float() const { return float(decode(bits, Format)); }
    /// The number that has these bits.
    static constexpr SmallFloat from_bits(Bits bits) {
        SmallFloat out;
        out.bits = bits;
        return out;
    }
};
using half = SmallFloat<binary16, std::uint16_t>;
using bfloat16 = SmallFloat<brain16, std::uint16_t>;
using e4m3 = SmallFloat<four_three, std::uint8_t>;
using e5m2 = SmallFloat<five_two, std::uint8_t>;
static_assert(sizeof(half) == 2 && sizeof(e4m3) == 1);

/// Whether a type is a SmallFloat: half, bfloat16, e4m3, e5m2.
template <class T>
inline constexpr bool is_small_float = false;
template <FloatFormat Format, class Bits>
inline constexpr bool is_small_float<SmallFloat<Format, Bits>> = true;

/// Two small floats packed in a register, x in its low half.
template <class Lane>
struct alignas(2 * sizeof(Lane)) Pair {
    using lane_type = Lane;
    Lane x{}, y{};
};
using half2 = Pair<half>;
using bfloat16x2 = Pair<bfloat16>;
using e4m3x2 = Pair<e4m3>;
using e5m2x2 = Pair<e5m2>;

/// Whether a type is a Pair of them.
template <class T>
inline constexpr bool is_pair = false;
template <class Lane>
inline constexpr bool is_pair<Pair<Lane>> = true;

}  // namespace ikat
