// SPDX-License-Identifier: Apache-2.0
// What the steps of selection share: a walk over a function that rewrites it instruction by instruction. Each
// instruction is taken out; the step puts it back (keep), puts others before it (make), or drops it, having said which
// value stands for its result from now on (replace).
//
// The walk needs blocks in an order in which definitions come before their uses.
#pragma once
#include <initializer_list>
#include <utility>
#include <vector>

#include "codegen/ir/function.hpp"

namespace ikat::nvptx {

class Rewriter {
public:
    explicit Rewriter(ir::Function& fn) : fn(fn), replaced_(fn.value_count(), ir::no_value) {}

    ir::Function& fn;

    /// Calls step(inst) for every instruction, its operands renamed already.
    void run(auto&& step) {
        for (ir::Block block : fn.blocks()) {
            block_ = block;
            const std::vector<ir::Inst> old = std::exchange(fn[block].instructions, {});
            fn[block].instructions.reserve(old.size());
            for (ir::Inst inst : old) {
                fn.each_use(inst, [&](ir::Value& value) { value = current(value); });
                step(inst);
            }
        }
        for (ir::Block block : fn.blocks())
            ir::Function::each_use(fn[block].terminator, [&](ir::Value& value) { value = current(value); });
    }

    ir::Block block() const { return block_; }
    void keep(ir::Inst inst) { fn[block_].instructions.push_back(inst); }

    /// A new instruction with one result before the one at hand, at whose place in the source it stands.
    ir::Value make(ir::Instruction base, std::initializer_list<ir::Value> operands, ir::Type result) {
        const ir::Inst inst = fn.append(block_, base, std::span(operands.begin(), operands.size()), {&result, 1});
        return fn.result(inst);
    }
    ir::Value constant(ir::Type type, ir::Word bits, const Location& where) {
        return make({.op = ir::Op::Const, .type = type, .attribute = bits, .where = where}, {}, type);
    }

    void replace(ir::Value value, ir::Value by) { replaced_[index(value)] = by; }
    ir::Value current(ir::Value value) const {
        const bool renamed = index(value) < replaced_.size() && replaced_[index(value)] != ir::no_value;
        return renamed ? replaced_[index(value)] : value;
    }

    /// The instruction that defines the value, if it is an `op`.
    const ir::Instruction* defined_in(ir::Value value, ir::Op op) const {
        const ir::Inst inst = fn[value].instruction;
        return inst != ir::no_inst && fn[inst].op == op ? &fn[inst] : nullptr;
    }
    /// ... and without a guard.
    const ir::Instruction* defined_by(ir::Value value, ir::Op op) const {
        const ir::Instruction* found = defined_in(value, op);
        return found && found->guard == ir::no_value ? found : nullptr;
    }
    ir::Value operand(ir::Value result, std::uint32_t position) const {
        return std::as_const(fn).operands(fn[result].instruction)[position];
    }

private:
    std::vector<ir::Value> replaced_;  // by value: what stands for it; values made since stand for themselves
    ir::Block block_{};
};

}  // namespace ikat::nvptx
