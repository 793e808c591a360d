// SPDX-License-Identifier: Apache-2.0
#include "codegen/nvptx/emit/allocation.hpp"

#include "codegen/ir/op/forms/matrices.hpp"
#include "codegen/ir/text/print.hpp"
#include "codegen/ptx/check/inline.hpp"
#include "regalloc/text/text.hpp"

namespace ikat::nvptx {
namespace {

class Translation {
public:
    Translation(const ir::Function& fn, Registers& out) : fn_(fn), out_(out) {
        out_.ranges.assign(fn.value_count(), no_id<regalloc::LiveRange>);
        out_.problem.limits.assign(std::size(pools), regalloc::unlimited);
        out_.problem.blocks.resize(fn.block_count());
    }

    void run() {
        for (ir::Block block : fn_.blocks()) number(block);
        for (ir::Block block : fn_.blocks()) {
            translate(fn_[block], out_.problem.blocks[index(block)]);
            reserve_sums(fn_[block].instructions, out_.problem.blocks[index(block)].instructions);
        }
    }

private:
    /// Numbers live ranges in order of definition, so that registers of simple code are numbered from top to bottom.
    void number(ir::Block block) {
        for (ir::Value value : fn_[block].parameters) number(value, false);
        for (ir::Inst inst : fn_[block].instructions) {
            if (is_immediate(fn_[inst].op)) continue;
            for (ir::Value value : fn_.results(inst)) number(value, is_rematerialisable(inst));
        }
    }
    void number(ir::Value value, bool rematerialisable) {
        out_.ranges[index(value)] = regalloc::LiveRange(out_.problem.values.size());
        out_.problem.values.push_back({pool_of(fn_.type(value)), rematerialisable});
    }
    bool is_rematerialisable(ir::Inst inst) const {
        if (fn_[inst].op == ir::Op::Special) return true;
        return fn_[inst].op == ir::Op::Bitcast && !has_range(fn_.operands(inst)[0]);
    }

    bool has_range(ir::Value value) const { return out_.ranges[index(value)] != no_id<regalloc::LiveRange>; }
    regalloc::LiveRange range(ir::Value value) const {
        IKAT_ASSERT(has_range(value),
                    "an immediate where PTX takes none: " + ir::print(fn_, value) + "\n" + print(fn_));
        return out_.ranges[index(value)];
    }

    void translate(const ir::BasicBlock& from, regalloc::BasicBlock& to) const {
        for (ir::Value value : from.parameters) to.parameters.push_back(range(value));
        to.instructions.reserve(from.instructions.size());
        for (ir::Inst inst : from.instructions) to.instructions.push_back(translate(inst));
        for (const ir::Value value : {from.terminator.condition, from.terminator.given})
            if (value != ir::no_value) to.terminator_uses.push_back(range(value));
        for (const ir::Jump& jump : from.terminator.targets) {
            regalloc::Edge edge{regalloc::FlowBlock(index(jump.to)), {}};
            for (ir::Value value : jump.arguments) edge.arguments.push_back(range(value));
            to.edges.push_back(std::move(edge));
        }
    }

    /// Whether it becomes several PTX instructions, of which one writes a result before another reads an operand.
    bool writes_early(ir::Inst inst) const {
        switch (fn_[inst].op) {
            case ir::Op::Opaque:
            case ir::Op::OpaqueValue: return ptx::writes_early(fn_.texts[fn_[inst].attribute]);
            case ir::Op::CarryChain: return true;
            default: return false;
        }
    }

    regalloc::Instruction translate(ir::Inst inst) const {
        regalloc::Instruction out;
        if (is_immediate(fn_[inst].op)) return out;
        const ir::Tie& tie = fn_[inst].tie;
        const auto operands = fn_.operands(inst);
        for (std::uint32_t i = 0; i < operands.size(); ++i) {
            const bool tied = i >= tie.operand && i < tie.operand + tie.count;
            if (!tied && !has_range(operands[i])) continue;
            if (tied) out.tied.push_back({std::uint16_t(tie.result + i - tie.operand), std::uint16_t(out.uses.size())});
            out.uses.push_back(range(operands[i]));
        }
        if (fn_[inst].guard != ir::no_value) out.uses.push_back(range(fn_[inst].guard));
        for (ir::Value value : fn_.results(inst)) out.definitions.push_back(range(value));
        out.early = writes_early(inst);
        if (fn_[inst].op == ir::Op::Mma) prefer_sums(inst, out);
        return out;
    }

    /// A product adds to its sums in place, if it may.
    void prefer_sums(ir::Inst inst, regalloc::Instruction& out) const {
        const auto form = ir::unpack<ir::MatrixForm>(fn_[inst].attribute);
        const auto sums = fn_.operands(inst).subspan(form.registers_of_a() + form.registers_of_b());
        for (std::uint32_t i = 0; i < form.registers_of_sum(); ++i) {
            const auto use = has_range(sums[i]) ? std::ranges::find(out.uses, range(sums[i])) : out.uses.end();
            if (use != out.uses.end())
                out.preferred.push_back({std::uint16_t(i), std::uint16_t(use - out.uses.begin())});
        }
    }

    /// After a fence only products use their sums' registers, also sums that they overwrite: these belong to a value
    /// that the fence defines, and the product takes over.
    void reserve_sums(const std::vector<ir::Inst>& from, std::vector<regalloc::Instruction>& to) {
        std::size_t fence = from.size();
        for (std::size_t i = 0; i < from.size(); ++i) {
            const ir::Op op = fn_[from[i]].op;
            if (op == ir::Op::WgmmaFence) fence = i;
            if (op != ir::Op::Wgmma || fence == from.size() || fn_[from[i]].tie.count > 0) continue;
            regalloc::Instruction& product = to[i];
            for (std::size_t d = 0; d < product.definitions.size(); ++d) {
                const auto reserved = regalloc::LiveRange(out_.problem.values.size());
                out_.problem.values.push_back(out_.problem.values[index(product.definitions[d])]);
                to[fence].definitions.push_back(reserved);
                product.tied.push_back({std::uint16_t(d), std::uint16_t(product.uses.size())});
                product.uses.push_back(reserved);
            }
        }
    }

    const ir::Function& fn_;
    Registers& out_;
};

}  // namespace

Registers allocate(const ir::Function& fn, const regalloc::Options& options) {
    Registers out;
    Translation(fn, out).run();
    out.allocation = regalloc::allocate(out.problem, options);
    return out;
}

std::string print(const ir::Function& fn, const Registers& registers) {
    const auto named = [&](ir::Value value) {
        return std::string(pools[pool_of(fn.type(value))].prefix) + std::to_string(registers.of(value));
    };
    const auto list = [&](std::span<const ir::Value> values) {
        std::string out;
        for (ir::Value value : values) (out += out.empty() ? "" : " ") += named(value);
        return out;
    };
    return ir::print(fn, {.note = [&](ir::Inst i) { return is_immediate(fn[i].op) ? "" : list(fn.results(i)); },
                          .remark = [&](ir::Block b) { return list(fn[b].parameters); }});
}

std::string complaint(const ir::Function& fn, const Registers& registers) {
    std::string out;
    for (const std::string& violation : regalloc::check(registers.problem, registers.allocation))
        out += violation + '\n';
    if (out.empty()) return out;
    std::vector<std::string> classes;
    for (const Pool& pool : pools) classes.emplace_back(pool.name);
    return out + regalloc::to_string(registers.problem, registers.allocation, classes) + print(fn, registers);
}

}  // namespace ikat::nvptx
