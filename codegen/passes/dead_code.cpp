// SPDX-License-Identifier: Apache-2.0
// Dead code elimination.
//
//     ^0:                                     ^0:
//       %0 = const.u32 1                        %0 = const.u32 1
//       %1 = add.u32 %0, %0          ==>        jump ^1(%0)
//       jump ^1(%0, %1)                       ^1(%2: u32):
//     ^1(%2: u32, %3: u32):                     …
//       %4 = load.f32 global [%5]
//
// An instruction stays if it does something (stores, synchronises, …) or something that stays uses it; everything else
// goes: pure operations, loads that nothing orders, parameters of blocks together with their arguments. A loop that
// only feeds its own parameters keeps none of them.
//
// Needs: nothing. Keeps: the control flow. Leaves nothing unused that it could have removed.
#include <algorithm>

#include "codegen/passes/parameters.hpp"
#include "codegen/passes/passes.hpp"

namespace ikat::passes {
namespace {

using namespace ir;

class Sweep {
public:
    explicit Sweep(Function& fn) : fn_(fn), live_(fn.value_count()), first_edge_(fn.block_count() + 1) {
        collect_edges();
    }

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
    struct Edge {
        Block from;
        std::uint32_t target;
    };

    void collect_edges() {
        for (Block block : fn_.blocks())
            for (const Jump& jump : fn_[block].terminator.targets) ++first_edge_[index(jump.to) + 1];
        for (std::size_t i = 1; i < first_edge_.size(); ++i) first_edge_[i] += first_edge_[i - 1];
        edges_.resize(first_edge_.back());
        std::vector<std::uint32_t> next(first_edge_.begin(), first_edge_.end() - 1);
        for (Block block : fn_.blocks())
            for (std::uint32_t target = 0; const Jump& jump : fn_[block].terminator.targets)
                edges_[next[index(jump.to)]++] = {block, target++};
    }

    void mark(Value value) {
        if (value == no_value || live_[index(value)]) return;
        live_[index(value)] = true;
        work_.push_back(value);
    }
    void mark_operands(Inst inst) {
        std::as_const(fn_).each_use(inst, [&](Value operand) { mark(operand); });
    }
    void mark_arguments(const Definition& parameter) {
        for (std::uint32_t i = first_edge_[index(parameter.block)]; i < first_edge_[index(parameter.block) + 1]; ++i)
            mark(fn_[edges_[i].from].terminator.targets[edges_[i].target].arguments[parameter.position]);
    }

    bool sweep(Block block) {
        const auto is_live = [&](Value value) { return live_[index(value)]; };
        return std::erase_if(fn_[block].instructions, [&](Inst inst) {
                   return effects(fn_[inst]).removable() && std::ranges::none_of(fn_.results(inst), is_live);
               }) != 0;
    }

    Function& fn_;
    std::vector<bool> live_;  // by value
    std::vector<std::uint32_t> first_edge_;
    std::vector<Edge> edges_;  // into each block
    std::vector<Value> work_;
};

}  // namespace

bool dead_code(Function& fn) { return Sweep(fn).run(); }

}  // namespace ikat::passes
