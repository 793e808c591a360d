// SPDX-License-Identifier: Apache-2.0
// What every pure op of ops.def means, in C++: one line each, for any type of its domain. The constant folder and the
// emulator call these same functions, so a folded kernel and an emulated one cannot disagree.
//
// The rules are PTX's: integers wrap; shifts clamp their amount; min and max of a NaN and a number give the number, and
// order -0 below +0; a NaN result is the canonical one (all ones except the sign). Division of an integer by zero,
// which PTX leaves undefined, gives what the hardware gives: all ones, and the dividend as remainder; it is not folded.
// Approximate ops (those with an .ulp column) are computed to nearest here.
#pragma once
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "codegen/ir/op/bit_semantics.hpp"
#include "codegen/support/half.hpp"

namespace ikat::ir::sem {

template <class T>
inline constexpr bool is_float = std::floating_point<T> || is_small_float<T>;

/// Integers compute as unsigned, where overflow is defined, and in at least 32 bits: narrower ones would promote to
/// int.
template <class T>
IKAT_INLINE constexpr auto wrap(T x) {
    if constexpr (!std::integral<T>)
        return x;
    else if constexpr (sizeof(T) < 4)
        return std::uint32_t(x);
    else
        return std::make_unsigned_t<T>(x);
}

/// f16 and bf16 compute in float: 24 bits are enough to make double rounding harmless for + - * / and sqrt.
template <class T>
IKAT_INLINE constexpr auto wide(T x) {
    if constexpr (is_small_float<T>)
        return float(x);
    else
        return x;
}

/// The type of one lane of a packed type.
template <class T>
struct LaneOf {
    using type = T;
};
template <class T>
struct LaneOf<Pair<T>> {
    using type = T;
};
template <class T>
using Lane = typename LaneOf<T>::type;

template <class T>
IKAT_INLINE constexpr T canonical_nan() {
    if constexpr (is_small_float<T>)
        return T::from_bits(decltype(T::bits)(T::format.nan()));
    else if constexpr (std::same_as<T, float>)
        return std::bit_cast<float>(0x7fffffffu);
    else
        return std::bit_cast<double>(0x7fffffffffffffffull);
}

/// A computed float as T, with a canonical NaN.
template <class T>
IKAT_INLINE constexpr T result(auto x) {
    if constexpr (is_small_float<T>)
        return T(double(x));
    else
        return x != x ? canonical_nan<T>() : T(x);
}

template <class T>
IKAT_INLINE constexpr bool sign_bit(T x) {
    if constexpr (is_small_float<T>)
        return x.bits >> (sizeof(T) * 8 - 1);
    else if constexpr (std::same_as<T, float>)
        return std::bit_cast<std::uint32_t>(x) >> 31;
    else
        return std::bit_cast<std::uint64_t>(x) >> 63;
}

template <class T>
IKAT_INLINE constexpr T fma(T a, T b, T c) {
    if constexpr (is_small_float<T>) {
        // The product is exact in double; the sum is not always, so its error decides the last bit (round to odd).
        const double product = double(float(a)) * double(float(b)), addend = float(c), sum = product + addend;
        if (!(std::abs(sum) < std::numeric_limits<double>::infinity())) return result<T>(sum);
        const double shadow = sum - product, error = (product - (sum - shadow)) + (addend - shadow);
        auto bits = std::bit_cast<std::uint64_t>(sum);
        if (error != 0 && !(bits & 1)) bits += (error > 0) == (sum > 0) ? 1 : std::uint64_t(-1);
        return T(std::bit_cast<double>(bits));
    } else if constexpr (std::same_as<T, float>) {
        return result<float>(__builtin_fmaf(a, b, c));
    } else {
        return result<double>(__builtin_fma(a, b, c));
    }
}

template <class T>
IKAT_INLINE constexpr T minimum(T a, T b) {
    if constexpr (is_float<T>) {
        const auto x = wide(a), y = wide(b);
        const T ordered = x == y ? (sign_bit(a) ? a : b) : (x < y ? a : b);  // b, when a is a NaN
        const T number = y != y ? a : ordered;
        return wide(number) != wide(number) ? canonical_nan<T>() : number;
    } else {
        return a < b ? a : b;
    }
}

template <class T>
IKAT_INLINE constexpr T maximum(T a, T b) {
    if constexpr (is_float<T>) {
        const auto x = wide(a), y = wide(b);
        const T ordered = x == y ? (sign_bit(b) ? a : b) : (x > y ? a : b);  // b, when a is a NaN
        const T number = y != y ? a : ordered;
        return wide(number) != wide(number) ? canonical_nan<T>() : number;
    } else {
        return a > b ? a : b;
    }
}

template <class T>
IKAT_INLINE constexpr T divide(T a, T b) {
    if constexpr (is_float<T>)
        return result<T>(wide(a) / wide(b));
    else if (b == 0)
        return T(-1);
    else if (std::signed_integral<T> && b == T(-1))
        return T(0 - wrap(a));
    else
        return T(a / b);
}

template <class T>
IKAT_INLINE constexpr T remainder(T a, T b) {
    if (b == 0) return a;
    if (std::signed_integral<T> && b == T(-1)) return 0;
    return T(a % b);
}

/// A sum or difference of unsigned numbers, and whether it overflowed.
template <class T>
struct Carried {
    T value;
    bool carry;
};
template <class T>
IKAT_INLINE constexpr Carried<T> with_carry(T a, T b, bool carry) {
    const auto sum = wrap(a) + wrap(b), all = sum + carry;
    return {T(all), sum < wrap(a) || all < sum};
}
template <class T>
IKAT_INLINE constexpr Carried<T> with_borrow(T a, T b, bool borrow) {
    const auto difference = wrap(a) - wrap(b);
    return {T(difference - borrow), wrap(a) < wrap(b) || difference < std::make_unsigned_t<T>(borrow)};
}

template <class T>
IKAT_INLINE constexpr T negate(T a) {
    if constexpr (is_small_float<T>)
        return wide(a) != wide(a) ? canonical_nan<T>() : T::from_bits(a.bits ^ 0x8000);
    else if constexpr (is_float<T>)
        return result<T>(-a);
    else
        return T(0 - wrap(a));
}

template <class T>
IKAT_INLINE constexpr T absolute(T a) {
    if constexpr (is_small_float<T>)
        return wide(a) != wide(a) ? canonical_nan<T>() : T::from_bits(a.bits & 0x7fff);
    else if constexpr (is_float<T>)
        return result<T>(std::abs(a));
    else
        return a < 0 ? T(0 - wrap(a)) : a;
}

/// The type with the same signedness and 64 bits: what mul.wide of a 32-bit type gives.
template <class T>
using Wide = std::conditional_t<std::signed_integral<T>, std::int64_t, std::uint64_t>;

template <class T>
IKAT_INLINE constexpr T multiply_high(T a, T b) {
    if constexpr (sizeof(T) <= 4)
        return T((Wide<T>(a) * Wide<T>(b)) >> (sizeof(T) * 8));
    else if constexpr (std::signed_integral<T>)
        return T((__int128(a) * b) >> 64);
    else
        return T((static_cast<unsigned __int128>(a) * b) >> 64);
}

/// The absolute difference of a and b.
template <class T>
IKAT_INLINE constexpr T distance(T a, T b) {
    return T(a < b ? wrap(b) - wrap(a) : wrap(a) - wrap(b));
}

/// b with the sign of a.
template <class T>
IKAT_INLINE constexpr T copy_sign(T a, T b) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    constexpr Bits sign = Bits(1) << (sizeof(T) * 8 - 1);
    return std::bit_cast<T>(Bits((std::bit_cast<Bits>(a) & sign) | (std::bit_cast<Bits>(b) & ~sign)));
}

