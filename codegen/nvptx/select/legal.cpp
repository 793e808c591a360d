// SPDX-License-Identifier: Apache-2.0
// Rewrites each instruction to a form that PTX and the target have.
//
//     %1 = convert.i32.u32 %0        ==>  %0                          the same bits
//     %1 = bitcast.f32.u32 %0        ==>  %0
//     %1 = min.f16 %a, %b            ==>  min.f32 of both, converted back, below sm_80
//     %1 = add.bf16 %a, %b           ==>  fma.bf16 %a, 1, %b below sm_90   (floats.hpp)
//     %p = mbarrier.u32 try, [%b], 0 ==>  mbarrier.u32 test, [%b], 0 below sm_90
//     fence barrier_init             ==>  nothing below sm_90, where other blocks and copies do not use barriers
//
// Registers have no signedness, so a conversion between integers changes bits only if the register width changes.
//
// Needs: values of 8 bits in registers of 32 (legalise/bytes.cpp).
#include "codegen/ir/edit/rewriter.hpp"
#include "codegen/ir/op/forms/barriers.hpp"
#include "codegen/ir/op/forms/mbarrier.hpp"
#include "codegen/ir/op/shape.hpp"
#include "codegen/legalise/bytes.hpp"
#include "codegen/nvptx/select/floats.hpp"
#include "codegen/nvptx/select/steps.hpp"

namespace ikat::nvptx {
namespace {

using ir::Inst, ir::Instruction, ir::Op, ir::Type, ir::Value, ir::Word;

constexpr Type sized(int bits, bool is_signed) {
    switch (bits) {
        case 16: return is_signed ? Type::I16 : Type::U16;
        case 32: return is_signed ? Type::I32 : Type::U32;
        default: return is_signed ? Type::I64 : Type::U64;
    }
}

class Legaliser {
public:
    Legaliser(ir::Function& fn, const ptx::Target& target)
        : fn_(fn), walk_(fn), floats_(walk_, target), has_clusters_(supports(target, ptx::Feature::Clusters)) {}

    Changed run() {
        walk_.run([this](Inst inst) { rewrite(inst); });
        Changed changed = analysis::instructions_if(walk_.changed());
        for (ir::Block block : fn_.blocks()) changed |= terminator(block);
        return changed;
    }

private:
    void rewrite(Inst inst);
    Changed terminator(ir::Block block);
    void convert(Inst inst);
    void convert_integer(Inst inst);
    void same_bits(Inst inst);
    void become_convert(Inst inst, Type to, Type from);
    void shorten_counts(Inst inst, std::uint32_t first);
    void fold_negations(Inst inst);
    void test_barrier(Inst inst);
    void fence(Inst inst);

