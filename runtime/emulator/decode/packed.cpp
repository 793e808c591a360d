// SPDX-License-Identifier: Apache-2.0
// Two integers or two floats in a register, and floats of two types in one instruction:
//
//     min.relu.s16x2 d, a, b      fma.rn.f32x2 d, a, b, c      add.f32.bf16 d, a, b      cvt.rna.tf32.f32 d, a
//
// and the conversions to and from the floats that matrix products take.
#include "runtime/emulator/decode/lowering.hpp"
#include "runtime/emulator/ops/scalar.hpp"

namespace ikat::emulator {

/// Whether the instruction was one of these.
bool Lowering::packed_operation(Operation operation, Form& form, Operands operands) {
    if (form.has(".u16x2") || form.has(".s16x2")) {
        pair_of_shorts(operation, form, operands);
    } else if (form.take(".f32x2")) {
        pair_of_singles(operation, form, operands);
    } else if (form.has(".f32") && (form.has(".f16") || form.has(".bf16"))) {
        mixed_floats(operation, form, operands);
    } else {
        return false;
    }
    return true;
}

void Lowering::pair_of_shorts(Operation operation, Form& form, Operands operands) {
    const std::uint32_t how = (form.take(".s16x2") ? ShortSigned : 0) | (form.take(".relu") ? ShortRelu : 0);
    form.take(".u16x2");
    const ShortPair kind = operation == Operation::Add   ? ShortPair::Add
                           : operation == Operation::Min ? ShortPair::Min
                                                         : ShortPair::Max;
    on_words(Scalar::ShortPair, operands, std::uint32_t(kind), how);
}

/// Each half by itself; they lie in a register of 64 bits.
void Lowering::pair_of_singles(Operation operation, Form& form, Operands operands) {
    const bool ftz = form.take(".ftz");
    const Rounding rounding = form.take_rounding();
    const Handler handler = select_float(operation, Type::F32, ftz, rounding);
    const Result d = result(operands[0], Type::U64);
    std::vector<Value> sources;
    for (const nvptx::Operand& each : operands.from(1)) sources.push_back(source(each, Type::U64));
    if (sources.size() != (operation == Operation::Fma ? 3u : 2u)) throw MissingOperand{};
    const Value low = temporary(4), high = temporary(4);
    for (const bool upper : {false, true}) {
        std::vector<Value> halves;
        for (const Value each : sources) {
            const Value shifted = upper ? temporary(8) : each;
            if (upper) apply(select_integer(Operation::Shr, Type::U64), shifted, {each, constant(32, 4)});
            halves.push_back(resized(shifted, 4));
        }
        if (halves.size() == 3)
            apply(handler, upper ? high : low, {halves[0], halves[1], halves[2]});
        else
            apply(handler, upper ? high : low, {halves[0], halves[1]});
    }
    apply(select_pack(8), d.at, {low, high});
    finish(d);
}

/// d = a + c, a - c, a * b + c: c and d of f32, a and b of the narrow type, widened without loss.
void Lowering::mixed_floats(Operation operation, Form& form, Operands operands) {
    form.take(".f32");
    const Type narrow = form.take_type().value_or(Type::F16);
    const bool saturate = form.take(".sat");
    const Handler handler = select_float(operation, Type::F32, false, form.take_rounding());
    const Result d = result(operands[0], Type::F32);
    const auto widened = [&](std::size_t i) {
        const Value to = temporary(4);
        apply(select_convert(Type::F32, narrow, {}, false), to, {source(operands[i], narrow)});
        return to;
    };
    const Value a = widened(1);
    if (operation == Operation::Fma)
        apply(handler, d.at, {a, widened(2), source(operands[3], Type::F32)});
    else
        apply(handler, d.at, {a, source(operands[2], Type::F32)});
    if (saturate) apply(select_float(Operation::Saturate, Type::F32, false, {}), d.at, {d.at});
    finish(d);
}

/// The f32 whose mantissa has 10 bits: the lower 13 become zero.
void Lowering::cvt_tf32(Form& form, Operands operands) {
    const std::string_view rounding = form.take_any({".rna", ".rn", ".rz"});
    const std::uint32_t how = (form.take(".relu") ? ReluResult : 0) | (form.take(".satfinite") ? FiniteResult : 0);
    form.take(".tf32");
    form.take(".f32");
    const Tf32Rounding mode = rounding == ".rna"  ? Tf32Rounding::Away
                              : rounding == ".rn" ? Tf32Rounding::Even
                                                  : Tf32Rounding::Zero;
    words_to(Type::U32, Scalar::Tf32, operands, std::uint32_t(mode), how);
}

/// Whether the conversion was one to or from floats of 4 and 6 bits, or scales.
bool Lowering::cvt_small(Form& form, Operands operands) {
    static constexpr std::pair<std::string_view, MiniFloat> formats[] = {
        {".e2m1x2", MiniFloat::E2M1}, {".e2m3x2", MiniFloat::E2M3}, {".e3m2x2", MiniFloat::E3M2}};
    for (const auto& [name, format] : formats) {
        if (!form.take(name)) continue;
        const std::uint32_t relu = form.take(".relu") ? ReluResult : 0;
        form.take(".rn");
        form.take(".satfinite");
        const bool narrows = form.take(".f32");
        form.take(".f16x2");
        const Type narrow = format == MiniFloat::E2M1 ? Type::U8 : Type::U16;
        words_to(narrows ? narrow : Type::U32, narrows ? Scalar::ToMiniFloats : Scalar::FromMiniFloats, operands,
                 std::uint32_t(format), relu);
        return true;
    }
    if (!form.take(".ue8m0x2")) return false;
    if (form.take(".rn")) {
        form.take(".bf16x2");
        words_to(Type::U32, Scalar::FromScales, operands, 0, 0);
        return true;
    }
    const std::uint32_t up = form.take_any({".rz", ".rp"}) == ".rp" ? ScaleUp : 0;
    const std::uint32_t how =
        up | (form.take(".satfinite") ? ScaleFinite : 0) | (form.take(".bf16x2") ? ScaleOfPair : 0);
    form.take(".f32");
    words_to(Type::U16, Scalar::ToScales, operands, how, 0);
    return true;
}

/// d = scalar of one or two words.
void Lowering::words_to(Type type, Scalar scalar, Operands operands, std::uint32_t x, std::uint32_t y) {
    const Result d = result(operands[0], type);
    const std::uint32_t a = index(source(operands[1], Type::U32));
    const std::uint32_t b = operands.size() > 2 ? index(source(operands[2], Type::U32)) : a;
    emit(select_scalar(scalar), D, A | B | C, {index(d.at), a, b, a, x, y});
    finish(d);
}

}  // namespace ikat::emulator
