// SPDX-License-Identifier: Apache-2.0
// Sums and differences with carry: add.cc, addc, sub.cc, subc, mad.cc, madc. The condition code is one predicate of the
// kernel, a bit for each lane like any predicate: .cc writes it, the next instruction of a chain reads it.
// It is an adder's carry out, also for a difference, which is the sum a + ~b + 1: 1 if nothing was borrowed.
//
//     add.cc    a + b               addc    a + b + CF
//     sub.cc    a + ~b + 1          subc    a + ~b + CF
// ptxas folds constants this way, and compilers mix the two kinds: sub.cc, then addc d, 0, 0 for "a is not below b".
#include "runtime/emulator/decode/rules/rules.hpp"

namespace ikat::emulator {

namespace {

/// The predicate for CC.CF; 0 before the first instruction that writes it.
VReg carry_flag(Lowering& code) {
    if (!code.carry_flag) {
        code.carry_flag = code.new_value(0, 0);
        code.apply(select_predicate(Op::Const), *code.carry_flag, {}, 0);
    }
    return *code.carry_flag;
}

/// d = a + b, or a - b if it subtracts; with CF if the instruction reads it.
void with_carry(Lowering& code, bool subtracts, bool reads, bool writes, Type type, const Result& d, VReg a, VReg b) {
    const Type bits = slot_of(type) == 8 ? Type::U64 : Type::U32;
    const std::uint8_t slot = slot_of(bits);
    const auto compare = [&](Comparison comparison, VReg left, VReg right) {
        const VReg to = code.temporary(0);
        code.apply(select_compare(comparison, bits, false), to, {left, right});
        return to;
    };
    if (subtracts && reads) {
        const VReg complement = code.temporary(slot);
        code.apply(select_integer(Op::Not, bits), complement, {b});
        b = complement;
    }
    const bool difference = subtracts && !reads;
    const VReg first = code.temporary(slot);
    code.apply(select_integer(difference ? Op::Sub : Op::Add, bits), first, {a, b});
    VReg carried = difference ? compare(Comparison::Ge, a, b) : compare(Comparison::Lt, first, a), sum = first;
    if (reads) {
        const VReg one = code.temporary(slot), either = code.temporary(0);
        code.apply(select_choose(slot), one, {code.constant(1, slot), code.constant(0, slot), carry_flag(code)});
        sum = code.temporary(slot);
        code.apply(select_integer(Op::Add, bits), sum, {first, one});
        code.apply(select_predicate(Op::Or), either, {carried, compare(Comparison::Lt, sum, first)});
        carried = either;
    }
    if (writes) code.apply(select_predicate(Op::Bitcast), carry_flag(code), {carried});
    code.apply(select_move(slot, slot), d.at, {sum});
    code.finish(d);
}

template <bool subtracts, bool reads>
void sum_with_carry(Lowering& code, Modifiers& modifiers, Operands operands) {
    const bool writes = modifiers.take(Modifier::Cc);
    const Type type = modifiers.take_type().value_or(Type::Pred);
    if (type == Type::Pred || ir::is_float(type)) code.unsupported("a sum that carries is of integers");
    const VReg a = code.source(operands[1], type), b = code.source(operands[2], type);
    with_carry(code, subtracts, reads, writes, type, code.result(operands[0], type), a, b);
}
/// mad.lo.cc, madc.hi ...: the product's half, then the sum.
template <bool reads>
void product_with_carry(Lowering& code, Modifiers& modifiers, Operands operands) {
    const Op half = modifiers.take_any({Modifier::Lo, Modifier::Hi}) == Modifier::Hi ? Op::MulHi : Op::Mul;
    const bool writes = modifiers.take(Modifier::Cc);
    const Type type = modifiers.take_type().value_or(Type::Pred);
    if (type == Type::Pred || ir::is_float(type)) code.unsupported("a sum that carries is of integers");
    const VReg product = code.temporary(slot_of(type)), c = code.source(operands[3], type);
    code.apply(select_integer(half, type), product, {code.source(operands[1], type), code.source(operands[2], type)});
    with_carry(code, false, reads, writes, type, code.result(operands[0], type), product, c);
}

constexpr RuleRow carry_rows[] = {
    {"add", "cc", sum_with_carry<false, false>}, {"sub", "cc", sum_with_carry<true, false>},
    {"addc", sum_with_carry<false, true>},       {"subc", sum_with_carry<true, true>},
    {"mad", "cc", product_with_carry<false>},    {"madc", product_with_carry<true>},
};

}  // namespace

constinit const Family carry_family{carry_rows};

}  // namespace ikat::emulator
