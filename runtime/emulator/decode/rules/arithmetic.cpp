// SPDX-License-Identifier: Apache-2.0
// Arithmetic: the handler for each instruction and its modifiers.
#include "runtime/emulator/decode/rules/modes.hpp"
#include "runtime/emulator/decode/rules/rules.hpp"
#include "runtime/emulator/ops/scalar.hpp"

namespace ikat::emulator {

namespace {

/// d = behaviour applied to the operands after the first.
void apply_to_sources(Lowering& code, const Behaviour& behaviour, std::size_t count, VReg d, Type type,
                      Operands operands) {
    const Operands from = operands.from(1);
    if (from.size() > count) code.unsupported("this number of operands is not supported here");
    switch (count) {
        case 1: return code.apply(behaviour, d, {code.source(from[0], type)});
        case 2: return code.apply(behaviour, d, {code.source(from[0], type), code.source(from[1], type)});
        default:
            return code.apply(behaviour, d,
                              {code.source(from[0], type), code.source(from[1], type), code.source(from[2], type)});
    }
}

/// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 compute from upper words to upper words.
void coarse_reciprocal(Lowering& code, Scalar scalar, Operands operands) {
    const Result d = code.result(operands[0], Type::F64);
    Behaviour behaviour = select_scalar(scalar);
    behaviour.info.arithmetic = {.to = Type::F64, .from = {Type::F64}};
    code.apply(behaviour, d.at, {code.source(operands[1], Type::F64)});
    code.finish(d);
}

void float_operation(Lowering& code, Operation operation, std::size_t sources, Type type, Modifiers& modifiers,
                     Operands operands) {
    const bool is_coarse = type == Type::F64 && modifiers.has(Modifier::Approx) && modifiers.take(Modifier::Ftz);
    if (is_coarse && modifiers.take(Modifier::Approx))
        return coarse_reciprocal(code, operation == Op::Rcp ? Scalar::CoarseReciprocal : Scalar::CoarseReciprocalRoot,
                                 operands);
    modifiers.take_any({Modifier::Approx, Modifier::Full});
    const bool ftz = modifiers.take(Modifier::Ftz), saturate = modifiers.take(Modifier::Sat),
               relu = modifiers.take(Modifier::Relu);
    const Rounding rounding = modifiers.take_rounding();
    const Result d = code.result(operands[0], type);
    Behaviour behaviour = select_float(operation, type, ftz, rounding);
    if (saturate) behaviour.info.arithmetic = {};
    behaviour.info.arithmetic.drops_negative = relu;
    apply_to_sources(code, behaviour, sources, d.at, type, operands);
    if (saturate) code.apply(select_float(OwnOp::Saturate, type, false, Rounding::Nearest), d.at, {d.at});
    if (relu) code.apply(select_float(OwnOp::Relu, type, false, Rounding::Nearest), d.at, {d.at});
    code.finish(d);
}

void computation(Lowering& code, Operation operation, std::size_t sources, Modifiers& modifiers, Operands operands) {
    const auto type = modifiers.take_type();
    if (!type) code.unsupported("its type is not supported");
    if (ir::is_float(*type)) return float_operation(code, operation, sources, *type, modifiers, operands);
    integer_operation(code, operation, sources, *type, operands);
}

/// d = operation of the sources, of one type.
template <Operation O, std::size_t Sources = 2>
void simple(Lowering& code, Modifiers& modifiers, Operands operands) {
    computation(code, O, Sources, modifiers, operands);
}

/// add.sat.s32 and sub.sat.s32: computed in 64 bits, then clamped.
template <Operation O>
void saturating(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Sat);
    modifiers.take(Modifier::S32);
    const Result d = code.result(operands[0], Type::I32);
    const VReg a = code.temporary(8), b = code.temporary(8), sum = code.temporary(8);
    const Behaviour widen = select_convert(Type::I64, Type::I32, {}, false);
    code.apply(widen, a, {code.source(operands[1], Type::I32)});
    code.apply(widen, b, {code.source(operands[2], Type::I32)});
    code.apply(select_integer(O, Type::I64), sum, {a, b});
    code.apply(select_convert(Type::I32, Type::I64, {}, true), d.at, {sum}, SaturateResult);
    code.finish(d);
}

/// mul.lo, mad.hi and the float versions.
template <Operation Low, Operation High, std::size_t Sources>
void product(Lowering& code, Modifiers& modifiers, Operands operands) {
    const bool high = modifiers.take(Modifier::Hi);
    if (!high) modifiers.take(Modifier::Lo);
    computation(code, high ? High : Low, Sources, modifiers, operands);
}

Type widened(Type type) {
    switch (type) {
        case Type::I16: return Type::I32;
        case Type::U16: return Type::U32;
        case Type::I32: return Type::I64;
        default: return Type::U64;
    }
}

void wide_product(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Wide);
    const Type type = modifiers.take_type().value_or(Type::Pred);
    const Result d = code.result(operands[0], widened(type));
    code.apply(select_integer(Op::MulWide, type), d.at,
               {code.source(operands[1], type), code.source(operands[2], type)});
    code.finish(d);
}

