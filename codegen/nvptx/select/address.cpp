// SPDX-License-Identifier: Apache-2.0
// Addresses as register + constant, and the read-only path.
//
//     %1 = add.u32 %i, 3
//     %2 = mul.u32 %1, 4              ==>   %4 = mul.u32 %i, 4
//     %3 = add.u32 $tile, %2                %5 = add.u32 $tile, %4     (shared by all such accesses)
//     load.f32 shared [%3]                  load.f32 shared [%5+12]
//
// The walk rewrites every integer sum and product as rest + constant, both modulo the width. Within 32 bits, and within
// 64, this is exact. Across a widening from 32 to 64 bits it is exact only if the 32-bit sum does not wrap: the passes
// prove that; here a widened index is not split.
//
// A load from a parameter that the kernel only reads (`in`) takes the read-only path, .nc.
//
// Leaves a rest where each sum is, used or not: common_subexpressions and dead_code come after.
#include <algorithm>
#include <array>

#include "codegen/analysis/memory.hpp"
#include "codegen/ir/edit/rewriter.hpp"
#include "codegen/ir/op/accesses.hpp"
#include "codegen/nvptx/select/steps.hpp"

namespace ikat::nvptx {
namespace {

using ir::Block, ir::Inst, ir::Instruction, ir::Op, ir::Type, ir::Value, ir::Word;

/// value = rest + constant, modulo the value's width.
struct Sum {
    Value rest;
    std::int64_t constant = 0;
};

class AddressFolding {
public:
    explicit AddressFolding(ir::Function& fn) : fn_(fn), walk_(fn) {}

    bool run(auto&& order) {
        walk_.run(order, [this](Inst inst) { rewrite(inst); });
        return walk_.changed();
    }

private:
    void rewrite(Inst inst);
    void rewrite_accesses(Inst inst);
    std::optional<Sum> split(Inst inst);
    Sum sum(Value value) const;
    std::optional<std::int64_t> constant(Value value) const;

    ir::Function& fn_;
    ir::Rewriter walk_;
    std::vector<Sum> sums_;  // by value; for values not in it, the value itself
};

void AddressFolding::rewrite(Inst inst) {
    const Instruction& it = fn_[inst];
    if (ir::is_address(it.op, 0)) return rewrite_accesses(inst);
    const bool is_integer_sum = it.guard == ir::no_value && contains(ir::Int, it.type) &&
                                (it.op == Op::Add || it.op == Op::Sub || it.op == Op::Mul || it.op == Op::Shl ||
                                 it.op == Op::Fma || it.op == Op::MadWide || it.op == Op::MulWide);
    if (!is_integer_sum) return walk_.keep(inst);
    const Value result = fn_.result(inst);
    if (const auto parts = split(inst)) {
        if (index(result) >= sums_.size()) sums_.resize(fn_.value_count(), {ir::no_value});
        sums_[index(result)] = *parts;
    }
    walk_.keep(inst);
}

Sum AddressFolding::sum(Value value) const {
    if (index(value) >= sums_.size() || sums_[index(value)].rest == ir::no_value) return {value};
    return sums_[index(value)];
}

std::optional<std::int64_t> AddressFolding::constant(Value value) const {
    const Instruction* it = walk_.defined_by(value, Op::Const);
    if (!it) return {};
    return std::int64_t(it->attribute);
}

/// The result as rest + constant; nothing if the constant is 0.
std::optional<Sum> AddressFolding::split(Inst inst) {
    const Instruction it = fn_[inst];
    Instruction base{.op = it.op, .type = it.type, .where = it.where};
    std::array<Value, 3> x{};  // a copy: new instructions may move the operands
    std::ranges::copy(fn_.operands(inst), x.begin());
    const Type type = fn_.type(fn_.result(inst));
    const auto wrapped = [&](std::uint64_t number) {
        return bits(type) == 32 ? std::int64_t(std::int32_t(number)) : std::int64_t(number);
    };
    const Sum a = sum(x[0]), b = sum(x[1]);
    const auto factor = constant(x[1]);
    switch (it.op) {
        case Op::Add:
            for (const auto& [number, other] : {std::pair{constant(x[0]), b}, std::pair{factor, a}})
                if (number) return Sum{other.rest, wrapped(std::uint64_t(*number) + std::uint64_t(other.constant))};
            if (a.constant == 0 && b.constant == 0) return {};
            return Sum{walk_.make(base, {a.rest, b.rest}, type),
                       wrapped(std::uint64_t(a.constant) + std::uint64_t(b.constant))};
        case Op::Sub:
            if (factor) return Sum{a.rest, wrapped(std::uint64_t(a.constant) - std::uint64_t(*factor))};
            if (a.constant == 0 && b.constant == 0) return {};
            return Sum{walk_.make(base, {a.rest, b.rest}, type),
                       wrapped(std::uint64_t(a.constant) - std::uint64_t(b.constant))};
        case Op::Mul:
            if (!factor || a.constant == 0) return {};
            return Sum{walk_.make(base, {a.rest, x[1]}, type),
                       wrapped(std::uint64_t(a.constant) * std::uint64_t(*factor))};
        case Op::Shl:
            if (!factor || a.constant == 0 || std::uint64_t(*factor) >= std::uint64_t(bits(type))) return {};
            return Sum{walk_.make(base, {a.rest, x[1]}, type), wrapped(std::uint64_t(a.constant) << *factor)};
        case Op::Fma: {
            const bool scaled = factor && a.constant != 0;
            const std::uint64_t product = scaled ? std::uint64_t(a.constant) * std::uint64_t(*factor) : 0;
            const Value first = scaled ? a.rest : x[0];
            if (const auto addend = constant(x[2])) {
                base.op = Op::Mul;
                return Sum{walk_.make(base, {first, x[1]}, type), wrapped(product + std::uint64_t(*addend))};
            }
            const Sum c = sum(x[2]);
            if (!scaled && c.constant == 0) return {};
            return Sum{walk_.make(base, {first, x[1], c.rest}, type), wrapped(product + std::uint64_t(c.constant))};
        }
        case Op::MadWide: {
            const Sum c = sum(x[2]);
            if (c.constant == 0) return {};
            return Sum{walk_.make(base, {x[0], x[1], c.rest}, type), c.constant};
        }
        default: return {};
    }
}

void AddressFolding::rewrite_accesses(Inst inst) {
    for (const ir::MemoryAccess& access : ir::accesses(fn_[inst])) {
        Value& address = fn_.operands(inst)[access.operand];
        const Sum parts = sum(address);
        const std::int64_t offset = access.offset + parts.constant;
        if (parts.rest == address || offset != std::int32_t(offset)) continue;
        ir::set_offset(walk_.edit(inst), access.operand, std::int32_t(offset));
        address = parts.rest;
    }
    walk_.keep(inst);
}

bool use_read_only_path(ir::Function& fn) {
    bool changed = false;
    const analysis::ConstantMemory constant_memory(fn);
    for (Block block : fn.blocks())
        for (Inst inst : fn[block].instructions) {
            ir::MemoryInfo& memory = fn[inst].memory;
            if (memory.space == ir::Space::Global && memory.cache == ir::CacheOperator::None &&
                constant_memory.is_read_by(inst))
                memory.cache = ir::CacheOperator::Nc, changed = true;
        }
    return changed;
}

}  // namespace

Changed fold_addresses(ir::Function& fn, analysis::Context& context) {
    bool changed = AddressFolding(fn).run(context.dominators().reverse_postorder());
    changed |= use_read_only_path(fn);
    return analysis::instructions_if(changed);
}

}  // namespace ikat::nvptx
