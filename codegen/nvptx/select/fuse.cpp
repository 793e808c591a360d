// SPDX-License-Identifier: Apache-2.0
// Pairs of instructions that PTX has in one. A product is taken into a sum only where both are in one block and
// nothing else needs the product, so that no work is repeated. Products of floats are taken in even if others need
// them: an fma costs what a sum does. Sums of 64 bits are left alone: ptxas makes one instruction, IMAD.WIDE, of
// mul.wide and the sum after it, and more of mad.wide.
//
//     convert.u64.u32 %i * 4              ==>  mul.wide.u32 %i, 4
//     %a * %b + %c, %a << 2 + %c          ==>  mad.lo %a, %b, %c; mad.lo %a, 4, %c
//     %a * %b + %c of contractible floats ==>  fma %a, %b, %c
//     %a * %b - %c, %c - %a * %b          ==>  fma %a, %b, -%c; fma -%a, %b, %c     the same; ptxas takes signs in
//     convert.f32.f32.sat %a + %b         ==>  add.sat %a, %b             any sum or product of f16 or f32
#include <optional>

#include "codegen/ir/edit/rewriter.hpp"
#include "codegen/nvptx/select/steps.hpp"

namespace ikat::nvptx {
namespace {

using ir::Inst, ir::Instruction, ir::Op, ir::Type, ir::Value, ir::Word;

/// Whether a product and a sum may be fused into one rounding.
bool contractible(const ir::FloatInfo& product, const ir::FloatInfo& sum) {
    return product.contract && sum.contract && !product.sat && product.rounding == sum.rounding &&
           product.ftz == sum.ftz;
}

class Fusion {
public:
    explicit Fusion(ir::Function& fn) : fn_(fn), walk_(fn), uses_(count_uses(fn)) {}

    bool run() {
        walk_.run([this](Inst inst) { rewrite(inst); });
        return walk_.changed();
    }

private:
    /// A 64-bit value that was extended from 32 bits, so that a wide multiplication can use it.
    struct Widened {
        Value narrow;
        Type type;  // I32 or U32: how it is extended
    };
    struct Product {
        Value a, b;
        Type type;
    };

    void rewrite(Inst inst);
    void rewrite_sum(Inst inst);
    void rewrite_difference(Inst inst);
    bool saturate(Inst inst);
    std::optional<Widened> widened(Value value) const;
    std::optional<Product> wide_product(Inst inst);
    std::optional<Value> wide_factor(Value value, const Widened& other, bool is_shift, const Location& where);
    std::optional<Product> product(Value value, const Instruction& sum);
    bool is_at_hand(Value value) const;
    void become(Inst inst, Op op, Type type, std::initializer_list<Value> operands);