    ir::Function& fn_;
    ir::Rewriter walk_;
    FloatForms floats_;
    bool has_clusters_;
};

void Legaliser::rewrite(Inst inst) {
    fold_negations(inst);
    Instruction& it = fn_[inst];
    if (it.type == Type::F64 && it.fp.approx)
        walk_.edit(inst).fp.approx = false;  // in PTX, only rsqrt has an approximate f64
    if (const auto other = floats_.rewrite(inst)) return walk_.replace(fn_.result(inst), *other);
    switch (it.op) {
        case Op::Convert: return convert(inst);
        case Op::Bitcast: return same_bits(inst);
        case Op::Mbarrier: return test_barrier(inst);
        case Op::Fence: return fence(inst);
        case Op::ExtractBits: return shorten_counts(inst, 1);
        case Op::InsertBits: return shorten_counts(inst, 2);
        default: return walk_.keep(inst);
    }
}

void Legaliser::test_barrier(Inst inst) {
    using ir::MbarrierForm;
    auto form = ir::unpack<MbarrierForm>(fn_[inst].attribute);
    if (form.kind == MbarrierForm::Kind::Try && !has_clusters_) {
        form.kind = MbarrierForm::Kind::Test;
        walk_.edit(inst).attribute = ir::pack(form);
    }
    walk_.keep(inst);
}

void Legaliser::fence(Inst inst) {
    const bool is_init = ir::unpack<ir::FenceForm>(fn_[inst].attribute).order == ir::FenceOrder::BarrierInit;
    if (!is_init || has_clusters_) walk_.keep(inst);
}

// ---- conversions

void Legaliser::convert(Inst inst) {
    const Instruction& it = fn_[inst];
    const bool floats = is_float(it.type) || is_float(it.from);
    const bool clamps = it.fp.sat && !legalise::holds_all(it.type, it.from);
    const bool wraps = legalise::is_byte(it.from);  // a value of 8 bits that bytes.cpp has widened
    if (floats || clamps || wraps) return walk_.keep(inst);
    convert_integer(inst);
}

void Legaliser::convert_integer(Inst inst) {
    const Type to = fn_[inst].type, from = fn_[inst].from;
    const int width = bits(from);
    if (bits(to) == width) return same_bits(inst);
    const bool extends = bits(to) > width && ir::is_signed(from);
    const Value narrow = std::as_const(fn_).operands(inst)[0];  // cvt uses only the lower 16 of 32 bits
    const Instruction* truncated = walk_.defined_by(narrow, Op::Convert);
    if (bits(to) == 32 && truncated && truncated->type == Type::U16 && truncated->from == Type::U32)
        fn_.operands(inst)[0] = walk_.operand(narrow, 0);
    become_convert(inst, sized(bits(to), extends), sized(width, extends));
}

/// Replaces the result by the operand, or for a constant operand by one of the result's type, so that it is spelled
/// right.
void Legaliser::same_bits(Inst inst) {
    const Value from = std::as_const(fn_).operands(inst)[0], to = fn_.result(inst);
    const Instruction* constant = walk_.defined_by(from, Op::Const);
    walk_.replace(to, constant ? walk_.constant(fn_.type(to), constant->attribute, fn_[inst].where) : from);
}

void Legaliser::become_convert(Inst inst, Type to, Type from) {
    Instruction& it = walk_.edit(inst);
    it.op = Op::Convert, it.type = to, it.from = from, it.fp = {};
    walk_.keep(inst);
}

// ---- fields of bits

/// The position and the length of a bit field count modulo 256, and constants must be below 256. In the fields of 64
/// bits that ptxas makes of several instructions, they count in full (seen in its code for sm_90): there, others are
/// masked.
void Legaliser::shorten_counts(Inst inst, std::uint32_t first) {
    const bool is_wide = ir::bits(fn_[inst].type) == 64;
    for (std::uint32_t i = first; i < first + 2; ++i) {
        const Location where = fn_[inst].where;
        const Value count = walk_.operand(fn_.result(inst), i);
        if (const Instruction* const number = walk_.defined_by(count, Op::Const)) {
            if (number->attribute < 256) continue;
            const Value shorter = walk_.constant(Type::U32, number->attribute & 255, where);
            fn_.operands(inst)[i] = shorter;
        } else if (is_wide) {
            const Value mask = walk_.constant(Type::U32, 255, where);
            const Value shorter =
                walk_.make({.op = Op::And, .type = Type::U32, .where = where}, {count, mask}, Type::U32);
            fn_.operands(inst)[i] = shorter;
        }
    }
    walk_.keep(inst);
}

// ---- negated predicates

/// Selects, guards and branches can use a predicate or its negation.
void Legaliser::fold_negations(Inst inst) {
    Instruction& it = fn_[inst];
    while (it.guard != ir::no_value && walk_.defined_by(it.guard, Op::Not)) {
        walk_.edit(inst).guard = walk_.operand(it.guard, 0);
        it.guard_negated = !it.guard_negated;
    }
    const auto operands = fn_.operands(inst);
    while (it.op == Op::Select && walk_.defined_by(operands[2], Op::Not)) {
        walk_.edit(inst);
        operands[2] = walk_.operand(operands[2], 0);
        std::swap(operands[0], operands[1]);
    }
}

Changed Legaliser::terminator(ir::Block block) {
    ir::Terminator& it = fn_[block].terminator;
    Changed changed = Changed::Nothing;
    if (it.kind == ir::Terminator::Kind::Branch) {
        while (walk_.defined_by(it.condition, Op::Not)) {
            it.condition = walk_.operand(it.condition, 0);
            std::swap(it.targets[0], it.targets[1]);
            changed = Changed::ControlFlow;
        }
    } else if (it.kind == ir::Terminator::Kind::Multiway) {
        const Value last =
            fn_.result(fn_.append(block, {.op = Op::Const, .type = Type::U32, .attribute = it.targets.size() - 1}, {},
                                  std::array{Type::U32}));
        const Value both[] = {it.condition, last};
        it.condition = fn_.result(fn_.append(block, {.op = Op::Min, .type = Type::U32}, both, std::array{Type::U32}));
        changed = Changed::Instructions;
    }
    return changed;
}

}  // namespace

Changed legalise(ir::Function& fn, const ptx::Target& target) { return Legaliser(fn, target).run(); }

}  // namespace ikat::nvptx
