// SPDX-License-Identifier: Apache-2.0
// Arithmetic and bits: which handler an instruction is, and what PTX spells in modifiers.
#include <fmt/format.h>

#include "codegen/ir/op/op.hpp"
#include "runtime/emulator/decode/lowering.hpp"
#include "runtime/emulator/ops/scalar.hpp"

namespace ikat::emulator {

namespace {

/// How many operands it computes from.
std::size_t source_count(Operation operation) {
    switch (operation) {
        case Operation::Neg:
        case Operation::Abs:
        case Operation::Not:
        case Operation::Popc:
        case Operation::Clz:
        case Operation::Bfind:
        case Operation::BfindShift:
        case Operation::Brev:
        case Operation::Sqrt:
        case Operation::Rcp:
        case Operation::Rsqrt:
        case Operation::Exp2:
        case Operation::Log2:
        case Operation::Sin:
        case Operation::Cos:
        case Operation::Tanh:
        case Operation::Saturate:
        case Operation::Relu: return 1;
        case Operation::Fma:
        case Operation::MadHi:
        case Operation::MadWide:
        case Operation::Mad24:
        case Operation::Mad24Hi:
        case Operation::Sad: return 3;
        default: return 2;
    }
}

Type widened(Type type) {
    switch (type) {
        case Type::I16: return Type::I32;
        case Type::U16: return Type::U32;
        case Type::I32: return Type::I64;
        default: return Type::U64;
    }
}

}  // namespace

/// d = operation of the operands behind the first.
void Lowering::apply_to_sources(Handler handler, Operation operation, Value d, Type type, Operands operands) {
    const Operands from = operands.from(1);
    const std::size_t count = source_count(operation);
    if (from.size() > count) unsupported("this number of operands is not known here");
    switch (count) {
        case 1: return apply(handler, d, {source(from[0], type)});
        case 2: return apply(handler, d, {source(from[0], type), source(from[1], type)});
        default: return apply(handler, d, {source(from[0], type), source(from[1], type), source(from[2], type)});
    }
}

void Lowering::integer_operation(Operation operation, Type type, Operands operands) {
    const bool counts_bits = operation == Operation::Popc || operation == Operation::Clz;
    const Result d = result(operands[0], counts_bits ? Type::U32 : type);
    const Handler handler = select_integer(operation, type);
    apply_to_sources(handler, operation, d.at, type, operands);
    finish(d);
}

/// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 compute from upper words to upper words.
void Lowering::coarse_reciprocal(Scalar scalar, Operands operands) {
    const Result d = result(operands[0], Type::F64);
    apply(select_scalar(scalar), d.at, {source(operands[1], Type::F64)});
    finish(d);
}

void Lowering::float_operation(Operation operation, Type type, Form& form, Operands operands) {
    const bool is_coarse = type == Type::F64 && form.has(".approx") && form.take(".ftz");
    if (is_coarse && form.take(".approx"))
        return coarse_reciprocal(operation == Operation::Rcp ? Scalar::CoarseReciprocal : Scalar::CoarseReciprocalRoot,
                                 operands);
    form.take_any({".approx", ".full"});
    const bool ftz = form.take(".ftz"), saturate = form.take(".sat"), relu = form.take(".relu");
    const Rounding rounding = form.take_rounding();
    const Result d = result(operands[0], type);
    const Handler handler = select_float(operation, type, ftz, rounding);
    apply_to_sources(handler, operation, d.at, type, operands);
    if (saturate) apply(select_float(Operation::Saturate, type, false, Rounding::Nearest), d.at, {d.at});
    if (relu) apply(select_float(Operation::Relu, type, false, Rounding::Nearest), d.at, {d.at});
    finish(d);
}

/// add.sat.s32 and sub.sat.s32: computed in 64 bits, then clamped.
void Lowering::saturating(Operation operation, Operands operands) {
    const Result d = result(operands[0], Type::I32);
    const Value a = temporary(8), b = temporary(8), sum = temporary(8);
    const Handler widen = select_convert(Type::I64, Type::I32, {}, false);
    apply(widen, a, {source(operands[1], Type::I32)});
    apply(widen, b, {source(operands[2], Type::I32)});
    apply(select_integer(operation, Type::I64), sum, {a, b});
    apply(select_convert(Type::I32, Type::I64, {}, true), d.at, {sum}, SaturateResult);
    finish(d);
}

void Lowering::binary(Operation operation, Form& form, Operands operands) {
    if (packed_operation(operation, form, operands)) return;
    const auto type = form.take_type();
    if (!type) unsupported("it has no type the emulator knows");
    if (ir::is_float(*type)) return float_operation(operation, *type, form, operands);
    if (*type == Type::I32 && (operation == Operation::Add || operation == Operation::Sub) && form.take(".sat"))
        return saturating(operation, operands);
    integer_operation(operation, *type, operands);
}

void Lowering::add(Form& form, Operands operands) {
    form.has(".cc") ? sum_with_carry(false, false, form, operands) : binary(Operation::Add, form, operands);
}
void Lowering::sub(Form& form, Operands operands) {
    form.has(".cc") ? sum_with_carry(true, false, form, operands) : binary(Operation::Sub, form, operands);
}
void Lowering::fma(Form& form, Operands operands) { binary(Operation::Fma, form, operands); }

void Lowering::mul(Form& form, Operands operands) {
    if (form.take(".hi")) return binary(Operation::MulHi, form, operands);
    if (!form.take(".wide")) {
        form.take(".lo");
        return binary(Operation::Mul, form, operands);
    }
    const Type type = form.take_type().value_or(Type::Pred);
    const Result d = result(operands[0], widened(type));
    apply(select_integer(Operation::MulWide, type), d.at, {source(operands[1], type), source(operands[2], type)});
    finish(d);
}

void Lowering::mad(Form& form, Operands operands) {
    if (form.has(".cc")) return product_with_carry(false, form, operands);
    if (form.take(".hi")) {
        if (!form.take(".sat")) return binary(Operation::MadHi, form, operands);
        form.take_type();
        return on_words(Scalar::ProductHighSaturated, operands, 32);
    }
    if (!form.take(".wide")) {
        form.take(".lo");
        return binary(Operation::Fma, form, operands);
    }
    const Type type = form.take_type().value_or(Type::Pred);
    const Result d = result(operands[0], widened(type));
    apply(select_integer(Operation::MadWide, type), d.at,
          {source(operands[1], type), source(operands[2], type), source(operands[3], widened(type))});
    finish(d);
}

void Lowering::minmax(Operation plain, Operation nan, Form& form, Operands operands) {
    const Operation operation = form.take(".NaN") ? nan : plain;
    if (form.has(".abs") || form.has(".xorsign") || (operands.size() == 4 && form.has(".f32")))
        return minmax_of_magnitudes(operation, form, operands);
    if (form.has(".s32") && form.take(".relu")) {
        binary(operation, form, operands);
        const Result d = result(operands[0], Type::I32);
        return apply(select_integer(Operation::Max, Type::I32), d.at, {d.at, constant(0, 4)});
    }
    binary(operation, form, operands);
}
void Lowering::min(Form& form, Operands operands) { minmax(Operation::Min, Operation::MinNan, form, operands); }
void Lowering::max(Form& form, Operands operands) { minmax(Operation::Max, Operation::MaxNan, form, operands); }

/// The least of numbers of one type, or of their magnitudes; `sign` gives it the sign of all signs together.
Value Lowering::least_magnitude(Operation operation, Type type, Magnitudes form, std::span<const Value> numbers) {
    const std::uint32_t top = 1u << (ir::bits(type) - 1);
    const auto word = [&](Operation of, Value a, Value b) {
        const Value to = temporary(4);
        apply(select_integer(of, Type::U32), to, {a, b});
        return to;
    };
    Value least{}, signs{};
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const Value part = form.magnitude ? word(Operation::And, numbers[i], constant(top - 1, 4)) : numbers[i];
        if (form.sign) signs = i == 0 ? numbers[i] : word(Operation::Xor, signs, numbers[i]);
        const Value both = i == 0 ? part : temporary(4);
        if (i > 0) apply(select_float(operation, type, form.ftz, {}), both, {least, part});
        least = both;
    }
    if (!form.sign) return least;
    const Value number = temporary(0), negative = word(Operation::And, signs, constant(top, 4));
    apply(select_compare(Comparison::Num, type, false), number, {least, least});
    const Value with_sign = word(Operation::Or, least, negative), chosen = temporary(4);
    apply(select_choose(4), chosen, {with_sign, least, number});
    return chosen;
}

