// SPDX-License-Identifier: Apache-2.0
// Each instruction by itself, in a form that PTX and the target have.
//
//     %1 = convert.i32.u32 %0        ==>  %0                          the same bits
//     %1 = bitcast.f32.u32 %0        ==>  %0
//     %1 = add.u8 %a, %b             ==>  add.u32, then cvt.u32.u8    u8 lives in 32 bits
//     %1 = min.f16 %a, %b            ==>  min.f32 of both, converted back, below sm_80
//     %1 = add.bf16 %a, %b           ==>  fma.bf16 %a, 1, %b below sm_90   (floats.hpp)
//
// Registers have no signedness, so that a conversion between integers changes bits only where the width in registers
// does, or where it leaves 8 bits.
//
// The rule for 8 bits, here and nowhere else: a value of 8 bits lives in a 32-bit register, extended as its type says
// (8-bit floats as u8). An operation on it is the 32-bit operation on those registers; unless it gives values that fit
// again (the trait Narrows), its result is truncated and extended anew.
#include "codegen/ir/edit/rewriter.hpp"
#include "codegen/ir/op/shape.hpp"
#include "codegen/nvptx/select/floats.hpp"
#include "codegen/nvptx/select/steps.hpp"

namespace ikat::nvptx {
namespace {

using ir::Inst, ir::Instruction, ir::Op, ir::Type, ir::Value, ir::Word;

constexpr bool is_byte(Type type) { return contains(ir::ByteInt | ir::Float8, type); }
/// The type in registers.
constexpr Type widened(Type type) {
    if (!is_byte(type)) return type;
    return type == Type::I8 ? Type::I32 : Type::U32;
}
constexpr Type integer_of(Type type) { return contains(ir::Float8, type) ? Type::U8 : type; }
constexpr Type sized(int bits, bool is_signed) {
    switch (bits) {
        case 16: return is_signed ? Type::I16 : Type::U16;
        case 32: return is_signed ? Type::I32 : Type::U32;
        default: return is_signed ? Type::I64 : Type::U64;
    }
}
/// Whether `to` holds every integer of type `from`; then an extended `from` is extended as `to` wants it.
constexpr bool holds_all(Type to, Type from) {
    if (from == to) return true;
    return bits(from) < bits(to) && (!ir::is_signed(from) || ir::is_signed(to));
}
constexpr Word extended(Type type, Word bits) { return type == Type::I8 ? std::uint32_t(std::int8_t(bits)) : bits; }

class Legaliser {
public:
    Legaliser(ir::Function& fn, const Target& target) : fn_(fn), walk_(fn), floats_(walk_, target) {}

    void run() {
        for (Value value : ids<Value>(fn_.value_count())) fn_.set_type(value, widened(fn_.type(value)));
        walk_.run([this](Inst inst) { rewrite(inst); });
        for (ir::Block block : fn_.blocks()) terminator(block);
    }

private:
    void rewrite(Inst inst);
    void terminator(ir::Block block);
    void constant(Inst inst);
    void in_registers(Inst inst);
    void convert(Inst inst);
    void convert_integer(Inst inst);
    void extend_anew(Inst inst);
    void same_bits(Inst inst);
    void become_convert(Inst inst, Type to, Type from);
    void shorten_counts(Inst inst, std::uint32_t first);
    void fold_negations(Inst inst);