    ir::Function& fn_;
    ir::Rewriter walk_;
    std::vector<std::uint32_t> uses_;  // of the values that existed at the start
    std::vector<ir::Block> block_of_;  // by kept instruction
};

void Fusion::rewrite(Inst inst) {
    const Instruction it = fn_[inst];
    if (it.guard == ir::no_value) {
        if ((it.op == Op::Mul || it.op == Op::Shl) && (it.type == Type::U64 || it.type == Type::I64)) {
            if (const auto wide = wide_product(inst)) become(inst, Op::MulWide, wide->type, {wide->a, wide->b});
        } else if (it.op == Op::Add) {
            rewrite_sum(inst);
        } else if (it.op == Op::Sub && it.fp.contract) {
            rewrite_difference(inst);
        } else if (it.op == Op::Convert && saturate(inst)) {
            return;
        }
    }
    if (index(inst) >= block_of_.size()) block_of_.resize(index(inst) + 1, no_id<ir::Block>);
    block_of_[index(inst)] = walk_.block();
    walk_.keep(inst);
}

void Fusion::become(Inst inst, Op op, Type type, std::initializer_list<Value> operands) {
    Instruction& it = walk_.edit(inst);
    it.op = op;
    it.type = type;
    fn_.set_operands(inst, std::span(operands.begin(), operands.size()));
}

/// Whether it is defined in this block.
bool Fusion::is_at_hand(Value value) const {
    const Inst from = fn_[value].instruction;
    return index(from) < block_of_.size() && block_of_[index(from)] == walk_.block();
}

std::optional<Fusion::Widened> Fusion::widened(Value value) const {
    const Instruction* convert = walk_.defined_by(value, Op::Convert);
    if (!convert || bits(convert->type) != 64 || is_float(convert->type)) return {};
    if (convert->from != Type::I32 && convert->from != Type::U32) return {};
    return Widened{walk_.operand(value, 0), convert->from};
}

/// A factor (or with `is_shift`, a shift amount) as a 32-bit factor to multiply `other` by.
std::optional<Value> Fusion::wide_factor(Value value, const Widened& other, bool is_shift, const Location& where) {
    const Instruction* constant = walk_.defined_by(value, Op::Const);
    const bool is_signed = other.type == Type::I32;
    if (!constant) {
        const auto wide = is_shift ? std::nullopt : widened(value);
        return wide && wide->type == other.type ? std::optional(wide->narrow) : std::nullopt;
    }
    if (is_shift && constant->attribute > 31) return {};
    const Word factor = is_shift ? Word{1} << constant->attribute : Word{constant->attribute};
    const bool fits = is_signed ? std::int64_t(factor) == std::int32_t(factor) : factor == std::uint32_t(factor);
    if (!fits) return {};
    return walk_.constant(other.type, std::uint32_t(factor), where);
}

std::optional<Fusion::Product> Fusion::wide_product(Inst inst) {
    const Instruction& it = fn_[inst];
    const Location where = it.where;
    const bool is_shift = it.op == Op::Shl;
    for (const std::uint32_t first : {0u, 1u}) {
        if (is_shift && first == 1) break;
        const Value a = fn_.operands(inst)[first], b = fn_.operands(inst)[1 - first];
        const auto wide = widened(a);
        if (!wide) continue;
        if (const auto factor = wide_factor(b, *wide, is_shift, where))
            return Product{wide->narrow, *factor, wide->type};
    }
    return {};
}

/// The value as a product that can be fused into the sum.
std::optional<Fusion::Product> Fusion::product(Value value, const Instruction& sum) {
    if (!is_at_hand(value) || (bits(sum.type) == 64 && !is_float(sum.type))) return {};
    if (is_float(sum.type)) {
        const Instruction* times = walk_.defined_by(value, Op::Mul);
        if (!times || !contractible(times->fp, sum.fp)) return {};
        return Product{walk_.operand(value, 0), walk_.operand(value, 1), sum.type};
    }
    if (index(value) >= uses_.size() || uses_[index(value)] != 1) return {};
    if (walk_.defined_by(value, Op::Shl)) {
        const Instruction* amount = walk_.defined_by(walk_.operand(value, 1), Op::Const);
        if (!amount || amount->attribute >= Word(bits(sum.type))) return {};
        const Word factor = std::uint32_t(1) << amount->attribute;
        return Product{walk_.operand(value, 0), walk_.constant(sum.type, factor, sum.where), sum.type};
    }
    if (!walk_.defined_by(value, Op::Mul)) return {};
    return Product{walk_.operand(value, 0), walk_.operand(value, 1), sum.type};
}

void Fusion::rewrite_sum(Inst inst) {
    const Instruction sum = fn_[inst];
    for (const std::uint32_t first : {0u, 1u}) {
        const Value other = fn_.operands(inst)[1 - first];
        const auto factors = product(fn_.operands(inst)[first], sum);
        if (!factors) continue;
        become(inst, Op::Fma, sum.type, {factors->a, factors->b, other});
        return;
    }
}

void Fusion::rewrite_difference(Inst inst) {
    const Instruction difference = fn_[inst];
    const Value left = fn_.operands(inst)[0], right = fn_.operands(inst)[1];
    const auto negated = [&](Value value) {
        return walk_.make({.op = Op::Neg, .type = difference.type, .where = difference.where}, {value},
                          difference.type);
    };
    if (const auto of_left = product(left, difference))
        become(inst, Op::Fma, difference.type, {of_left->a, of_left->b, negated(right)});
    else if (const auto of_right = product(right, difference))
        become(inst, Op::Fma, difference.type, {negated(of_right->a), of_right->b, left});
}

/// Makes the clamp a modifier of the sum or product, if that has no other use.
bool Fusion::saturate(Inst inst) {
    const Instruction it = fn_[inst];
    const Value clamped = std::as_const(fn_).operands(inst)[0];
    const Inst from = fn_[clamped].instruction;
    const bool clamps =
        it.fp.sat && it.type == it.from && contains(ir::set(Type::F16, Type::F32), it.type) && !it.fp.ftz;
    if (!clamps || from == ir::no_inst || index(clamped) >= uses_.size() || uses_[index(clamped)] != 1) return false;
    Instruction& sum = fn_[from];
    const bool has_form = sum.type == it.type && ir::info(sum.op).modifiers & ir::Sat && sum.op != Op::Convert;
    if (!has_form || sum.guard != ir::no_value) return false;
    sum.fp.sat = true;
    walk_.replace(fn_.result(inst), clamped);
    return true;
}

}  // namespace

Changed fuse(ir::Function& fn) { return analysis::instructions_if(Fusion(fn).run()); }

}  // namespace ikat::nvptx
