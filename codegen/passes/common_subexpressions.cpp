// SPDX-License-Identifier: Apache-2.0
// Common subexpression elimination.
//
//     %3 = mul.u32 %0, %1              %3 = mul.u32 %0, %1
//     %4 = mul.u32 %1, %0     ==>      %5 = add.u32 %3, %3
//     %5 = add.u32 %3, %4
// Two equal instructions (op, types, modifiers, attribute, operands up to commuting) of which one dominates
// the other have the same results if they are pure, or loads of memory that nothing writes while the kernel runs. We
// walk the dominator tree in pre-order with one table. An entry stays valid as long as we are below its block: a
// subtree is an interval of the walk, so an entry that no longer dominates never will again and may be overwritten.
//
//     branch %0, ^1, ^2                %3 = mul.u32 %n, %n
//   ^1:                                branch %0, ^1, ^2
//     %3 = mul.u32 %n, %n      ==>   ^1:
//     …                                …
//   ^2:                              ^2:
//     %4 = mul.u32 %n, %n              …
// Of two that are beside each other, the first goes up to where both come from, if that is near: out of short arms of
// the same branch or, in loops, also out of that of one and that of another after it. From farther away it would be
// kept in a register for too long. Into or out of a loop nothing goes here. Loads stay.
//
// Needs: nothing. Keeps: blocks and edges. Removes the duplicates themselves, and leaves what only they used: run
// dead_code after.
#include <bit>

#include "codegen/analysis/memory.hpp"
#include "codegen/ir/edit/replacement.hpp"
#include "codegen/passes/passes.hpp"

namespace ikat::passes {
namespace {

using namespace ir;

constexpr std::size_t short_arms = 64;  // instructions of the two together

class Cse {
public:
    Cse(Function& fn, Context& context)
        : fn_(fn),
          dominators_(context.dominators()),
          loops_(context.loops()),
          constant_memory_(fn),
          table_(std::bit_ceil(fn.inst_count() * 2 + 2), no_inst),
          block_of_(fn.inst_count(), analysis::no_block) {}

    bool run() {
        for (Block block : dominators_.preorder()) {
            std::erase_if(fn_[block].instructions, [&](Inst inst) {
                if (is_duplicate(inst, block)) return true;
                block_of_[index(inst)] = block;
                return false;
            });
            replacement_.apply(fn_[block].terminator);
        }
        if (replacement_.empty()) return false;
        if (any_up_)
            for (Block block : dominators_.preorder())
                std::erase_if(fn_[block].instructions, [&](Inst inst) { return block_of_[index(inst)] != block; });
        replacement_.apply(fn_);  // the walk has rewritten all uses except those in unreachable blocks
        return true;
    }

private:
    bool is_duplicate(Inst inst, Block block) {
        replacement_.apply(fn_, inst);
        if (!effects(fn_[inst]).none() && !constant_memory_.is_read_by(inst)) return false;
        if (fn_[inst].results.count == 0) return false;
        Inst& found = entry(inst);
        if (found == no_inst || !(dominators_.dominates(block_of_[index(found)], block) || goes_up(found, block))) {
            found = inst;
            return false;
        }
        const auto results = fn_.results(inst), leaders = fn_.results(found);
        for (std::size_t i = 0; i < results.size(); ++i) replacement_.replace(results[i], leaders[i]);
        return true;
    }

    /// Moves an instruction to a block from which another one with an equal instruction comes, too.
    bool goes_up(Inst inst, Block other) {
        const Block from = block_of_[index(inst)];
        if (!effects(fn_[inst]).speculated() || fn_[inst].guard != no_value) return false;
        if (fn_[from].instructions.size() + fn_[other].instructions.size() > short_arms) return false;
        const Block to = above(from, other);
        if (to == analysis::no_block || loops_.innermost(to) != loops_.innermost(from) ||
            loops_.innermost(to) != loops_.innermost(other))
            return false;
        // Both have its operands, so these are there: what dominates two blocks dominates the nearest above both.
        any_up_ = true;
        fn_[to].instructions.push_back(inst);
        block_of_[index(inst)] = to;
        return true;
    }
    /// The block above the first, if it is near above the second, too: in a loop, which repeats them, within two
    /// blocks.
    Block above(Block first, Block second) const {
        const Block to = dominators_.parent(first);
        const int farthest = loops_.depth(second) > 0 ? 2 : 1;
        for (int up = 0; up < farthest && second != to && second != analysis::no_block; ++up)
            second = dominators_.parent(second);
        return second == to ? to : analysis::no_block;
    }

    /// The entry of the table that holds an equal instruction, or an empty one.
    Inst& entry(Inst inst) {
        const std::size_t mask = table_.size() - 1;
        std::size_t place = hash(inst) & mask;
        while (table_[place] != no_inst && !equal(table_[place], inst)) place = (place + 1) & mask;
        return table_[place];
    }

    std::size_t hash(Inst inst) const {
        const Instruction& it = fn_[inst];
        std::uint64_t out = std::uint64_t(it.op) | std::uint64_t(it.type) << 8 | std::uint64_t(it.from) << 16;
        for (const Word word : it.attribute.words()) out = mixed(out, word);
        out = mixed(out, std::uint32_t(it.memory.offset));
        const auto operands = std::as_const(fn_).operands(inst);
        std::size_t first = 0;
        if (has(it.op, Commutes)) {  // alike for both orders
            out = mixed(out, mixed(0, index(operands[0])) + mixed(0, index(operands[1])));
            first = 2;
        }
        for (std::size_t i = first; i < operands.size(); ++i) out = mixed(out, index(operands[i]));
        return std::size_t(out ^ out >> 32);
    }
    static std::uint64_t mixed(std::uint64_t hash, std::uint64_t with) {
        return (std::rotl(hash, 5) ^ with) * 0x9e3779b97f4a7c15u;
    }

    bool equal(Inst a, Inst b) const {
        const Instruction &left = fn_[a], &right = fn_[b];
        if (left.op != right.op || left.type != right.type || left.from != right.from) return false;
        if (left.attribute != right.attribute || left.fp != right.fp || left.memory != right.memory) return false;
        if (left.guard != right.guard || left.guard_negated != right.guard_negated || left.tie != right.tie)
            return false;
        const auto x = std::as_const(fn_).operands(a), y = std::as_const(fn_).operands(b);
        if (std::ranges::equal(x, y)) return left.results.count == right.results.count;
        return has(left.op, Commutes) && x[0] == y[1] && x[1] == y[0] && std::ranges::equal(x.subspan(2), y.subspan(2));
    }

    Function& fn_;
    const analysis::Dominators& dominators_;
    const analysis::Loops& loops_;
    const analysis::ConstantMemory constant_memory_;
    Replacement replacement_;
    std::vector<Inst> table_;      // open addressing
    std::vector<Block> block_of_;  // by instruction, of those that the walk has passed
    bool any_up_ = false;          // those are still in the blocks that they came from, too
};

}  // namespace

Changed common_subexpressions(Function& fn, Context& context) {
    return analysis::instructions_if(Cse(fn, context).run());
}

}  // namespace ikat::passes