/// min.xorsign.abs.f32, min.abs.f32 and those of three operands; of packed numbers lane by lane.
void Lowering::minmax_of_magnitudes(Operation operation, Form& form, Operands operands) {
    const Magnitudes how{.sign = form.take(".xorsign"), .magnitude = form.take(".abs"), .ftz = form.take(".ftz")};
    const Type type = form.take_type().value_or(Type::Pred);
    if (!ir::is_float(type) || type == Type::F64 || operands.size() < 3 || operands.size() > 4)
        unsupported("this form is known on floats of 16 and 32 bits");
    const Result d = result(operands[0], type);
    std::vector<Value> numbers;
    for (std::size_t i = 1; i < operands.size(); ++i) numbers.push_back(source(operands[i], type));
    if (!is_packed(type)) {
        apply(select_move(4, 4), d.at, {least_magnitude(operation, type, how, numbers)});
        return finish(d);
    }
    const auto of_lane = [&](unsigned number) {
        std::vector<Value> lanes;
        for (Value packed : numbers) lanes.push_back(lane_of(packed, type, number));
        return least_magnitude(operation, lane(type), how, lanes);
    };
    const Value low = of_lane(0), high = of_lane(1);
    apply(select_pack(4), d.at, {low, high});
    finish(d);
}

void Lowering::logic(Operation operation, Handler on_predicates, Form& form, Operands operands) {
    const auto type = form.take_type();
    if (!type || ir::is_float(*type)) unsupported("it has no type the emulator knows");
    if (*type != Type::Pred) return integer_operation(operation, *type, operands);
    const Result d = result(operands[0], Type::Pred);
    if (source_count(operation) == 1)
        apply(on_predicates, d.at, {predicate(operands[1])});
    else
        apply(on_predicates, d.at, {predicate(operands[1]), predicate(operands[2])});
}
void Lowering::logic_and(Form& form, Operands operands) { logic(Operation::And, predicate_and, form, operands); }
void Lowering::logic_or(Form& form, Operands operands) { logic(Operation::Or, predicate_or, form, operands); }
void Lowering::logic_xor(Form& form, Operands operands) { logic(Operation::Xor, predicate_xor, form, operands); }
void Lowering::logic_not(Form& form, Operands operands) { logic(Operation::Not, predicate_not, form, operands); }

