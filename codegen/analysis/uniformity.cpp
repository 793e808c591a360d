// SPDX-License-Identifier: Apache-2.0
// A fixed point: blocks are walked in reverse postorder until nothing more varies. A branch on a varying condition
// marks, once, the blocks between it and the place where all its ways have met again (its immediate post-dominator).
#include "codegen/analysis/uniformity.hpp"

#include <algorithm>

#include "codegen/analysis/memory.hpp"
#include "codegen/ir/cfg.hpp"
#include "codegen/support/dominator_tree.hpp"

namespace ikat::analysis {
namespace {

using namespace ir;

/// The reversed graph with one node more, 0, that leads to every block that ends the kernel; block b is node b + 1.
Graph backwards(const Function& fn, const Graph& predecessors) {
    Graph graph(fn.block_count() + 1);
    for (Block block : fn.blocks())
        if (fn[block].terminator.targets.empty()) graph.add_edge(index(block) + 1);
    graph.add_node();
    for (Block block : fn.blocks()) {
        for (std::uint32_t from : predecessors.successors(index(block))) graph.add_edge(from + 1);
        graph.add_node();
    }
    return graph;
}

class Propagation {
public:
    Propagation(const Function& fn, const Dominators& dominators, std::vector<bool>& varies,
                std::vector<bool>& divergent, std::vector<Block>& cause)
        : fn_(fn),
          varies_(varies),
          divergent_(divergent),
          cause_(cause),
          dominators_(dominators),
          predecessors_(dominators.predecessors()),
          post_(backwards(fn, predecessors_)),
          position_(fn.block_count()),
          spread_(fn.block_count()),
          meets_(fn.block_count()) {}

    void run() {
        const auto order = dominators_.reverse_postorder();
        for (std::size_t i = 0; Block block : order) position_[index(block)] = i++;
        for (changed_ = true; changed_;) {
            changed_ = false;
            for (Block block : order) visit(block);
        }
    }

private:
    void vary(Value value) {
        if (varies_[index(value)]) return;
        varies_[index(value)] = true;
        changed_ = true;
    }
    bool varies(Value value) const { return value != no_value && varies_[index(value)]; }

    void visit(Block block) {
        for (Inst inst : fn_[block].instructions)
            if (results_vary(inst, block))
                for (Value result : fn_.results(inst)) vary(result);
        const Terminator& terminator = fn_[block].terminator;
        for (const Jump& jump : terminator.targets)
            for (std::size_t i = 0; i < jump.arguments.size(); ++i)
                if (varies(jump.arguments[i])) vary(fn_[jump.to].parameters[i]);
        if (varies(terminator.condition) && !spread_[index(block)]) spread(block);
    }

    bool results_vary(Inst inst, Block block) const {
        const Instruction& it = fn_[inst];
        if (it.op == Op::Special) {
            const auto reg = SpecialRegister(it.attribute);
            return differs_in_warp(reg) || reg == SpecialRegister::WarpId;
        }
        bool operand_varies = false;
        fn_.each_use(inst, [&](Value value) { operand_varies |= varies(value); });
        const Effects does = effects(it);
        if (operand_varies || does.convergent) return true;
        if (it.op == Op::Param) return !fn_.is_entry;
        if (it.op != Op::Load) return !does.none();
        if (it.memory.space == Space::Local || does.orders) return true;
        return divergent_[index(block)] && !reads_constant_memory(fn_, inst);
    }

    /// The ways of a varying branch are gone by some threads each, up to where they meet again for good. Where two of
    /// them meet on the way or there, parameters tell the ways apart.
    void spread(Block branch) {
        spread_[index(branch)] = changed_ = true;
        std::uint32_t node = post_.parent(index(branch) + 1);
        // The beginning of a loop around the branch is no such place: who is there first begins the next round.
        while (node != DominatorTree::none && node != 0 && position_[node - 1] <= position_[index(branch)])
            node = post_.parent(node);
        const Block end = node == DominatorTree::none || node == 0 ? no_id<Block> : Block(node - 1);
        std::vector<Block> work;
        for (const Jump& jump : fn_[branch].terminator.targets) work.push_back(jump.to);
        std::vector<bool> seen(fn_.block_count());
        while (!work.empty()) {
            const Block block = work.back();
            work.pop_back();
            if (seen[index(block)]) continue;
            seen[index(block)] = true;
            if (predecessors_.successors(index(block)).size() > 1) meet(block);
            if (block == end) continue;
            if (!divergent_[index(block)]) cause_[index(block)] = branch;
            divergent_[index(block)] = true;
            for (const Jump& jump : fn_[block].terminator.targets) work.push_back(jump.to);
        }
    }

    /// Parameters vary, but for those that get one value from everywhere.
    void meet(Block block) {
        if (meets_[index(block)]) return;
        meets_[index(block)] = true;
        for (std::size_t i = 0; i < fn_[block].parameters.size(); ++i) {
            Value one = no_value;
            bool differ = false;
            for (std::uint32_t from : predecessors_.successors(index(block)))
                for (const Jump& jump : fn_[Block(from)].terminator.targets) {
                    if (jump.to != block) continue;
                    differ |= one != no_value && one != jump.arguments[i];
                    one = jump.arguments[i];
                }
            if (differ) vary(fn_[block].parameters[i]);
        }
    }

    const Function& fn_;
    std::vector<bool>&varies_, &divergent_;
    std::vector<Block>& cause_;
    const Dominators& dominators_;
    const Graph& predecessors_;
    const DominatorTree post_;
    std::vector<std::size_t> position_;  // by block, in reverse postorder
    std::vector<bool> spread_, meets_;   // by block: done once
    bool changed_ = false;
};

}  // namespace

Uniformity::Uniformity(const Function& fn, const Dominators& dominators)
    : varies_(fn.value_count()), divergent_(fn.block_count(), !fn.is_entry), cause_(fn.block_count(), no_id<Block>) {
    Propagation(fn, dominators, varies_, divergent_, cause_).run();
}

}  // namespace ikat::analysis
