// SPDX-License-Identifier: Apache-2.0
// The rule for 8 bits, here and nowhere else: a value of 8 bits lives in a 32-bit register, extended as its type says
// (8-bit floats as u8). An operation on it is the 32-bit operation on those registers; unless it gives values that fit
// again (the trait Narrows), its result is truncated and extended anew.
//
//     %1 = add.u8 %a, %b             ==>  add.u32, then convert.u32.u8, which truncates
//     %1 = min.i8 %a, %b             ==>  min.i32
//     %1 = convert.u8.u64 %a         ==>  convert.u32.u64, then convert.u32.u8
//     %1 = convert.f32.i8 %a         ==>  convert.f32.i32 %a
//     %1 = bitcast.u8.e4m3 %a        ==>  %a
//
// Accesses to memory keep their type, and so do conversions from floats and those that clamp. Conversions of 8-bit
// floats are left to the target.
#include "codegen/legalise/bytes.hpp"

#include <algorithm>

#include "codegen/ir/edit/rewriter.hpp"
#include "codegen/ir/op/shape.hpp"
#include "codegen/legalise/legalise.hpp"

namespace ikat::legalise {
namespace {

using ir::Inst, ir::Instruction, ir::Op, ir::Type, ir::Value, ir::Word;

constexpr Type widened(Type type) {
    if (!is_byte(type)) return type;
    return type == Type::I8 ? Type::I32 : Type::U32;
}
constexpr Type integer_of(Type type) { return contains(ir::Float8, type) ? Type::U8 : type; }
constexpr Word extended(Type type, Word bits) { return type == Type::I8 ? std::uint32_t(std::int8_t(bits)) : bits; }

class Bytes {
public:
    explicit Bytes(ir::Function& fn) : fn_(fn), walk_(fn) {}

    void run() {
        for (Value value : ids<Value>(fn_.value_count())) fn_.set_type(value, widened(fn_.type(value)));
        walk_.run([this](Inst inst) { rewrite(inst); });
    }

private:
    void rewrite(Inst inst) {
        const Instruction& it = fn_[inst];
        switch (it.op) {
            case Op::Const: return constant(inst);
            case Op::Convert: return convert(inst);
            case Op::Bitcast: return is_byte(it.type) ? to_byte(inst) : walk_.keep(inst);
            default: return is_byte(it.type) && !ir::info(it.op).effect ? in_registers(inst) : walk_.keep(inst);
        }
    }

    void constant(Inst inst) {
        fn_[inst].attribute = extended(fn_[inst].type, fn_[inst].attribute);
        fn_[inst].type = widened(fn_[inst].type);
        walk_.keep(inst);
    }

    void in_registers(Inst inst) {
        const Instruction it = fn_[inst];
        const Type wide = widened(it.type);
        fn_[inst].type = wide;
        walk_.keep(inst);
        if (has(it.op, ir::Narrows) || ir::info(it.op).shape.result != ir::Slot::T) return;
        const Instruction wrap{.op = Op::Convert, .type = wide, .from = it.type, .where = it.where};
        walk_.replace(fn_.result(inst), walk_.make(wrap, {fn_.result(inst)}, wide));
    }

    void convert(Inst inst) {
        Instruction& it = fn_[inst];
        if (contains(ir::Float8, it.type) || contains(ir::Float8, it.from)) return walk_.keep(inst);
        const bool integers = !is_float(it.type) && !is_float(it.from);
        if (integers && holds_all(it.type, it.from)) it.fp.sat = false;  // the wider register has no other values
        if (is_byte(it.type) && !is_float(it.from) && !it.fp.sat) return to_byte(inst);
        it.from = widened(it.from);
        walk_.keep(inst);
    }

    /// From an integer: it is there as it is, or truncated and extended in one conversion, from 64 bits in two.
    void to_byte(Inst inst) {
        const Instruction it = fn_[inst];
        const Type to = integer_of(it.type);
        const Value from = std::as_const(fn_).operands(inst)[0];
        if (holds_all(to, integer_of(it.from))) return walk_.replace(fn_.result(inst), from);
        if (bits(it.from) == 64) {
            const Instruction half{.op = Op::Convert, .type = Type::U32, .from = Type::U64, .where = it.where};
            const Value low = walk_.make(half, {from}, Type::U32);
            fn_.operands(inst)[0] = low;
        }
        Instruction& truncates = fn_[inst];
        truncates.op = Op::Convert, truncates.type = widened(it.type), truncates.from = to, truncates.fp = {};
        walk_.keep(inst);
    }

    ir::Function& fn_;
    ir::Rewriter walk_;
};

}  // namespace

analysis::Changed widen_bytes(ir::Function& fn) {
    const auto values = ids<Value>(fn.value_count());
    const bool any = std::ranges::any_of(values, [&](Value value) { return is_byte(fn.type(value)); });
    if (any) Bytes(fn).run();
    return analysis::instructions_if(any);
}

}  // namespace ikat::legalise
