// SPDX-License-Identifier: Apache-2.0
// Dead code elimination.
//
//     ^0:                                     ^0:
//       %0 = const.u32 1                        %0 = const.u32 1
//       %1 = add.u32 %0, %0          ==>        jump ^1(%0)
//       jump ^1(%0, %1)                       ^1(%2: u32):
//     ^1(%2: u32, %3: u32):                     …
//       %4 = load.f32 global [%5]
// An instruction stays if it has an effect (stores, synchronises, …) or is used by something that stays; everything
// else is removed: pure operations, unordered loads, parameters of blocks together with their arguments. Loop
// parameters that only feed each other are removed, too.
//
// Needs: nothing. Keeps: the control flow. Removes everything unused in one run.
#include <algorithm>

#include "codegen/ir/cfg.hpp"
#include "codegen/ir/edit/parameters.hpp"
#include "codegen/passes/passes.hpp"

namespace ikat::passes {
namespace {

using namespace ir;

class Sweep {
public:
    explicit Sweep(Function& fn) : fn_(fn), edges_in_(fn), live_(fn.value_count()), is_marked_(fn.inst_count()) {}

    bool run() {
        for (Block block : fn_.blocks()) {
            for (Inst inst : fn_[block].instructions)
                if (!effects(fn_[inst]).removable()) mark_operands(inst);
            mark(fn_[block].terminator.condition);
            mark(fn_[block].terminator.given);
        }
        while (!work_.empty()) {
            const Value value = work_.back();
            work_.pop_back();
            const Definition& definition = fn_[value];
            if (definition.instruction != no_inst)
                mark_operands(definition.instruction);
            else
                mark_arguments(definition);
        }
        bool changed = drop_parameters(fn_, [&](Value parameter) { return !live_[index(parameter)]; });
        for (Block block : fn_.blocks()) changed |= sweep(block);
        return changed;
    }

private:
    void mark(Value value) {
        if (value == no_value || live_[index(value)]) return;
        live_[index(value)] = true;
        work_.push_back(value);
    }
    /// Once, however many of its results are used.
    void mark_operands(Inst inst) {
        if (is_marked_[index(inst)]) return;
        is_marked_[index(inst)] = true;
        std::as_const(fn_).each_use(inst, [&](Value operand) { mark(operand); });
    }
    void mark_arguments(const Definition& parameter) {
        for (const Edge& edge : edges_in_[parameter.block])
            mark(fn_[edge.from].terminator.targets[edge.target].arguments[parameter.position]);
    }

    bool sweep(Block block) {
        const auto is_live = [&](Value value) { return live_[index(value)]; };
        return std::erase_if(fn_[block].instructions, [&](Inst inst) {
                   return effects(fn_[inst]).removable() && std::ranges::none_of(fn_.results(inst), is_live);
               }) != 0;
    }

    Function& fn_;
    const EdgesIn edges_in_;
    std::vector<bool> live_;       // by value
    std::vector<bool> is_marked_;  // by instruction: its operands
    std::vector<Value> work_;
};

}  // namespace

Changed dead_code(Function& fn, Context&) { return analysis::instructions_if(Sweep(fn).run()); }

}  // namespace ikat::passes