void Lowering::cnot(Form& form, Operands operands) {
    const Type type = form.take_type().value_or(Type::Pred);
    const Result d = result(operands[0], type);
    const std::uint8_t slot = slot_of(type);
    const Value zero = temporary(0);
    apply(select_compare(Comparison::Eq, type, false), zero, {source(operands[1], type), constant(0, slot)});
    apply(select_choose(slot), d.at, {constant(1, slot), constant(0, slot), zero});
    finish(d);
}

void Lowering::shift(Operation operation, Form& form, Operands operands) {
    const Type type = form.take_type().value_or(Type::Pred);
    const Result d = result(operands[0], type);
    apply(select_integer(operation, type), d.at, {source(operands[1], type), source(operands[2], Type::U32)});
    finish(d);
}
void Lowering::shift_left(Form& form, Operands operands) { shift(Operation::Shl, form, operands); }
void Lowering::shift_right(Form& form, Operands operands) { shift(Operation::Shr, form, operands); }

void Lowering::shift_pair(Form& form, Operands operands) {
    const Operation operation = form.take(".l") ? Operation::ShiftPairLeft : Operation::ShiftPairRight;
    form.take(".r");
    Value amount = source(operands[3], Type::U32);
    if (form.take(".wrap")) {
        const Value masked = temporary(4);
        apply(select_integer(Operation::And, Type::U32), masked, {amount, constant(31, 4)});
        amount = masked;
    }
    form.take(".clamp");
    form.take_type();
    const Result d = result(operands[0], Type::U32);
    apply(select_integer(operation, Type::U32), d.at,
          {source(operands[1], Type::U32), source(operands[2], Type::U32), amount});
    finish(d);
}

void Lowering::bfind(Form& form, Operands operands) {
    const Operation operation = form.take(".shiftamt") ? Operation::BfindShift : Operation::Bfind;
    const Type type = form.take_type().value_or(Type::Pred);
    const Result d = result(operands[0], Type::U32);
    apply(select_integer(operation, type), d.at, {source(operands[1], type)});
    finish(d);
}

void Lowering::bfe(Form& form, Operands operands) {
    const Type type = form.take_type().value_or(Type::Pred);
    const Result d = result(operands[0], type);
    apply(select_integer(Operation::Bfe, type), d.at,
          {source(operands[1], type), source(operands[2], Type::U32), source(operands[3], Type::U32)});
    finish(d);
}