    ir::Function& fn_;
    ir::Rewriter walk_;
    FloatForms floats_;
};

void Legaliser::rewrite(Inst inst) {
    fold_negations(inst);
    Instruction& it = fn_[inst];
    if (it.type == Type::F64) it.fp.approx = false;  // PTX has no approximate f64 but rsqrt, which is always so
    if (const auto other = floats_.rewrite(inst)) return walk_.replace(fn_.result(inst), *other);
    switch (it.op) {
        case Op::Const: return constant(inst);
        case Op::Convert: return convert(inst);
        case Op::Bitcast: return is_byte(it.type) ? convert_integer(inst) : same_bits(inst);
        case Op::ExtractBits: return shorten_counts(inst, 1);
        case Op::InsertBits: return shorten_counts(inst, 2);
        default: return is_byte(it.type) && !ir::info(it.op).effect ? in_registers(inst) : walk_.keep(inst);
    }
}

void Legaliser::constant(Inst inst) {
    fn_[inst].attribute = extended(fn_[inst].type, fn_[inst].attribute);
    fn_[inst].type = widened(fn_[inst].type);
    walk_.keep(inst);
}

/// The rule for 8 bits.
void Legaliser::in_registers(Inst inst) {
    const Instruction it = fn_[inst];
    const Type wide = widened(it.type);
    fn_[inst].type = wide;
    walk_.keep(inst);
    if (has(it.op, ir::Narrows) || ir::info(it.op).shape.result != ir::Slot::T) return;
    const Instruction wrap{.op = Op::Convert, .type = wide, .from = it.type, .where = it.where};
    walk_.replace(fn_.result(inst), walk_.make(wrap, {fn_.result(inst)}, wide));
}

// ---- conversions

void Legaliser::convert(Inst inst) {
    Instruction& it = fn_[inst];
    const bool floats = is_float(it.type) || is_float(it.from);
    if (!floats && (!it.fp.sat || holds_all(it.type, it.from))) return convert_integer(inst);  // nothing to clamp
    it.from = widened(it.from);
    walk_.keep(inst);
}

void Legaliser::convert_integer(Inst inst) {
    const Type to = integer_of(fn_[inst].type), from = integer_of(fn_[inst].from);
    if (is_byte(to)) return holds_all(to, from) ? same_bits(inst) : extend_anew(inst);
    const int width = bits(widened(from));
    if (bits(to) == width) return same_bits(inst);
    const bool extends = bits(to) > width && ir::is_signed(from);
    const Value narrow = std::as_const(fn_).operands(inst)[0];  // of 32 bits, cvt takes the lower 16 itself
    const Instruction* truncated = walk_.defined_by(narrow, Op::Convert);
    if (bits(to) == 32 && truncated && truncated->type == Type::U16 && truncated->from == Type::U32)
        fn_.operands(inst)[0] = walk_.operand(narrow, 0);
    become_convert(inst, sized(bits(to), extends), sized(width, extends));
}

/// To an integer of 8 bits: truncated and extended in one conversion, of 64 bits in two.
void Legaliser::extend_anew(Inst inst) {
    const Instruction it = fn_[inst];
    if (bits(it.from) == 64) {
        const Instruction half{.op = Op::Convert, .type = Type::U32, .from = Type::U64, .where = it.where};
        const Value low = walk_.make(half, {walk_.operand(fn_.result(inst), 0)}, Type::U32);
        fn_.operands(inst)[0] = low;
    }
    become_convert(inst, widened(it.type), integer_of(it.type));
}

/// The result is the operand, or if that is a constant one of the result's type, so that it is written as such.
void Legaliser::same_bits(Inst inst) {
    const Value from = std::as_const(fn_).operands(inst)[0], to = fn_.result(inst);
    const Word* bits = walk_.defined_by(from, Op::Const) ? &walk_.defined_by(from, Op::Const)->attribute : nullptr;
    walk_.replace(to, bits ? walk_.constant(fn_.type(to), *bits, fn_[inst].where) : from);
}

void Legaliser::become_convert(Inst inst, Type to, Type from) {
    Instruction& it = fn_[inst];
    it.op = Op::Convert, it.type = to, it.from = from, it.fp = {};
    walk_.keep(inst);
}

// ---- fields of bits

/// The position and the length of a field count modulo 256, and no constant may be more than that says.
void Legaliser::shorten_counts(Inst inst, std::uint32_t first) {
    for (std::uint32_t i = first; i < first + 2; ++i) {
        const Instruction* const count = walk_.defined_by(walk_.operand(fn_.result(inst), i), Op::Const);
        if (!count || count->attribute < 256) continue;
        const Value shorter = walk_.constant(Type::U32, count->attribute & 255, fn_[inst].where);
        fn_.operands(inst)[i] = shorter;
    }
    walk_.keep(inst);
}

// ---- negated predicates

/// select, guards and branches take either sense of a predicate.
void Legaliser::fold_negations(Inst inst) {
    Instruction& it = fn_[inst];
    while (it.guard != ir::no_value && walk_.defined_by(it.guard, Op::Not)) {
        it.guard = walk_.operand(it.guard, 0);
        it.guard_negated = !it.guard_negated;
    }
    const auto operands = fn_.operands(inst);
    while (it.op == Op::Select && walk_.defined_by(operands[2], Op::Not)) {
        operands[2] = walk_.operand(operands[2], 0);
        std::swap(operands[0], operands[1]);
    }
}

void Legaliser::terminator(ir::Block block) {
    ir::Terminator& it = fn_[block].terminator;
    if (it.kind == ir::Terminator::Kind::Branch) {
        while (walk_.defined_by(it.condition, Op::Not)) {
            it.condition = walk_.operand(it.condition, 0);
            std::swap(it.targets[0], it.targets[1]);
        }
    } else if (it.kind == ir::Terminator::Kind::Multiway) {
        const Value last =
            fn_.result(fn_.append(block, {.op = Op::Const, .type = Type::U32, .attribute = it.targets.size() - 1}, {},
                                  std::array{Type::U32}));
        const Value both[] = {it.condition, last};
        it.condition = fn_.result(fn_.append(block, {.op = Op::Min, .type = Type::U32}, both, std::array{Type::U32}));
    }
}

}  // namespace

void legalise(ir::Function& fn, const Target& target) { Legaliser(fn, target).run(); }

}  // namespace ikat::nvptx
