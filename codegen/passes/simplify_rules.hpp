// SPDX-License-Identifier: Apache-2.0
// clang-format off
// The rules of simplify. The first that matches is taken. Each is exact for every value of its types: integers wrap,
// and a float rule holds for -0, infinities and NaN as semantics.hpp defines them.
//
// They terminate because each makes the expression smaller or moves a constant towards the root, where the next
// rule folds it or selection takes it as an offset.
#pragma once
#include "codegen/passes/rules.hpp"

namespace ikat::passes::rules {

inline constexpr TypeSet Logic = set(Type::Pred);

// Conditions.
template <int I>
inline constexpr auto power_of_two = [](const Match& m) { return std::has_single_bit(m.word(I)); };
inline constexpr auto on_integers = [](const Match& m) { return contains(AnyInt, m.fn.type(m.values[0])); };
inline constexpr auto not_constant = [](const Match& m) { return !constant(m.fn, m.values[0]); };
/// c0 and c1 are shift amounts, and their sum is less than the width of x.
inline constexpr auto shifts_within = [](const Match& m) {
    return m.word(0) + m.word(1) < Word(bits(m.fn.type(m.values[0])));
};
inline constexpr auto shifts_by_all = [](const Match& m) { return m.word(0) >= Word(bits(m.fn.type(m.values[0]))); };
/// x is the result of arithmetic, so if it is a NaN it is already the canonical one that x * 1 would give.
inline constexpr auto computed = [](const Match& m) {
    const Inst inst = m.fn[m.values[0]].instruction;
    return inst != no_inst && !info(m.fn[inst].op).effect && !has(m.fn[inst].op, Copies);
};
/// 1 / c0 is exact and normal, so that dividing by c0 and multiplying by 1 / c0 round the same number.
inline constexpr auto exact_reciprocal = [](const Match& m) {
    const bool single = m.fn.type(m.constants[0]) == Type::F32;
    const int mantissa = single ? 23 : 52, exponents = single ? 8 : 11;
    const Word fraction = m.word(0) & ((Word{1} << mantissa) - 1);
    const int exponent = int(m.word(0) >> mantissa & ((Word{1} << exponents) - 1)), bias = (1 << (exponents - 1)) - 1;
    return fraction == 0 && exponent > 0 && exponent < 2 * bias;
};

// clang-format off: it takes products for pointers
inline constexpr std::tuple sums{
    rule(x + 0, x, AnyInt),
    rule(x - 0, x, AnyInt),
    rule(x - x, 0, AnyInt),
    rule(0 - x, -x, AnySignedInt),
    rule((x + c0) + c1, x + fold(c0 + c1), AnyInt),
    rule((x - c0) + c1, x + fold(c1 - c0), AnyInt),
    rule((x + c0) - c1, x + fold(c0 - c1), AnyInt),
    rule((x - c0) - c1, x - fold(c0 + c1), AnyInt),
    rule((x - y) + y, x, AnyInt),
    rule((x + y) - y, x, AnyInt),
    rule((y + x) - y, x, AnyInt),
    rule(x - (x - y), y, AnyInt),
    rule(x + -y, x - y, AnySignedInt | Float),
    rule(x - -y, x + y, AnySignedInt | Float),
    rule(-(-x), x, AnySignedInt),
    rule(-(x - y), y - x, AnySignedInt),
    rule((x + c0) + y, (x + y) + c0, AnyInt),
    rule((x - c0) + y, (x + y) - c0, AnyInt),
    rule((x + c0) - y, (x - y) + c0, AnyInt),
    rule(x - (y + c0), (x - y) - c0, AnyInt),
    rule(x + negative_zero, x, Float).where(computed),
    rule(x - 0, x, Float).where(computed),
    rule(-(-x), x, Float).where(computed),
};

inline constexpr std::tuple products{
    rule(x * 0, 0, AnyInt),
    rule(x * 1, x, AnyInt),
    rule(x * -1, -x, AnySignedInt),
    rule((x * c0) * c1, x * fold(c0 * c1), AnyInt),
    rule((x + c0) * c1, x * c1 + fold(c0 * c1), AnyInt),
    rule((x - c0) * c1, x * c1 - fold(c0 * c1), AnyInt),
    rule(-x * -y, x * y, AnySignedInt | Float),
    rule(x * 1, x, Float).where(computed),
    rule(fma(x, 0, y), y, AnyInt),
    rule(fma(x, 1, y), x + y),
    rule(fma(x, y, 0), x * y, AnyInt),
    rule(fma(x, y, negative_zero), x * y, Float),
    rule(fma(c0, c1, x), x + fold(c0 * c1), AnyInt),
    rule(fma(x, y, z + c0), fma(x, y, z) + c0, AnyInt),
    rule(fma(x + c0, c1, y), fma(x, c1, y) + fold(c0 * c1), AnyInt),
    rule(fma(x - c0, c1, y), fma(x, c1, y) - fold(c0 * c1), AnyInt),
    rule(mul_wide(x, 0), 0),
    rule(mad_wide(x, 0, y), y),
    rule(mad_wide(x, y, 0), mul_wide(x, y)),
    rule(mad_wide(c0, c1, x), x + fold(mul_wide(c0, c1))),
    rule(mad_wide(x, y, z + c0), mad_wide(x, y, z) + c0),
    rule(mul_hi(x, 0), 0),
    rule(mul_hi(x, 1), 0, AnyUnsignedInt),
};

inline constexpr std::tuple quotients{
    rule(x / 1, x, AnyInt),
    rule(x / -1, -x, AnySignedInt),
    rule(x / c0, x >> fold(log2(c0)), AnyUnsignedInt).where(power_of_two<0>),
    rule(x % 1, 0, AnyInt),
    rule(0 % x, 0, AnyInt),
    rule(x % c0, x & fold(c0 - 1), AnyUnsignedInt).where(power_of_two<0>),
    rule(x / 1, x, Float).where(computed),
    rule(x / c0, x * fold(1 / c0), Float).where(exact_reciprocal),
};

inline constexpr std::tuple bit_operations{
    rule(x & 0, 0),
    rule(x & -1, x),
    rule(x & x, x),
    rule(x & ~x, 0),
    rule((x & c0) & c1, x & fold(c0 & c1)),
    rule(x & (x & y), x & y),
    rule(x & (x | y), x),
    rule(x | 0, x),
    rule(x | -1, -1),
    rule(x | x, x),
    rule(x | ~x, -1),
    rule((x | c0) | c1, x | fold(c0 | c1)),
    rule(x | (x | y), x | y),
    rule(x | (x & y), x),
    rule(x ^ 0, x),
    rule(x ^ -1, ~x),
    rule(x ^ x, 0),
    rule((x ^ c0) ^ c1, x ^ fold(c0 ^ c1)),
    rule((x ^ y) ^ y, x),
    rule((y ^ x) ^ y, x),
    rule(~(~x), x),
};

inline constexpr std::tuple shifts{
    rule(x << 0, x),
    rule(x >> 0, x),
    rule(0 << x, 0),
    rule(0 >> x, 0),
    rule(x << c0, 0).where(shifts_by_all),
    rule(x >> c0, 0, AnyUnsignedInt).where(shifts_by_all),
    rule((x << c0) << c1, x << fold(c0 + c1)).where(shifts_within),
    rule((x + c0) << c1, (x << c1) + fold(c0 << c1)),
    rule((x >> c0) >> c1, x >> fold(c0 + c1)).where(shifts_within),
};

inline constexpr std::tuple comparisons{
    rule(c0<x, x> c0).where(not_constant),
    rule(c0 <= x, x >= c0).where(not_constant),
    rule(c0 > x, x < c0).where(not_constant),
    rule(c0 >= x, x <= c0).where(not_constant),
    rule(x == x, -1, AnyInt),
    rule(x <= x, -1, AnyInt),
    rule(x >= x, -1, AnyInt),
    rule(x != x, 0, AnyInt),
    rule(x < x, 0, AnyInt),
    rule(x > x, 0, AnyInt),
    rule(x < 0, 0, AnyUnsignedInt),
    rule(x >= 0, -1, AnyUnsignedInt),
    rule(x > -1, 0, AnyUnsignedInt),
    rule(x <= -1, -1, AnyUnsignedInt),
    rule(x <= 0, x == 0, AnyUnsignedInt),
    rule(x > 0, x != 0, AnyUnsignedInt),
    rule(x < 1, x == 0, AnyUnsignedInt),
    rule(x >= 1, x != 0, AnyUnsignedInt),
    rule((x + c0) == c1, x == fold(c1 - c0), AnyInt),
    rule((x + c0) != c1, x != fold(c1 - c0), AnyInt),
    rule((x - y) == 0, x == y, AnyInt),
    rule((x - y) != 0, x != y, AnyInt),
    rule((x ^ y) == 0, x == y, AnyInt),
    rule((x ^ y) != 0, x != y, AnyInt),
    rule(select(1, 0, x) == 0, ~x, AnyInt),
    rule(select(1, 0, x) != 0, x, AnyInt),
    rule(select(1, 0, x) == 1, x, AnyInt),
    rule(~(x == y), x != y, Logic),
    rule(~(x != y), x == y, Logic),
    rule(~(x < y), x >= y, Logic).where(on_integers),
    rule(~(x <= y), x > y, Logic).where(on_integers),
    rule(~(x > y), x <= y, Logic).where(on_integers),
    rule(~(x >= y), x < y, Logic).where(on_integers),
};

inline constexpr std::tuple choices{
    rule(select(x, x, y), x),
    rule(select(x, y, -1), x),
    rule(select(x, y, 0), y),
    rule(select(x, y, ~z), select(y, x, z)),
    rule(select(select(x, y, p), z, p), select(x, z, p)),
    rule(select(x, select(y, z, p), p), select(x, z, p)),
    rule(select(x, y, x < y), min(x, y), AnyInt),
    rule(select(x, y, x <= y), min(x, y), AnyInt),
    rule(select(x, y, x > y), max(x, y), AnyInt),
    rule(select(x, y, x >= y), max(x, y), AnyInt),
    rule(select(x, y, y < x), max(x, y), AnyInt),
    rule(select(x, y, y <= x), max(x, y), AnyInt),
    rule(select(x, y, y > x), min(x, y), AnyInt),
    rule(select(x, y, y >= x), min(x, y), AnyInt),
    rule(min(x, x), x, AnyInt),
    rule(max(x, x), x, AnyInt),
    rule(min(x, 0), 0, AnyUnsignedInt),
    rule(max(x, 0), x, AnyUnsignedInt),
    rule(min(x, -1), x, AnyUnsignedInt),
    rule(max(x, -1), -1, AnyUnsignedInt),
    rule(min(min(x, c0), c1), min(x, fold(min(c0, c1)))),
    rule(max(max(x, c0), c1), max(x, fold(max(c0, c1)))),
    rule(min(x, min(x, y)), min(x, y), AnyInt),
    rule(max(x, max(x, y)), max(x, y), AnyInt),
    rule(min(x, max(x, y)), x, AnyInt),
    rule(max(x, min(x, y)), x, AnyInt),
    rule(abs(-x), abs(x)),
    rule(abs(abs(x)), abs(x)),
};

// clang-format on

}  // namespace ikat::passes::rules
