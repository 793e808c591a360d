// SPDX-License-Identifier: Apache-2.0
// Logic, shifts, and bits that are counted, moved and permuted.
#include "runtime/emulator/decode/rules/modes.hpp"
#include "runtime/emulator/decode/rules/rules.hpp"
#include "runtime/emulator/ops/scalar.hpp"

namespace ikat::emulator {

namespace {

template <Operation O, std::size_t Sources = 2>
void bits(Lowering& code, Modifiers& modifiers, Operands operands) {
    const auto type = modifiers.take_type();
    if (!type) code.unsupported("its type is not supported");
    integer_operation(code, O, Sources, *type, operands);
}

/// An operation on numbers or predicates.
template <Op O, std::size_t Sources = 2>
void logic(Lowering& code, Modifiers& modifiers, Operands operands) {
    const auto type = modifiers.take_type();
    if (!type || ir::is_float(*type)) code.unsupported("its type is not supported");
    if (*type != Type::Pred) return integer_operation(code, O, Sources, *type, operands);
    const Result d = code.result(operands[0], Type::Pred);
    if constexpr (Sources == 1)
        code.apply(select_predicate(O), d.at, {code.predicate(operands[1])});
    else
        code.apply(select_predicate(O), d.at, {code.predicate(operands[1]), code.predicate(operands[2])});
}

void cnot(Lowering& code, Modifiers& modifiers, Operands operands) {
    const Type type = modifiers.take_type().value_or(Type::Pred);
    const Result d = code.result(operands[0], type);
    const std::uint8_t slot = slot_of(type);
    const VReg zero = code.temporary(0);
    code.apply(select_compare(Comparison::Eq, type, false), zero,
               {code.source(operands[1], type), code.constant(0, slot)});
    code.apply(select_choose(slot), d.at, {code.constant(1, slot), code.constant(0, slot), zero});
    code.finish(d);
}

template <Operation O>
void shift(Lowering& code, Modifiers& modifiers, Operands operands) {
    const Type type = modifiers.take_type().value_or(Type::Pred);
    const Result d = code.result(operands[0], type);
    code.apply(select_integer(O, type), d.at, {code.source(operands[1], type), code.source(operands[2], Type::U32)});
    code.finish(d);
}

void shift_pair(Lowering& code, Modifiers& modifiers, Operands operands) {
    constexpr std::uint64_t left = ir::mode_named(Op::FunnelShift, "l.clamp").value(),
                            right = ir::mode_named(Op::FunnelShift, "r.clamp").value();
    const std::uint64_t mode = modifiers.take(Modifier::L) ? left : right;
    modifiers.take(Modifier::R);
    VReg amount = code.source(operands[3], Type::U32);
    if (modifiers.take(Modifier::Wrap)) {
        const VReg masked = code.temporary(4);
        code.apply(select_integer(Op::And, Type::U32), masked, {amount, code.constant(31, 4)});
        amount = masked;
    }
    modifiers.take(Modifier::Clamp);
    modifiers.take_type();
    const Result d = code.result(operands[0], Type::U32);
    code.apply(select_integer(Op::FunnelShift, Type::U32, mode), d.at,
               {code.source(operands[1], Type::U32), code.source(operands[2], Type::U32), amount});
    code.finish(d);
}

void bfind(Lowering& code, Modifiers& modifiers, Operands operands) {
    const Op operation = modifiers.take(Modifier::Shiftamt) ? Op::HighestBitShift : Op::HighestBit;
    const Type type = modifiers.take_type().value_or(Type::Pred);
    const Result d = code.result(operands[0], Type::U32);
    code.apply(select_integer(operation, type), d.at, {code.source(operands[1], type)});
    code.finish(d);
}

/// The position or the length of a field. It counts modulo 256, as the ISA has it; in 64 bits, which ptxas makes of
/// several instructions, in full.
VReg field_count(Lowering& code, const ptx::Operand& operand, Type type) {
    const VReg count = code.source(operand, Type::U32);
    if (ir::bits(type) != 64 || operand.kind == ptx::Operand::Kind::Integer) return count;
    const VReg clamped = code.temporary(4);
    code.apply(select_integer(Op::Min, Type::U32), clamped, {count, code.constant(255, 4)});
    return clamped;
}

void bfe(Lowering& code, Modifiers& modifiers, Operands operands) {
    const Type type = modifiers.take_type().value_or(Type::Pred);
    const Result d = code.result(operands[0], type);
    code.apply(
        select_integer(Op::ExtractBits, type), d.at,
        {code.source(operands[1], type), field_count(code, operands[2], type), field_count(code, operands[3], type)});
    code.finish(d);
}

void bfi(Lowering& code, Modifiers& modifiers, Operands operands) {
    const Type type = modifiers.take_type().value_or(Type::Pred);
    const Result d = code.result(operands[0], type);
    const VReg a = code.source(operands[1], type), b = code.source(operands[2], type);
    const VReg position = field_count(code, operands[3], type), length = field_count(code, operands[4], type);
    code.emit(select_integer(Op::InsertBits, type), D, A | B | C | X,
              {index(d.at), index(a), index(b), index(position), index(length)});
    code.finish(d);
}

void bmsk(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take_type();
    if (!modifiers.take(Modifier::Clamp) && modifiers.take(Modifier::Wrap))
        return on_words(code, Scalar::MaskWrapped, operands);
    const Result d = code.result(operands[0], Type::U32);
    code.apply(select_integer(OwnOp::MaskBits, Type::U32), d.at,
               {code.source(operands[1], Type::U32), code.source(operands[2], Type::U32)});
    code.finish(d);
}

void lop3(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take_type();
    if (operands.size() != 5 || operands[4].kind != ptx::Operand::Kind::Integer)
        code.unsupported("the table must be a literal");
    const Result d = code.result(operands[0], Type::U32);
    code.apply(
        select_integer(Op::Logic3, Type::U32), d.at,
        {code.source(operands[1], Type::U32), code.source(operands[2], Type::U32), code.source(operands[3], Type::U32)},
        std::uint32_t(operands[4].value) & 255);
    code.finish(d);
}

/// lop3.or.b32 d|p, a, b, c, table, q:   p = (d != 0) or q
void lop3_with_predicate(Lowering& code, Modifiers& modifiers, Operands operands) {
    const Modifier combine = modifiers.take_any({Modifier::And, Modifier::Or, Modifier::Xor});
    const Operands targets =
        operands[0].kind == ptx::Operand::Kind::Pair ? Operands(code.module.operands(operands[0].children)) : operands;
    const Result d = code.result(targets[0], Type::U32), p = code.result(targets[1], Type::Pred);
    if (operands[4].kind != ptx::Operand::Kind::Integer) code.unsupported("the table must be a literal");
    code.apply(
        select_integer(Op::Logic3, Type::U32), d.at,
        {code.source(operands[1], Type::U32), code.source(operands[2], Type::U32), code.source(operands[3], Type::U32)},
        std::uint32_t(operands[4].value) & 255);
    const VReg some = code.temporary(0);
    code.apply(select_compare(Comparison::Ne, Type::U32, false), some, {d.at, code.constant(0, 4)});
    code.apply(select_predicate(combining(combine)), p.at, {some, code.predicate(operands[5])});
    modifiers.take_type();
    code.finish(d);
}

void prmt(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take_type();
    static constexpr std::pair<Modifier, std::uint64_t> modes[] = {
        mode_of<Op::PermuteBytes>(Modifier::F4e), mode_of<Op::PermuteBytes>(Modifier::B4e),
        mode_of<Op::PermuteBytes>(Modifier::Rc8), mode_of<Op::PermuteBytes>(Modifier::Ecl),
        mode_of<Op::PermuteBytes>(Modifier::Ecr), mode_of<Op::PermuteBytes>(Modifier::Rc16)};
    const std::uint64_t number = modifiers.take_named(modes).value_or(0);
    const Result d = code.result(operands[0], Type::U32);
    code.apply(select_integer(Op::PermuteBytes, Type::U32, number), d.at,
               {code.source(operands[1], Type::U32), code.source(operands[2], Type::U32),
                code.source(operands[3], Type::U32)});
    code.finish(d);
}

constexpr RuleRow bits_rows[] = {
    {"and", logic<Op::And>},
    {"or", logic<Op::Or>},
    {"xor", logic<Op::Xor>},
    {"not", logic<Op::Not, 1>},
    {"cnot", cnot},
    {"shl", shift<Op::Shl>},
    {"shr", shift<Op::Shr>},
    {"shf", shift_pair},
    {"popc", bits<Op::PopCount, 1>},
    {"clz", bits<Op::LeadingZeros, 1>},
    {"brev", bits<Op::ReverseBits, 1>},
    {"bfind", bfind},
    {"bfe", bfe},
    {"bfi", bfi},
    {"bmsk", bmsk},
    {"lop3", lop3},
    {"lop3", "or", lop3_with_predicate},
    {"prmt", prmt},
};

}  // namespace

constinit const Family bits_family{bits_rows};

}  // namespace ikat::emulator