void Lowering::bfi(Form& form, Operands operands) {
    const Type type = form.take_type().value_or(Type::Pred);
    const Result d = result(operands[0], type);
    const Value a = source(operands[1], type), b = source(operands[2], type);
    const Value position = source(operands[3], Type::U32), length = source(operands[4], Type::U32);
    emit(select_integer(Operation::Bfi, type), D, A | B | C | X,
         {index(d.at), index(a), index(b), index(position), index(length)});
    finish(d);
}

void Lowering::bmsk(Form& form, Operands operands) {
    form.take_type();
    if (!form.take(".clamp") && form.take(".wrap")) return on_words(Scalar::MaskWrapped, operands);
    const Result d = result(operands[0], Type::U32);
    apply(select_integer(Operation::Bmsk, Type::U32), d.at,
          {source(operands[1], Type::U32), source(operands[2], Type::U32)});
    finish(d);
}

void Lowering::lop3(Form& form, Operands operands) {
    const std::string_view combine = form.take_any({".and", ".or", ".xor"});
    if (!combine.empty()) return lop3_with_predicate(form, operands, combine);
    form.take_type();
    if (operands.size() != 5 || operands[4].kind != nvptx::Operand::Kind::Integer)
        unsupported("only the form with a literal table is known");
    const Result d = result(operands[0], Type::U32);
    apply(select_integer(Operation::Lop3, Type::U32), d.at,
          {source(operands[1], Type::U32), source(operands[2], Type::U32), source(operands[3], Type::U32)},
          std::uint32_t(operands[4].value) & 255);
    finish(d);
}

void Lowering::prmt(Form& form, Operands operands) {
    form.take_type();
    const std::string_view mode = form.take_any({".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"});
    const auto number = mode.empty() ? 0 : *ir::mode_named(ir::Op::PermuteBytes, mode.substr(1));
    const Result d = result(operands[0], Type::U32);
    apply(select_permute(std::uint32_t(number)), d.at,
          {source(operands[1], Type::U32), source(operands[2], Type::U32), source(operands[3], Type::U32)});
    finish(d);
}

void Lowering::product24(Operation low, Operation high, Form& form, Operands operands) {
    const Operation operation = form.take_any({".lo", ".hi"}) == ".hi" ? high : low;
    integer_operation(operation, form.take_type().value_or(Type::Pred), operands);
}
void Lowering::mul24(Form& form, Operands operands) { product24(Operation::Mul24, Operation::Mul24Hi, form, operands); }
void Lowering::mad24(Form& form, Operands operands) {
    if (!form.take(".sat")) return product24(Operation::Mad24, Operation::Mad24Hi, form, operands);
    form.take(".hi");
    form.take_type();
    on_words(Scalar::ProductHighSaturated, operands, 16);
}

void Lowering::dot_product(Operation operation, std::uint32_t form_bits, Form& form, Operands operands) {
    const Type a = form.take_type().value_or(Type::Pred), b = form.take_type().value_or(Type::Pred);
    const Result d = result(operands[0], Type::U32);
    apply(select_integer(operation, Type::U32), d.at,
          {source(operands[1], Type::U32), source(operands[2], Type::U32), source(operands[3], Type::U32)},
          form_bits | (a == Type::I32 ? DotSignedA : 0) | (b == Type::I32 ? DotSignedB : 0));
    finish(d);
}
void Lowering::dp4a(Form& form, Operands operands) { dot_product(Operation::Dp4a, 0, form, operands); }
void Lowering::dp2a(Form& form, Operands operands) {
    const bool high = form.take_any({".lo", ".hi"}) == ".hi";
    dot_product(Operation::Dp2a, high ? DotHigh : 0, form, operands);
}

void Lowering::testp(Form& form, Operands operands) {
    const std::string_view test =
        form.take_any({".finite", ".infinite", ".number", ".notanumber", ".normal", ".subnormal"});
    const Type type = form.take_type().value_or(Type::Pred);
    if (test.empty() || (type != Type::F32 && type != Type::F64)) unsupported("this test is not known");
    const Result d = result(operands[0], Type::Pred);
    const auto mode = std::uint32_t(*ir::mode_named(ir::Op::TestFloat, test.substr(1)));
    apply(select_test(type, mode), d.at, {source(operands[1], type)});
    finish(d);
}

}  // namespace ikat::emulator
