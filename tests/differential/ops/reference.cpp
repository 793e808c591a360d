// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/ops/reference.hpp"

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <limits>
#include <vector>

namespace ikat::test {
namespace {

using ir::Op, ir::Type, ir::Word;

constexpr int host_rounding[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

/// One IEEE operation in the host's current rounding mode. Volatile keeps the compiler from folding it.
template <class T>
T operate(Op op, const std::vector<T>& x) {
    volatile T a = x[0], b = x.size() > 1 ? x[1] : T(0), c = x.size() > 2 ? x[2] : T(0);
    switch (op) {
        case Op::Add: return a + b;
        case Op::Sub: return a - b;
        case Op::Mul: return a * b;
        case Op::Fma: return std::fma(a, b, c);
        case Op::Div: return a / b;
        case Op::Sqrt: return std::sqrt(a);
        default: return T(1) / a;  // Rcp
    }
}

template <class T>
Word rounded(const OpCase& test, std::span<const Word> arguments) {
    std::vector<T> x;
    for (Word word : arguments) x.push_back(ir::from_word<T>(word));
    std::fesetround(host_rounding[int(test.instruction.fp.rounding)]);
    const volatile T result = operate<T>(test.instruction.op, x);
    std::fesetround(FE_TONEAREST);
    const T value = result;
    if (value != value) return sizeof(T) == 4 ? Word{0x7fffffff} : Word{0x7fffffffffffffff};
    return ir::to_word(value);
}

Word evaluate(const OpCase& test, std::span<const Word> arguments) {
    const ir::Instruction& it = test.instruction;
    ir::FloatInfo fp = it.fp;
    return ir::evaluate(it.op, it.type, it.from, fp, arguments, it.attribute, test.result);
}

/// Rounded to an integer by the host, in its rounding mode, and clamped; nothing for a NaN.
template <class To>
std::optional<Word> to_integer(double x, Rounding rounding) {
    if (x != x) return {};
    std::fesetround(host_rounding[int(rounding)]);
    const volatile double argument = x, result = std::nearbyint(argument);
    std::fesetround(FE_TONEAREST);
    const double whole = result;
    if (whole <= double(std::numeric_limits<To>::min())) return ir::to_word(std::numeric_limits<To>::min());
    if (whole >= std::ldexp(1.0, std::numeric_limits<To>::digits)) return ir::to_word(std::numeric_limits<To>::max());
    return ir::to_word(To(whole));
}

/// A conversion of f32 or f64 to an integer, or of one to another float, without a line of semantics.hpp.
std::optional<Word> converted(const ir::Instruction& it, Word argument) {
    if (it.from != Type::F32 && it.from != Type::F64) return {};
    const double x = it.from == Type::F32 ? double(ir::from_word<float>(argument)) : ir::from_word<double>(argument);
    return ir::with_type(it.type, [&]<class T>() -> std::optional<Word> {
        if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
            return to_integer<T>(x, it.fp.rounding);
        } else if constexpr (std::is_same_v<T, float>) {
            if (it.from == Type::F32 || it.fp.sat || x != x) return {};
            std::fesetround(host_rounding[int(it.fp.rounding)]);
            const volatile double argument = x;
            const volatile float result = float(argument);
            std::fesetround(FE_TONEAREST);
            return ir::to_word(float(result));
        } else {
            return {};
        }
    });
}

constexpr Word f32_sign = 0x80000000, f32_magnitude = 0x7fffffff, f32_smallest_normal = 0x00800000;

Word flushed(Word bits) { return (bits & f32_magnitude) < f32_smallest_normal ? bits & f32_sign : bits; }

/// Whether a product or quotient that was rounded up to the least normal number is flushed all the same: rounded to as
/// many bits as a larger number has, it is smaller. Of a sum with a product the double is near enough.
bool is_rounded_up(const OpCase& test, std::span<const Word> inputs, Word result) {
    const Op op = test.instruction.op;
    if ((result & f32_magnitude) != f32_smallest_normal || (op != Op::Mul && op != Op::Fma && op != Op::Div))
        return false;
    const auto number = [&](std::size_t i) { return double(ir::from_word<float>(inputs[i])); };
    const double exact = op == Op::Div   ? number(0) / number(1)
                         : op == Op::Mul ? number(0) * number(1)
                                         : std::fma(number(0), number(1), number(2));
    return std::abs(exact) < 0x1p-126 - 0x1p-151;
}

/// .ftz of f32: subnormal operands and results are zeros.
Word flushing(const OpCase& test, std::span<const Word> arguments) {
    std::vector<Word> inputs;
    const auto types = test.argument_types();
    for (std::size_t i = 0; i < arguments.size(); ++i)
        inputs.push_back(types[i] == Type::F32 ? flushed(arguments[i]) : arguments[i]);
    const Word result = evaluate(test, inputs);
    if (test.result_type() != Type::F32) return result;
    return is_rounded_up(test, inputs, result) ? result & f32_sign : flushed(result);
}

/// .sat of a float: clamped to [0, 1], a NaN to 0.
Word saturating(const OpCase& test, std::span<const Word> arguments) {
    const Word result = evaluate(test, arguments);
    const auto clamp = [](double value) { return value > 0 ? std::min(value, 1.0) : 0.0; };
    if (test.instruction.type == Type::F16) return half(clamp(double(half::from_bits(std::uint16_t(result))))).bits;
    return ir::to_word(float(clamp(ir::from_word<float>(result))));
}

bool is_nan(Type type, Word bits) {
    switch (type) {
        case Type::BF16: return (bits & 0x7fff) > 0x7f80;
        case Type::E4M3: return (bits & 0x7f) == 0x7f;
        case Type::E5M2: return (bits & 0x7f) > 0x7c;
        case Type::F16: return (bits & 0x7fff) > 0x7c00;
        case Type::F32: return (bits & 0x7fffffff) > 0x7f800000;
        case Type::F64: return (bits & 0x7fffffffffffffff) > 0x7ff0000000000000;
        default: return false;
    }
}

/// The position of a float among all floats of its type in order; neighbours are 1 apart, both zeros have the same
/// position.
std::int64_t rank(Type type, Word bits) {
    const Word top = Word{1} << (ir::bits(type) - 1);
    return bits & top ? -std::int64_t(bits ^ top) : std::int64_t(bits);
}

/// Whether the error of sin and cos is unbounded here.
bool beyond_half_turn(Word bits) {
    const float x = ir::from_word<float>(bits);
    return std::isfinite(x) && std::abs(x) > 3.14159f;
}

/// div.approx is a * (1 / b): it is 0 where b is above 2^126, and PTX says nothing of a subnormal b.
bool is_beyond_division(const OpCase& test, Word divisor) {
    const float b = std::abs(ir::from_word<float>(test.instruction.fp.ftz ? flushed(divisor) : divisor));
    return std::isfinite(b) && b != 0 && (b < 0x1p-126f || b > 0x1p126f);
}

/// Near 1, where log2 is near 0, its error is absolute.
double absolute_of_log2(Word bits) {
    const float x = ir::from_word<float>(bits);
    return x > 0.5f && x < 2 ? 0x1p-22 : 0;
}

/// PTX's bounds for approximations in 16 bits: for 2^x, 2^-9.9 and 2^-7 are little more than 2 units in the last place;
/// for tanh the error is absolute. ex2.bf16 flushes subnormal numbers where it is one instruction.
Expected approximated(Op op, Type type, Word value) {
    const Type each = lane(type);
    if (op == Op::Exp2) return {value, 2, 0, each == Type::BF16};
    return {value, 0, each == Type::F16 ? 0x1p-10 : 0x1p-7};
}

double number(Type type, Word bits) {
    if (type == Type::F16) return double(half::from_bits(std::uint16_t(bits)));
    if (type == Type::BF16) return double(bfloat16::from_bits(std::uint16_t(bits)));
    return double(ir::from_word<float>(bits));
}

}  // namespace

std::optional<Expected> expected(const OpCase& test, std::span<const Word> arguments) {
    const ir::Instruction& it = test.instruction;
    if (it.op == Op::Convert)
        if (const auto bits = converted(it, arguments[0])) return Expected{*bits};
    if (ir::folds(it.op, it.type, it.fp, arguments)) return Expected{evaluate(test, arguments)};
    const bool divides = it.op == Op::Div || it.op == Op::Rem;
    if (divides && !is_float(it.type)) return {};
    if (has(it.op, ir::AlwaysApprox) || it.fp.approx) {
        const Word value = it.fp.ftz ? flushing(test, arguments) : evaluate(test, arguments);
        if (contains(ir::SmallFloat, it.type)) return approximated(it.op, it.type, value);
        const ir::OpInfo& row = ir::info(it.op);
        if (row.absolute != 0 && beyond_half_turn(arguments[0])) return {};
        if (it.op == Op::Div && is_beyond_division(test, arguments[1])) return {};
        return Expected{value, row.ulp, it.op == Op::Log2 ? absolute_of_log2(arguments[0]) : row.absolute};
    }
    if (it.fp.ftz) return Expected{flushing(test, arguments)};
    if (it.fp.sat) return Expected{saturating(test, arguments)};
    return Expected{it.type == Type::F64 ? rounded<double>(test, arguments) : rounded<float>(test, arguments)};
}

bool agrees(Type type, const Expected& expected, Word actual, bool exact_nan) {
    if (is_packed(type)) {
        const int width = ir::bits(lane(type));
        const Word low = (Word{1} << width) - 1;
        Expected lower = expected, upper = expected;
        lower.bits &= low, upper.bits >>= width;
        return agrees(lane(type), lower, actual & low, exact_nan) &&
               agrees(lane(type), upper, actual >> width, exact_nan);
    }
    if (expected.bits == actual) return true;
    if (!exact_nan && is_nan(type, expected.bits)) return is_nan(type, actual);
    if (expected.absolute != 0 && std::abs(number(type, expected.bits) - number(type, actual)) <= expected.absolute)
        return true;
    if (expected.flushes && number(type, actual) == 0 && std::abs(number(type, expected.bits)) < 0x1p-126) return true;
    if (expected.ulps == 0 || is_nan(type, expected.bits) || is_nan(type, actual)) return false;
    return double(std::abs(rank(type, expected.bits) - rank(type, actual))) <= expected.ulps + 1;
}

}  // namespace ikat::test