/// The modes of TestFloat in their order. A zero is normal (PTX ISA, testp).
template <class T>
IKAT_INLINE constexpr bool test_float(T a, std::uint32_t mode) {
    const T size = a < T(0) ? -a : a;
    switch (mode) {
        case 0: return size <= std::numeric_limits<T>::max();
        case 1: return size > std::numeric_limits<T>::max();
        case 2: return a == a;
        case 3: return a != a;
        case 4: return a == T(0) || (size >= std::numeric_limits<T>::min() && size <= std::numeric_limits<T>::max());
        default: return size > T(0) && size < std::numeric_limits<T>::min();
    }
}

/// 1 where the comparison holds, else 0; the modes of SetLanes in their order.
template <class T>
IKAT_INLINE constexpr T set_lane(T a, T b, std::uint32_t mode) {
    const auto x = wide(a), y = wide(b);
    const bool holds[] = {x == y, x != y, x<y, x <= y, x> y, x >= y};
    return T(holds[mode] ? 1.0f : 0.0f);
}

// An op whose attribute is a mode or a table takes that last.
#define SEM(Name, ...) inline constexpr auto Name = []<class T>(__VA_ARGS__) __attribute__((always_inline))
#define SEM2(Name, ...) inline constexpr auto Name = []<class T, class From>(__VA_ARGS__) __attribute__((always_inline))

