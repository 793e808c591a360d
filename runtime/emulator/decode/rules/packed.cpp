// SPDX-License-Identifier: Apache-2.0
// Two integers or two floats in a register, and floats of two types in one instruction:
//
//     min.relu.s16x2 d, a, b      fma.rn.f32x2 d, a, b, c      add.f32.bf16 d, a, b      cvt.rna.tf32.f32 d, a
// and the conversions to and from the float types of matrix products.
#include "runtime/emulator/decode/rules/rules.hpp"
#include "runtime/emulator/ops/scalar.hpp"

namespace ikat::emulator {

namespace {

/// Each half separately, as a word.
template <ShortPair Kind>
void pair_of_shorts(Lowering& code, Modifiers& modifiers, Operands operands) {
    const std::uint32_t how =
        (modifiers.take(Modifier::S16x2) ? ShortSigned : 0) | (modifiers.take(Modifier::Relu) ? ShortRelu : 0);
    modifiers.take(Modifier::U16x2);
    on_words(code, Scalar::ShortPair, operands, std::uint32_t(Kind), how);
}

/// Each half of a 64-bit register separately.
template <Operation operation>
void pair_of_singles(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::F32x2);
    const bool ftz = modifiers.take(Modifier::Ftz);
    const Rounding rounding = modifiers.take_rounding();
    const Behaviour behaviour = select_float(operation, Type::F32, ftz, rounding);
    const Result d = code.result(operands[0], Type::U64);
    std::vector<VReg> sources;
    for (const ptx::Operand& each : operands.from(1)) sources.push_back(code.source(each, Type::U64));
    if (sources.size() != (operation == Op::Fma ? 3u : 2u)) throw MissingOperand{};
    const VReg low = code.temporary(4), high = code.temporary(4);
    for (const bool upper : {false, true}) {
        std::vector<VReg> halves;
        for (const VReg each : sources) {
            const VReg shifted = upper ? code.temporary(8) : each;
            if (upper) code.apply(select_integer(Op::Shr, Type::U64), shifted, {each, code.constant(32, 4)});
            halves.push_back(code.resized(shifted, 4));
        }
        if (halves.size() == 3)
            code.apply(behaviour, upper ? high : low, {halves[0], halves[1], halves[2]});
        else
            code.apply(behaviour, upper ? high : low, {halves[0], halves[1]});
    }
    code.apply(select_pack(8), d.at, {low, high});
    code.finish(d);
}

/// d = a + c, a - c, a * b + c: c and d of f32, a and b of the narrow type, widened without loss.
template <Operation operation>
void mixed_floats(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::F32);
    const Type narrow = modifiers.take_type().value_or(Type::F16);
    const bool saturate = modifiers.take(Modifier::Sat);
    Behaviour behaviour = select_float(operation, Type::F32, false, modifiers.take_rounding());
    if (saturate) behaviour.info.arithmetic = {};
    const Result d = code.result(operands[0], Type::F32);
    const auto widened = [&](std::size_t i) {
        const VReg to = code.temporary(4);
        code.apply(select_convert(Type::F32, narrow, {}, false), to, {code.source(operands[i], narrow)});
        return to;
    };
    const VReg a = widened(1);
    if (operation == Op::Fma)
        code.apply(behaviour, d.at, {a, widened(2), code.source(operands[3], Type::F32)});
    else
        code.apply(behaviour, d.at, {a, code.source(operands[2], Type::F32)});
    if (saturate) code.apply(select_float(OwnOp::Saturate, Type::F32, false, {}), d.at, {d.at});
    code.finish(d);
}

/// d = scalar of one or two words.
void words_to(Lowering& code, Type type, Scalar scalar, Operands operands, std::uint32_t x, std::uint32_t y) {
    const Result d = code.result(operands[0], type);
    const std::uint32_t a = index(code.source(operands[1], Type::U32));
    const std::uint32_t b = operands.size() > 2 ? index(code.source(operands[2], Type::U32)) : a;
    Behaviour behaviour = select_scalar(scalar);
    if (scalar == Scalar::Tf32) behaviour.info.arithmetic = {.to = Type::F32, .from = {Type::F32}};
    code.emit(behaviour, D, A | B | C, {index(d.at), a, b, a, x, y});
    code.finish(d);
}