void wide_product_and_sum(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Wide);
    const Type type = modifiers.take_type().value_or(Type::Pred);
    const Result d = code.result(operands[0], widened(type));
    code.apply(
        select_integer(Op::MadWide, type), d.at,
        {code.source(operands[1], type), code.source(operands[2], type), code.source(operands[3], widened(type))});
    code.finish(d);
}

/// mad.hi.sat.s32 and mad24.hi.sat.s32, whose factors have this many bits.
template <std::uint32_t Bits>
void saturating_product(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Hi);
    modifiers.take(Modifier::Sat);
    modifiers.take_type();
    on_words(code, Scalar::ProductHighSaturated, operands, Bits);
}

template <Operation O, std::size_t Sources>
void product24(Lowering& code, Modifiers& modifiers, Operands operands) {
    static constexpr std::pair<Modifier, std::uint64_t> modes[] = {mode_of<Op::Mul24>(Modifier::Lo),
                                                                   mode_of<Op::Mul24>(Modifier::Hi)};
    const std::uint64_t mode = modifiers.take_named(modes).value_or(0);
    integer_operation(code, O, Sources, modifiers.take_type().value_or(Type::Pred), operands, mode);
}

template <Operation Plain, Operation Nan>
void minmax(Lowering& code, Modifiers& modifiers, Operands operands) {
    computation(code, modifiers.take(Modifier::NaN) ? Nan : Plain, 2, modifiers, operands);
}

/// min.relu.s32
template <Operation O>
void minmax_relu(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Relu);
    computation(code, O, 2, modifiers, operands);
    const Result d = code.result(operands[0], Type::I32);
    code.apply(select_integer(Op::Max, Type::I32), d.at, {d.at, code.constant(0, 4)});
}

struct Magnitudes {
    bool sign = false, magnitude = false, ftz = false;  // .xorsign, .abs, .ftz
};

/// The minimum or maximum of numbers, or of their magnitudes; `sign` gives it the XOR of all signs.
VReg extreme_magnitude(Lowering& code, Operation operation, Type type, Magnitudes how, std::span<const VReg> numbers) {
    const std::uint32_t top = 1u << (ir::bits(type) - 1);
    const auto word = [&](Operation of, VReg a, VReg b) {
        const VReg to = code.temporary(4);
        code.apply(select_integer(of, Type::U32), to, {a, b});
        return to;
    };
    VReg extreme{}, signs{};
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const VReg part = how.magnitude ? word(Op::And, numbers[i], code.constant(top - 1, 4)) : numbers[i];
        if (how.sign) signs = i == 0 ? numbers[i] : word(Op::Xor, signs, numbers[i]);
        const VReg both = i == 0 ? part : code.temporary(4);
        if (i > 0) code.apply(select_float(operation, type, how.ftz, {}), both, {extreme, part});
        extreme = both;
    }
    if (!how.sign) return extreme;
    const VReg number = code.temporary(0), negative = word(Op::And, signs, code.constant(top, 4));
    code.apply(select_compare(Comparison::Num, type, false), number, {extreme, extreme});
    const VReg with_sign = word(Op::Or, extreme, negative), chosen = code.temporary(4);
    code.apply(select_choose(4), chosen, {with_sign, extreme, number});
    return chosen;
}

/// min.xorsign.abs.f32, min.abs.f32 and those of three operands; of packed numbers lane by lane.
template <Operation Plain, Operation Nan>
void of_magnitudes(Lowering& code, Modifiers& modifiers, Operands operands) {
    const Operation operation = modifiers.take(Modifier::NaN) ? Nan : Plain;
    const Magnitudes how{.sign = modifiers.take(Modifier::Xorsign),
                         .magnitude = modifiers.take(Modifier::Abs),
                         .ftz = modifiers.take(Modifier::Ftz)};
    const Type type = modifiers.take_type().value_or(Type::Pred);
    if (!ir::is_float(type) || type == Type::F64 || operands.size() < 3 || operands.size() > 4)
        code.unsupported("this form is supported for floats of 16 and 32 bits");
    const Result d = code.result(operands[0], type);
    std::vector<VReg> numbers;
    for (std::size_t i = 1; i < operands.size(); ++i) numbers.push_back(code.source(operands[i], type));
    if (!is_packed(type)) {
        code.apply(select_move(4, 4), d.at, {extreme_magnitude(code, operation, type, how, numbers)});
        return code.finish(d);
    }
    const auto of_lane = [&](unsigned number) {
        std::vector<VReg> lanes;
        for (VReg packed : numbers) lanes.push_back(lane_of(code, packed, type, number));
        return extreme_magnitude(code, operation, lane(type), how, lanes);
    };
    const VReg low = of_lane(0), high = of_lane(1);
    code.apply(select_pack(4), d.at, {low, high});
    code.finish(d);
}