// clang-format off
SEM(Add, T a, T b) { if constexpr (is_float<T>) return result<T>(wide(a) + wide(b)); else return T(wrap(a) + wrap(b)); };
SEM(Sub, T a, T b) { if constexpr (is_float<T>) return result<T>(wide(a) - wide(b)); else return T(wrap(a) - wrap(b)); };
SEM(Mul, T a, T b) { if constexpr (is_float<T>) return result<T>(wide(a) * wide(b)); else return T(wrap(a) * wrap(b)); };
SEM(Fma, T a, T b, T c) { if constexpr (is_float<T>) return fma(a, b, c); else return T(wrap(a) * wrap(b) + wrap(c)); };
SEM(Div, T a, T b) { return divide(a, b); };
SEM(Rem, T a, T b) { return remainder(a, b); };
SEM(Neg, T a)      { return negate(a); };
SEM(Abs, T a)      { return absolute(a); };
SEM(Min, T a, T b) { return minimum(a, b); };
SEM(Max, T a, T b) { return maximum(a, b); };
SEM(MulHi, T a, T b)   { return multiply_high(a, b); };
SEM(MulWide, T a, T b) { return Wide<T>(wrap(Wide<T>(a)) * wrap(Wide<T>(b))); };
SEM(MadWide, T a, T b, Wide<T> c) { return Wide<T>(wrap(Wide<T>(a)) * wrap(Wide<T>(b)) + wrap(c)); };
SEM(Mul24, T a, T b, std::uint32_t mode) { return multiply24(a, b, mode != 0); };
SEM(Sad, T a, T b, T c) { return T(wrap(distance(a, b)) + wrap(c)); };
SEM(AddCarry, T a, T b, bool carry) { return with_carry(a, b, carry); };
SEM(SubBorrow, T a, T b, bool borrow) { return with_borrow(a, b, borrow); };
SEM(AddSat, T a, T b)   { return clamped<T>(std::int64_t(a) + b); };
SEM(SubSat, T a, T b)   { return clamped<T>(std::int64_t(a) - b); };
SEM2(Dp4a, T a, From b, Sum<T, From> c) { return Sum<T, From>(dot4<T, From>(std::uint32_t(a), std::uint32_t(b), std::uint32_t(c))); };
SEM2(Dp2a, T a, From b, Sum<T, From> c, std::uint32_t mode) { return Sum<T, From>(dot2<T, From>(std::uint32_t(a), std::uint32_t(b), std::uint32_t(c), mode)); };
SEM2(At, T base, From index, std::uint64_t form) { return T(base + T(index) * T(std::uint32_t(form)) + T(std::int32_t(form >> 32))); };
SEM(CopySign, T a, T b) { return copy_sign(a, b); };
SEM(TestFloat, T a, std::uint32_t mode) { return test_float(a, mode); };

SEM(Sqrt, T a)  { return result<T>(std::sqrt(a)); };
SEM(Rcp, T a)   { return result<T>(T(1) / a); };
SEM(Rsqrt, T a) { return result<T>(T(1 / std::sqrt(double(a)))); };
SEM(Exp2, T a)  { return result<T>(T(std::exp2(double(a)))); };
SEM(Log2, T a)  { return result<T>(T(std::log2(double(a)))); };
SEM(Sin, T a)   { return result<T>(T(std::sin(double(a)))); };
SEM(Cos, T a)   { return result<T>(T(std::cos(double(a)))); };
SEM(Tanh, T a)  { return result<T>(T(std::tanh(double(a)))); };

SEM(And, T a, T b) { return T(a & b); };
SEM(Or, T a, T b)  { return T(a | b); };
SEM(Xor, T a, T b) { return T(a ^ b); };
SEM(Not, T a)      { if constexpr (std::same_as<T, bool>) return !a; else return T(~a); };
SEM(Shl, T a, std::uint32_t n) { return n < sizeof(T) * 8 ? T(wrap(a) << n) : T(0); };
SEM(Shr, T a, std::uint32_t n) { return n < sizeof(T) * 8 ? T(a >> n) : T(std::signed_integral<T> && a < T(0) ? -1 : 0); };
SEM(PopCount, T a)     { return std::uint32_t(std::popcount(wrap(a))); };
SEM(LeadingZeros, T a) { return std::uint32_t(std::countl_zero(wrap(a))); };
SEM(HighestBit, T a)   { return highest_bit(a); };
SEM(HighestBitShift, T a) { return highest_bit_shift(a); };
SEM(ReverseBits, T a)  { return T(reverse_bits(wrap(a))); };
SEM(ExtractBits, T a, std::uint32_t position, std::uint32_t length) { return extract_bits(a, position, length); };
SEM(InsertBits, T a, T b, std::uint32_t position, std::uint32_t length) { return T(insert_bits(wrap(a), wrap(b), position, length)); };
SEM(PermuteBytes, T a, T b, T c, std::uint32_t mode) { return T(permute_bytes(wrap(a), wrap(b), wrap(c), mode)); };
SEM(FunnelShift, T a, T b, std::uint32_t n, std::uint32_t mode) { return T(funnel_shift(wrap(a), wrap(b), n, mode)); };
SEM(Logic3, T a, T b, T c, std::uint32_t table) { return T(logic3(wrap(a), wrap(b), wrap(c), table)); };

