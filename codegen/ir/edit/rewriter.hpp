// SPDX-License-Identifier: Apache-2.0
// A walk over a function that rewrites it instruction by instruction. Each instruction is removed; the step puts it
// back (keep), inserts others before it (make), or drops it after naming the value that replaces its result (replace).
// The walk notes whether it has changed anything; a step that edits an instruction in place says so (edit).
//
// The walk needs an order of blocks in which definitions come before their uses.
#pragma once
#include <initializer_list>
#include <utility>
#include <vector>

#include "codegen/ir/edit/replacement.hpp"

namespace ikat::ir {

class Rewriter {
public:
    explicit Rewriter(Function& fn) : fn(fn) {}

    Function& fn;

    /// Calls step(inst) for every instruction, with its operands already renamed: those in the blocks of the list,
    /// which are all reachable blocks, or in all blocks.
    void run(auto&& order, auto&& step) {
        for (Block block : order) {
            block_ = block;
            const std::vector<Inst> old = std::exchange(fn[block].instructions, {});
            fn[block].instructions.reserve(old.size());
            for (Inst inst : old) {
                rename(inst);
                step(inst);
            }
            changed_ |= fn[block].instructions != old;
        }
        if (std::size_t(order.size()) < fn.block_count()) return replacement_.apply(fn);
        for (Block block : fn.blocks()) replacement_.apply(fn[block].terminator);
    }
    void run(auto&& step) { run(fn.blocks(), step); }

    Block block() const { return block_; }
    void keep(Inst inst) { fn[block_].instructions.push_back(inst); }
    Instruction& edit(Inst inst) {
        changed_ = true;
        return fn[inst];
    }
    /// After the run: whether instructions were added, dropped or edited.
    bool changed() const { return changed_; }

    /// Inserts an instruction with one result before the current one, with the same source location.
    Value make(Instruction base, std::initializer_list<Value> operands, Type result) {
        const Inst inst = fn.append(block_, base, std::span(operands.begin(), operands.size()), {&result, 1});
        return fn.result(inst);
    }
    Value constant(Type type, Word bits, const Location& where) {
        return make({.op = Op::Const, .type = type, .attribute = bits, .where = where}, {}, type);
    }

    void replace(Value value, Value by) { replacement_.replace(value, by); }
    Value current(Value value) const { return replacement_(value); }
    /// For instructions that a step made from values that may have been replaced since.
    void rename(Inst inst) { replacement_.apply(fn, inst); }

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
    Replacement replacement_;
    Block block_{};
    bool changed_ = false;
};

}  // namespace ikat::ir