/// The f32 whose mantissa has 10 bits: the lower 13 become zero.
void cvt_tf32(Lowering& code, Modifiers& modifiers, Operands operands) {
    const Modifier rounding = modifiers.take_any({Modifier::Rna, Modifier::Rn, Modifier::Rz});
    const std::uint32_t how =
        (modifiers.take(Modifier::Relu) ? ReluResult : 0) | (modifiers.take(Modifier::Satfinite) ? FiniteResult : 0);
    modifiers.take(Modifier::Tf32);
    modifiers.take(Modifier::F32);
    const Tf32Rounding mode = rounding == Modifier::Rna  ? Tf32Rounding::Away
                              : rounding == Modifier::Rn ? Tf32Rounding::Even
                                                         : Tf32Rounding::Zero;
    words_to(code, Type::U32, Scalar::Tf32, operands, std::uint32_t(mode), how);
}

/// Conversions to or from floats of 4 and 6 bits.
void cvt_mini_floats(Lowering& code, Modifiers& modifiers, Operands operands) {
    static constexpr std::pair<Modifier, MiniFloat> formats[] = {
        {Modifier::E2m1x2, MiniFloat::E2M1}, {Modifier::E2m3x2, MiniFloat::E2M3}, {Modifier::E3m2x2, MiniFloat::E3M2}};
    const MiniFloat format = modifiers.take_named(formats).value_or(MiniFloat::E2M1);
    const std::uint32_t relu = modifiers.take(Modifier::Relu) ? ReluResult : 0;
    modifiers.take(Modifier::Rn);
    modifiers.take(Modifier::Satfinite);
    const bool narrows = modifiers.take(Modifier::F32);
    modifiers.take(Modifier::F16x2);
    const Type narrow = format == MiniFloat::E2M1 ? Type::U8 : Type::U16;
    words_to(code, narrows ? narrow : Type::U32, narrows ? Scalar::ToMiniFloats : Scalar::FromMiniFloats, operands,
             std::uint32_t(format), relu);
}

/// Conversions to or from scales, ue8m0x2.
void cvt_scales(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Ue8m0x2);
    if (modifiers.take(Modifier::Rn)) {
        modifiers.take(Modifier::Bf16x2);
        return words_to(code, Type::U32, Scalar::FromScales, operands, 0, 0);
    }
    const std::uint32_t up = modifiers.take_any({Modifier::Rz, Modifier::Rp}) == Modifier::Rp ? ScaleUp : 0;
    const std::uint32_t how = up | (modifiers.take(Modifier::Satfinite) ? ScaleFinite : 0) |
                              (modifiers.take(Modifier::Bf16x2) ? ScaleOfPair : 0);
    modifiers.take(Modifier::F32);
    words_to(code, Type::U16, Scalar::ToScales, operands, how, 0);
}

constexpr RuleRow packed_rows[] = {
    {"add", "s16x2", pair_of_shorts<ShortPair::Add>},
    {"min", "s16x2", pair_of_shorts<ShortPair::Min>},
    {"max", "s16x2", pair_of_shorts<ShortPair::Max>},
    {"add", "f32x2", pair_of_singles<Op::Add>},
    {"sub", "f32x2", pair_of_singles<Op::Sub>},
    {"mul", "f32x2", pair_of_singles<Op::Mul>},
    {"fma", "f32x2", pair_of_singles<Op::Fma>},
    {"add", "f32 bf16", mixed_floats<Op::Add>},
    {"sub", "f32 bf16", mixed_floats<Op::Sub>},
    {"fma", "f32 bf16", mixed_floats<Op::Fma>},
    {"cvt", "tf32", cvt_tf32},
    {"cvt", "e2m1x2", cvt_mini_floats},
    {"cvt", "ue8m0x2", cvt_scales},
};

}  // namespace

constinit const Family packed_family{packed_rows};

}  // namespace ikat::emulator
