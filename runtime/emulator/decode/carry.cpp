// SPDX-License-Identifier: Apache-2.0
// Sums and differences that carry: add.cc, addc, sub.cc, subc, mad.cc, madc. The condition code is one predicate of the
// kernel, a bit for each lane, as any other predicate: what .cc writes, the next instruction of a chain reads.
//
// It is what an adder carries out, also of a difference, which is the sum a + ~b + 1: 1 where nothing was borrowed.
//
//     add.cc    a + b               addc    a + b + CF
//     sub.cc    a + ~b + 1          subc    a + ~b + CF
//
// So ptxas folds constants, and compilers mix the two kinds: sub.cc, then addc d, 0, 0 for "a is not below b".
#include "runtime/emulator/decode/lowering.hpp"

namespace ikat::emulator {

/// The predicate that stands for CC.CF; 0 before the first instruction that writes it.
Value Lowering::carry_flag() {
    if (!carry_flag_) {
        carry_flag_ = new_value(0, 0);
        apply(predicate_literal, *carry_flag_, {}, 0);
    }
    return *carry_flag_;
}

/// d = a + b, or a - b where it subtracts; with CF where the instruction reads it.
void Lowering::with_carry(bool subtracts, bool reads, bool writes, Type type, const Result& d, Value a, Value b) {
    const Type bits = slot_of(type) == 8 ? Type::U64 : Type::U32;
    const std::uint8_t slot = slot_of(bits);
    const auto compare = [&](Comparison comparison, Value left, Value right) {
        const Value to = temporary(0);
        apply(select_compare(comparison, bits, false), to, {left, right});
        return to;
    };
    if (subtracts && reads) {
        const Value complement = temporary(slot);
        apply(select_integer(Operation::Not, bits), complement, {b});
        b = complement;
    }
    const bool difference = subtracts && !reads;
    const Value first = temporary(slot);
    apply(select_integer(difference ? Operation::Sub : Operation::Add, bits), first, {a, b});
    Value carried = difference ? compare(Comparison::Ge, a, b) : compare(Comparison::Lt, first, a), sum = first;
    if (reads) {
        const Value one = temporary(slot), either = temporary(0);
        apply(select_choose(slot), one, {constant(1, slot), constant(0, slot), carry_flag()});
        sum = temporary(slot);
        apply(select_integer(Operation::Add, bits), sum, {first, one});
        apply(predicate_or, either, {carried, compare(Comparison::Lt, sum, first)});
        carried = either;
    }
    if (writes) apply(predicate_move, carry_flag(), {carried});
    apply(select_move(slot, slot), d.at, {sum});
    finish(d);
}

void Lowering::sum_with_carry(bool subtracts, bool reads, Form& form, Operands operands) {
    const bool writes = form.take(".cc");
    const Type type = form.take_type().value_or(Type::Pred);
    if (type == Type::Pred || ir::is_float(type)) unsupported("a sum that carries is of integers");
    const Value a = source(operands[1], type), b = source(operands[2], type);
    with_carry(subtracts, reads, writes, type, result(operands[0], type), a, b);
}
void Lowering::addc(Form& form, Operands operands) { sum_with_carry(false, true, form, operands); }
void Lowering::subc(Form& form, Operands operands) { sum_with_carry(true, true, form, operands); }

/// mad.lo.cc, madc.hi ...: the product's half, then the sum.
void Lowering::product_with_carry(bool reads, Form& form, Operands operands) {
    const Operation half = form.take_any({".lo", ".hi"}) == ".hi" ? Operation::MulHi : Operation::Mul;
    const bool writes = form.take(".cc");
    const Type type = form.take_type().value_or(Type::Pred);
    if (type == Type::Pred || ir::is_float(type)) unsupported("a sum that carries is of integers");
    const Value product = temporary(slot_of(type)), c = source(operands[3], type);
    apply(select_integer(half, type), product, {source(operands[1], type), source(operands[2], type)});
    with_carry(false, reads, writes, type, result(operands[0], type), product, c);
}
void Lowering::madc(Form& form, Operands operands) { product_with_carry(true, form, operands); }

}  // namespace ikat::emulator