SEM(Eq, T a, T b) { return wide(a) == wide(b); };
SEM(Ne, T a, T b) { return wide(a) != wide(b); };
SEM(Lt, T a, T b) { return wide(a) <  wide(b); };
SEM(Le, T a, T b) { return wide(a) <= wide(b); };
SEM(Gt, T a, T b) { return wide(a) >  wide(b); };
SEM(Ge, T a, T b) { return wide(a) >= wide(b); };
SEM(SetLanes, T a, T b, std::uint32_t mode) { return T{set_lane(a.x, b.x, mode), set_lane(a.y, b.y, mode)}; };
SEM(Select, T a, T b, bool p) { return p ? a : b; };

SEM(Pack, Lane<T> low, Lane<T> high) { return T{low, high}; };
SEM(Low, T a)  { return a.x; };
SEM(High, T a) { return a.y; };
    // clang-format on

#undef SEM
#undef SEM2

/// Applies a line to each lane of packed operands.
template <const auto& Line, class T, class... Rest>
constexpr T lanewise(T a, Rest... rest) {
    return {Line.template operator()<Lane<T>>(a.x, rest.x...), Line.template operator()<Lane<T>>(a.y, rest.y...)};
}

/// Float → integer: rounded to an integral value, then clamped. A NaN gives 0, except that with f64 or a 64-bit integer
/// on either side it gives only the top bit (PTX ISA, cvt).
template <class To, class From>
constexpr To to_integer(From from, Rounding rounding) {
    double x = double(wide(from));
    if (x != x)
        return sizeof(To) == 8 || sizeof(From) == 8 ? To(std::make_unsigned_t<To>(1) << (sizeof(To) * 8 - 1)) : To(0);
    switch (rounding) {
        case Rounding::Nearest: x = __builtin_nearbyint(x); break;
        case Rounding::Zero: x = __builtin_trunc(x); break;
        case Rounding::Down: x = __builtin_floor(x); break;
        case Rounding::Up: x = __builtin_ceil(x); break;
    }
    constexpr double lowest = double(std::numeric_limits<To>::min());
    constexpr double beyond = 2 * double(To(1) << (std::numeric_limits<To>::digits - 1));  // 2^digits
    if (x < lowest) return std::numeric_limits<To>::min();
    if (x >= beyond) return std::numeric_limits<To>::max();
    return To(x);
}

/// Integer → float in one rounding.
template <class To, class From>
constexpr To from_integer(From x, Rounding rounding) {
    const bool negative = std::signed_integral<From> && x < From(0);
    const std::uint64_t magnitude = negative ? 0 - std::uint64_t(std::int64_t(x)) : std::uint64_t(x);
    if constexpr (is_small_float<To>)
        return To::from_bits(decltype(To::bits)(encode(negative, {magnitude, 0}, To::format, rounding)));
    else if constexpr (std::same_as<To, float>)
        return std::bit_cast<float>(std::uint32_t(encode(negative, {magnitude, 0}, binary32, rounding)));
    else
        return std::bit_cast<double>(encode(negative, {magnitude, 0}, binary64, rounding));
}

/// cvt between any two number types, or two packed ones lane by lane. Integers narrow by wrapping, or by clamping when
/// `saturate`; a float result clamps to [0, 1] when `saturate` (NaN to 0). 8-bit floats clamp to their largest.
template <class To, class From>
constexpr To convert(From x, Rounding rounding, bool saturate = false) {
    if constexpr (is_pair<To>) {
        return {convert<Lane<To>>(x.x, rounding, saturate), convert<Lane<To>>(x.y, rounding, saturate)};
    } else if constexpr (is_float<To>) {
        if (saturate) {
            const double value = double(wide(x));
            return convert<To>(value > 0 ? value < 1 ? value : 1.0 : 0.0, rounding);
        }
        if constexpr (!is_float<From>)
            return from_integer<To>(x, rounding);
        else if constexpr (std::same_as<To, float> && std::same_as<From, bfloat16>)
            return std::bit_cast<float>(std::uint32_t(x.bits) << 16);  // a NaN keeps its bits
        else if (wide(x) != wide(x))
            return canonical_nan<To>();
        else if constexpr (is_small_float<To>)
            return To(double(wide(x)), rounding);
        else if constexpr (std::same_as<To, float> && std::same_as<From, double>)
            return std::bit_cast<float>(std::uint32_t(encode(x, binary32, rounding)));
        else
            return To(wide(x));
    } else if constexpr (is_float<From>) {
        return to_integer<To>(x, rounding);
    } else {
        if (!saturate) return To(x);
        if (std::cmp_less(x, std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
        return std::cmp_greater(x, std::numeric_limits<To>::max()) ? std::numeric_limits<To>::max() : To(x);
    }
}

}  // namespace ikat::ir::sem
