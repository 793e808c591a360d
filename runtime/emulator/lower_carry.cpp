// SPDX-License-Identifier: Apache-2.0
// Sums and differences that carry: add.cc, addc, sub.cc, subc, mad.cc, madc. The condition code is one predicate of the
// kernel, a bit for each lane, as any other predicate: what .cc writes, the next instruction of a chain reads.
#include "runtime/emulator/lowering.hpp"

namespace ikat::emulator {

/// The predicate that stands for CC.CF; 0 before the first instruction that writes it.
Value Lowering::carry_flag() {
    if (!carry_flag_) {
        carry_flag_ = new_value(0, 0);
        apply(predicate_literal, *carry_flag_, {}, 0);
    }
    return *carry_flag_;
}

/// d = a + b + CF, or a - b - CF; CF is left out where the instruction does not read it.
void Lowering::with_carry(bool subtracts, bool reads, bool writes, Type type, const Result& d, Value a, Value b) {
    const Type bits = slot_of(type) == 8 ? Type::U64 : Type::U32;
    const std::uint8_t slot = slot_of(bits);
    const Handler operation = select_integer(subtracts ? Operation::Sub : Operation::Add, bits);
    const Handler below = select_compare(Comparison::Lt, bits, false);
    const Value first = temporary(slot), carried = temporary(0);
    apply(operation, first, {a, b});
    // a sum that has wrapped is below its operands; a difference wraps where a is below b
    subtracts ? apply(below, carried, {a, b}) : apply(below, carried, {first, a});
    Value sum = first;
    if (reads) {
        const Value one = temporary(slot), again = temporary(0);
        apply(select_choose(slot), one, {constant(1, slot), constant(0, slot), carry_flag()});
        sum = temporary(slot);
        apply(operation, sum, {first, one});
        subtracts ? apply(below, again, {first, one}) : apply(below, again, {sum, first});
        apply(predicate_or, carried, {carried, again});
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