void dot_product(Lowering& code, Operation operation, std::uint32_t form_bits, Modifiers& modifiers,
                 Operands operands) {
    const Type a = modifiers.take_type().value_or(Type::Pred), b = modifiers.take_type().value_or(Type::Pred);
    const Result d = code.result(operands[0], Type::U32);
    code.apply(
        select_integer(operation, Type::U32), d.at,
        {code.source(operands[1], Type::U32), code.source(operands[2], Type::U32), code.source(operands[3], Type::U32)},
        form_bits | (a == Type::I32 ? DotSignedA : 0) | (b == Type::I32 ? DotSignedB : 0));
    code.finish(d);
}
void dp4a(Lowering& code, Modifiers& modifiers, Operands operands) {
    dot_product(code, Op::Dp4a, 0, modifiers, operands);
}
void dp2a(Lowering& code, Modifiers& modifiers, Operands operands) {
    const bool high = modifiers.take_any({Modifier::Lo, Modifier::Hi}) == Modifier::Hi;
    dot_product(code, Op::Dp2a, high ? DotHigh : 0, modifiers, operands);
}

void testp(Lowering& code, Modifiers& modifiers, Operands operands) {
    static constexpr std::pair<Modifier, std::uint64_t> tests[] = {
        mode_of<Op::TestFloat>(Modifier::Finite), mode_of<Op::TestFloat>(Modifier::Infinite),
        mode_of<Op::TestFloat>(Modifier::Number), mode_of<Op::TestFloat>(Modifier::Notanumber),
        mode_of<Op::TestFloat>(Modifier::Normal), mode_of<Op::TestFloat>(Modifier::Subnormal)};
    const std::optional<std::uint64_t> test = modifiers.take_named(tests);
    const Type type = modifiers.take_type().value_or(Type::Pred);
    if (!test || (type != Type::F32 && type != Type::F64)) code.unsupported("this test is not supported");
    const Result d = code.result(operands[0], Type::Pred);
    code.apply(select_test(type, std::uint32_t(*test)), d.at, {code.source(operands[1], type)});
    code.finish(d);
}

constexpr RuleRow arithmetic_rows[] = {
    {"add", simple<Op::Add>},
    {"add", "sat s32", saturating<Op::Add>},
    {"sub", simple<Op::Sub>},
    {"sub", "sat s32", saturating<Op::Sub>},
    {"mul", product<Op::Mul, Op::MulHi, 2>},
    {"mul", "wide", wide_product},
    {"mad", product<Op::Fma, OwnOp::MadHi, 3>},
    {"mad", "wide", wide_product_and_sum},
    {"mad", "hi sat", saturating_product<32>},
    {"mul24", product24<Op::Mul24, 2>},
    {"mad24", product24<OwnOp::Mad24, 3>},
    {"mad24", "hi sat", saturating_product<16>},
    {"fma", simple<Op::Fma, 3>},
    {"div", simple<Op::Div>},
    {"rem", simple<Op::Rem>},
    {"sad", simple<Op::Sad, 3>},
    {"neg", simple<Op::Neg, 1>},
    {"abs", simple<Op::Abs, 1>},
    {"min", minmax<Op::Min, OwnOp::MinNan>},
    {"min", "abs", of_magnitudes<Op::Min, OwnOp::MinNan>},
    {"min", "relu s32", minmax_relu<Op::Min>},
    {"max", minmax<Op::Max, OwnOp::MaxNan>},
    {"max", "abs", of_magnitudes<Op::Max, OwnOp::MaxNan>},
    {"max", "relu s32", minmax_relu<Op::Max>},
    {"sqrt", simple<Op::Sqrt, 1>},
    {"rsqrt", simple<Op::Rsqrt, 1>},
    {"rcp", simple<Op::Rcp, 1>},
    {"ex2", simple<Op::Exp2, 1>},
    {"lg2", simple<Op::Log2, 1>},
    {"sin", simple<Op::Sin, 1>},
    {"cos", simple<Op::Cos, 1>},
    {"tanh", simple<Op::Tanh, 1>},
    {"copysign", simple<Op::CopySign>},
    {"dp4a", dp4a},
    {"dp2a", dp2a},
    {"testp", testp},
};

}  // namespace

void integer_operation(Lowering& code, Operation operation, std::size_t sources, Type type, Operands operands,
                       std::uint64_t mode) {
    const bool counts_bits = operation == Op::PopCount || operation == Op::LeadingZeros;
    const Result d = code.result(operands[0], counts_bits ? Type::U32 : type);
    apply_to_sources(code, select_integer(operation, type, mode), sources, d.at, type, operands);
    code.finish(d);
}

constinit const Family arithmetic_family{arithmetic_rows};

}  // namespace ikat::emulator
