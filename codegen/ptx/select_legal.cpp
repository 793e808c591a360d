// SPDX-License-Identifier: Apache-2.0
// Each instruction by itself, in a form that PTX and the target have.
//
//     %1 = convert.i32.u32 %0        ==>  %0              the same bits
//     %1 = bitcast.f32.u32 %0        ==>  %0
//     %1 = convert.u8.i32 %0         ==>  cvt.u32.u8      truncated and extended again: u8 lives in 32 bits
//     %1 = min.f16 %a, %b            ==>  min.f32 of both, converted back, below sm_80
//
// Registers have no signedness, so that a conversion between integers changes bits only where the width in registers
// does, or where an integer of 8 or 16 bits must be extended anew.
#include "codegen/ir/shape.hpp"
#include "codegen/ptx/allocation.hpp"
#include "codegen/ptx/rewriter.hpp"
#include "codegen/ptx/select_steps.hpp"

namespace ikat::ptx {
namespace {

using ir::Inst, ir::Instruction, ir::Op, ir::Type, ir::Value, ir::Word;

constexpr bool is_narrow(Type type) { return contains(ir::NarrowInt, type); }
/// The type in registers.
constexpr Type widened(Type type) {
    if (!is_narrow(type)) return type;
    return ir::is_signed(type) ? Type::I32 : Type::U32;
}
/// Whether `to` holds every integer of type `from`; then an extended `from` is extended as `to` wants it.
constexpr bool holds_all(Type to, Type from) {
    if (from == to) return true;
    return bits(from) < bits(to) && (!ir::is_signed(from) || ir::is_signed(to));
}
constexpr Word extended(Type type, Word bits) {
    if (!is_narrow(type) || !ir::is_signed(type)) return bits;
    const int unused = 64 - ir::bits(type);
    return std::uint32_t(std::int64_t(bits << unused) >> unused);
}

class Legaliser {
public:
    Legaliser(ir::Function& fn, const Target& target) : fn_(fn), walk_(fn), target_(target) {}

    void run() {
        widen_values();
        walk_.run([this](Inst inst) { rewrite(inst); });
        for (ir::Block block : fn_.blocks()) terminator(block);
    }

private:
    void widen_values();
    void rewrite(Inst inst);
    void terminator(ir::Block block);
    void constant(Inst inst);
    void convert(Inst inst);
    void convert_integer(Inst inst);
    void extend_anew(Inst inst);
    void bitcast(Inst inst);
    void same_bits(Inst inst);
    void become_convert(Inst inst, Type to, Type from);
    bool lacks_half_minimum(const Instruction& inst) const;
    void minimum_in_float(Inst inst);
    void shorten_counts(Inst inst, std::uint32_t first);
    void fold_negations(Inst inst);

    ir::Function& fn_;
    Rewriter walk_;
    const Target& target_;
};

void Legaliser::widen_values() {
    for (Value value : ids<Value>(fn_.value_count())) fn_.set_type(value, widened(fn_.type(value)));
}

void Legaliser::rewrite(Inst inst) {
    fold_negations(inst);
    Instruction& it = fn_[inst];
    if (it.type == Type::F64) it.fp.approx = false;  // PTX has no approximate f64 but rsqrt, which is always so
    switch (it.op) {
        case Op::Const: return constant(inst);
        case Op::Convert: return convert(inst);
        case Op::Bitcast: return bitcast(inst);
        case Op::ExtractBits: return shorten_counts(inst, 1);
        case Op::InsertBits: return shorten_counts(inst, 2);
        default: return lacks_half_minimum(it) ? minimum_in_float(inst) : walk_.keep(inst);
    }
}

void Legaliser::constant(Inst inst) {
    fn_[inst].attribute = extended(fn_[inst].type, fn_[inst].attribute);
    fn_[inst].type = widened(fn_[inst].type);
    walk_.keep(inst);
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
    const Type to = fn_[inst].type, from = fn_[inst].from;
    if (is_narrow(to)) return holds_all(to, from) ? same_bits(inst) : extend_anew(inst);
    if (bits(to) == bits(widened(from))) return same_bits(inst);
    if (bits(to) == 32) return become_convert(inst, Type::U32, Type::U64);
    const bool is_signed = ir::is_signed(from);
    become_convert(inst, is_signed ? Type::I64 : Type::U64, is_signed ? Type::I32 : Type::U32);
}

/// To an integer of 8 or 16 bits: truncated and extended in one conversion, of 64 bits in two.
void Legaliser::extend_anew(Inst inst) {
    const Instruction it = fn_[inst];
    if (bits(it.from) == 64) {
        const Instruction half{.op = Op::Convert, .type = Type::U32, .from = Type::U64, .where = it.where};
        const Value low = walk_.make(half, {walk_.operand(fn_.result(inst), 0)}, Type::U32);
        fn_.operands(inst)[0] = low;
    }
    become_convert(inst, widened(it.type), it.type);
}

void Legaliser::bitcast(Inst inst) {
    const Type to = fn_[inst].type, from = fn_[inst].from;
    if (pool_of(to) == pool_of(from)) return is_narrow(to) ? convert_integer(inst) : same_bits(inst);
    if (to == Type::F16) return become_convert(inst, Type::U16, Type::U32);
    become_convert(inst, widened(to), to);  // from f16, whose register is read as an integer
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

// ---- what a target lacks

bool Legaliser::lacks_half_minimum(const Instruction& inst) const {
    return (inst.op == Op::Min || inst.op == Op::Max) && inst.type == Type::F16 &&
           !supports(target_, Feature::HalfMinMax);
}

/// Exact: f32 holds every f16, has the same rules for NaN and zeros, and the result is one of the two.
void Legaliser::minimum_in_float(Inst inst) {
    const Instruction it = fn_[inst];
    const Instruction widen{.op = Op::Convert, .type = Type::F32, .from = Type::F16, .where = it.where};
    const Instruction narrow{.op = Op::Convert, .type = Type::F16, .from = Type::F32, .where = it.where};
    const Value a = walk_.make(widen, {walk_.operand(fn_.result(inst), 0)}, Type::F32);
    const Value b = walk_.make(widen, {walk_.operand(fn_.result(inst), 1)}, Type::F32);
    const Value chosen = walk_.make({.op = it.op, .type = Type::F32, .where = it.where}, {a, b}, Type::F32);
    walk_.replace(fn_.result(inst), walk_.make(narrow, {chosen}, Type::F16));
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

}  // namespace ikat::ptx
