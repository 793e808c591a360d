// SPDX-License-Identifier: Apache-2.0
// A walk over a function that rewrites it instruction by instruction. Each instruction is taken out; the step puts it
// back (keep), puts others before it (make), or drops it, having said which value stands for its result from now on
// (replace).
//
// The walk needs blocks in an order in which definitions come before their uses.
#pragma once
#include <initializer_list>
#include <utility>
#include <vector>

#include "codegen/ir/function.hpp"

namespace ikat::ir {

class Rewriter {
public:
    explicit Rewriter(Function& fn) : fn(fn), replaced_(fn.value_count(), no_value) {}

    Function& fn;

    /// Calls step(inst) for every instruction, its operands renamed already.
    void run(auto&& step) {
        for (Block block : fn.blocks()) {
            block_ = block;
            const std::vector<Inst> old = std::exchange(fn[block].instructions, {});
            fn[block].instructions.reserve(old.size());
            for (Inst inst : old) {
                fn.each_use(inst, [&](Value& value) { value = current(value); });
                step(inst);
            }
        }
        for (Block block : fn.blocks())
            Function::each_use(fn[block].terminator, [&](Value& value) { value = current(value); });
    }

    Block block() const { return block_; }
    void keep(Inst inst) { fn[block_].instructions.push_back(inst); }

    /// A new instruction with one result before the one at hand, at whose place in the source it stands.
    Value make(Instruction base, std::initializer_list<Value> operands, Type result) {
        const Inst inst = fn.append(block_, base, std::span(operands.begin(), operands.size()), {&result, 1});
        return fn.result(inst);
    }
    Value constant(Type type, Word bits, const Location& where) {
        return make({.op = Op::Const, .type = type, .attribute = bits, .where = where}, {}, type);
    }

    void replace(Value value, Value by) { replaced_[index(value)] = by; }
    Value current(Value value) const {
        const bool renamed = index(value) < replaced_.size() && replaced_[index(value)] != no_value;
        return renamed ? replaced_[index(value)] : value;
    }

    /// The instruction that defines the value, if it is an `op`.
    const Instruction* defined_in(Value value, Op op) const {
        const Inst inst = fn[value].instruction;
        return inst != no_inst && fn[inst].op == op ? &fn[inst] : nullptr;
    }
    /// ... and without a guard.
    const Instruction* defined_by(Value value, Op op) const {
        const Instruction* found = defined_in(value, op);
        return found && found->guard == no_value ? found : nullptr;
    }
    Value operand(Value result, std::uint32_t position) const {
        return std::as_const(fn).operands(fn[result].instruction)[position];
    }

private:
    std::vector<Value> replaced_;  // by value: what stands for it; values made since stand for themselves
    Block block_{};
};

}  // namespace ikat::ir
