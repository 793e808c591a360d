// SPDX-License-Identifier: Apache-2.0
// What PTX's operations on bits and bytes mean, for semantics.hpp: fields, permutations, dot products of packed
// integers. Positions, lengths and amounts that are too large are treated as the manual says: a bit field uses the low
// eight bits; a shift clamps or masks.
#pragma once
#include <algorithm>
#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace ikat::ir::sem {

#define IKAT_INLINE __attribute__((always_inline)) inline

/// The type of a sum of products of T and From.
template <class T, class From>
using Sum = std::conditional_t<std::signed_integral<T> || std::signed_integral<From>, std::int32_t, std::uint32_t>;

/// The nearest value that T can represent.
template <class T>
IKAT_INLINE constexpr T clamped(std::int64_t x) {
    constexpr std::int64_t low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
    return T(x < low ? low : x > high ? high : x);
}

/// The low or the high 32 of the 48 bits of the product of the low 24 bits.
template <class T>
IKAT_INLINE constexpr T multiply24(T a, T b, bool high) {
    using Product = std::conditional_t<std::signed_integral<T>, std::int64_t, std::uint64_t>;
    const T x = T(T(std::uint32_t(a) << 8) >> 8), y = T(T(std::uint32_t(b) << 8) >> 8);
    const Product product = Product(x) * Product(y);
    return T(high ? product >> 16 : product);
}

/// Byte `k` of a word, extended as T.
template <class T>
IKAT_INLINE constexpr std::uint32_t byte_of(std::uint32_t word, unsigned k) {
    const std::uint32_t byte = word >> (8 * k) & 255, flip = std::signed_integral<T> ? 128 : 0;
    return (byte ^ flip) - flip;
}
template <class T>
IKAT_INLINE constexpr std::uint32_t half_of(std::uint32_t word, unsigned k) {
    const std::uint32_t part = word >> (16 * k) & 65535, flip = std::signed_integral<T> ? 32768 : 0;
    return (part ^ flip) - flip;
}
template <class T, class From>
IKAT_INLINE constexpr std::uint32_t dot4(std::uint32_t a, std::uint32_t b, std::uint32_t sum) {
    for (unsigned k = 0; k < 4; ++k) sum += byte_of<T>(a, k) * byte_of<From>(b, k);
    return sum;
}
/// `high`: with bytes 2 and 3 of b.
template <class T, class From>
IKAT_INLINE constexpr std::uint32_t dot2(std::uint32_t a, std::uint32_t b, std::uint32_t sum, unsigned high) {
    for (unsigned k = 0; k < 2; ++k) sum += half_of<T>(a, k) * byte_of<From>(b, k + 2 * high);
    return sum;
}

/// The position of the highest bit that is not a copy of the sign, or all ones.
template <class T>
IKAT_INLINE constexpr std::uint32_t highest_bit(T a) {
    const auto bits = std::make_unsigned_t<T>(a < T(0) ? ~a : a);
    return std::uint32_t(int(sizeof(T) * 8) - 1 - std::countl_zero(bits));
}
/// The shift that moves it to the top, or all ones.
template <class T>
IKAT_INLINE constexpr std::uint32_t highest_bit_shift(T a) {
    const std::uint32_t position = highest_bit(a);
    return position == ~0u ? ~0u : std::uint32_t(sizeof(T) * 8) - 1 - position;
}

template <class U>
IKAT_INLINE constexpr U reverse_bits(U a) {
    U reversed = 0;
    for (unsigned i = 0; i < sizeof(U) * 8; ++i) reversed = U(reversed << 1 | (a >> i & 1));
    return reversed;
}

/// `length` bits of a from `position` on. Those above the top of a signed number are its sign.
template <class T>
IKAT_INLINE constexpr T extract_bits(T a, std::uint32_t position, std::uint32_t length) {
    using U = std::make_unsigned_t<T>;
    constexpr std::uint32_t bits = sizeof(T) * 8;
    position &= 255, length &= 255;
    if (length == 0) return T(0);
    const U value = U(a);
    const std::uint32_t sign_at = position + length - 1 < bits ? position + length - 1 : bits - 1;
    const bool negative = std::signed_integral<T> && (value >> sign_at & 1);
    const std::uint32_t there = position < bits ? bits - position : 0;  // bits of the number above position
    const std::uint32_t taken = length < there ? length : there;
    const U kept = taken >= bits ? ~U(0) : U((U(1) << taken) - 1);
    const U field = position < bits ? U(value >> position) & kept : U(0);
    return T(negative ? U(field | ~kept) : field);
}

/// b, with `length` bits from `position` on replaced by the low bits of a.
template <class U>
IKAT_INLINE constexpr U insert_bits(U a, U b, std::uint32_t position, std::uint32_t length) {
    constexpr std::uint32_t bits = sizeof(U) * 8;
    position &= 255, length &= 255;
    if (length == 0 || position >= bits) return b;
    const U ones = length >= bits ? ~U(0) : U((U(1) << length) - 1);
    const U field = U(ones << position);
    return U((b & ~field) | (U(a << position) & field));
}

/// The selector (four nibbles) that a mode of prmt derives from the two low bits of c; c itself in mode 0. The modes
/// are f4e b4e rc8 ecl ecr rc16.
IKAT_INLINE constexpr std::uint32_t byte_selector(std::uint32_t c, std::uint32_t mode) {
    const std::uint32_t n = c & 3;
    switch (mode) {
        case 1: return 0x3210 + n * 0x1111;
        case 2: return (0x5670 + n * 0x1111) & 0x7777;
        case 3: return n * 0x1111;
        case 4: return 0x3000 | std::max(n, 2u) << 8 | std::max(n, 1u) << 4 | n;
        case 5: return n << 12 | std::min(n, 2u) << 8 | std::min(n, 1u) << 4;
        case 6: return n & 1 ? 0x3232 : 0x1010;
        default: return c;
    }
}
/// Each nibble selects one of the eight bytes of {b, a}, or, if its top bit is set, the sign of that byte.
IKAT_INLINE constexpr std::uint32_t permute_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                                  std::uint32_t mode) {
    const std::uint64_t bytes = std::uint64_t(b) << 32 | a;
    const std::uint32_t selector = byte_selector(c, mode);
    std::uint32_t out = 0;
    for (unsigned k = 0; k < 4; ++k) {
        const std::uint32_t pick = selector >> (4 * k) & 15;
        const std::uint32_t byte = std::uint32_t(bytes >> (8 * (pick & 7))) & 255;
        out |= (pick & 8 ? (byte >> 7) * 255 : byte) << (8 * k);
    }
    return out;
}

/// Modes: left by n & 31, left by at most 32, right likewise; of the 64 bits {high, low}, left gives the upper half.
IKAT_INLINE constexpr std::uint32_t funnel_shift(std::uint32_t low, std::uint32_t high, std::uint32_t n,
                                                 std::uint32_t mode) {
    const std::uint64_t both = std::uint64_t(high) << 32 | low;
    const std::uint32_t amount = mode & 1 ? (n < 32 ? n : 32) : n & 31;
    return std::uint32_t(mode < 2 ? both << amount >> 32 : both >> amount);
}

/// Bit i of the result is the table's bit (a_i b_i c_i).
IKAT_INLINE constexpr std::uint32_t logic3(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t table) {
    std::uint32_t out = 0;
    for (unsigned row = 0; row < 8; ++row)
        out |= (table >> row & 1 ? ~0u : 0u) & (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
    return out;
}

}  // namespace ikat::ir::sem
