// SPDX-License-Identifier: Apache-2.0
// Loop-invariant code motion.
//
//     ^0:                                   ^0:
//       jump ^1(%0)                           %3 = mul.u32 %n, %n
//     ^1(%1: u32):                            jump ^1(%0)
//       %3 = mul.u32 %n, %n          ==>    ^1(%1: u32):
//       %4 = add.u32 %1, %3                   %4 = add.u32 %1, %3
//       …                                     …
//
// Pure operations that cannot fail, only: they may be computed even if the loop is not entered. An operation moves
// out of as many loops as its operands allow, to the end of the block that immediately dominates the header of the
// outermost such loop.
//
// One thing is dearer than an operation: a register in a loop of matrix products, whose sums and fragments need nearly
// all there are. So an operation beside such a loop, whose result the loop does not use, stays in the loop around both:
//
//     ^1(%1: u32):                          a loop over tiles
//       …
//     ^2(%2: u32, %3: f32, …):              a loop of products
//       %9, … = mma … %3, …
//     ^4:                                   the tile's sums are stored
//       %5 = mul.u32 %n, %n                 not moved before ^1: it would be in a register in ^2
//
// Needs: nothing. Keeps: blocks and edges. Lengthens the live ranges of what it moves.
#include "codegen/passes/passes.hpp"

namespace ikat::passes {
namespace {

using namespace ir;
using analysis::Loops;

class Hoisting {
public:
    Hoisting(Function& fn, Context& context)
        : fn_(fn), dominators_(context.dominators()), loops_(context.loops()), block_of_(fn.value_count()) {
        find_products();
    }

    bool run() {
        if (loops_.all().empty()) return false;
        for (Block block : dominators_.reverse_postorder()) {
            for (Value parameter : fn_[block].parameters) block_of_[index(parameter)] = block;
            // Instructions move only to blocks that this walk has already passed.
            changed_ |= std::erase_if(fn_[block].instructions, [&](Inst inst) { return moved(inst, block); }) != 0;
        }
        return changed_;
    }

private:
    /// Innermost loops of products: what they use, and the loops around them.
    void find_products() {
        const auto is_product = [&](Inst inst) { return fn_[inst].op == Op::Mma || fn_[inst].op == Op::Wgmma; };
        used_by_products_.assign(fn_.value_count(), false);
        around_products_.assign(loops_.all().size(), false);
        for (Block block : dominators_.reverse_postorder()) {
            const std::uint32_t innermost = loops_.innermost(block);
            if (innermost == Loops::none || std::ranges::none_of(fn_[block].instructions, is_product)) continue;
            const analysis::Loop& loop = loops_.all()[innermost];
            for (std::uint32_t outer = loop.parent; outer != Loops::none; outer = loops_.all()[outer].parent)
                around_products_[outer] = true;
            for (Block inside : loop.blocks) note_uses(inside);
        }
    }
    void note_uses(Block block) {
        const auto note = [&](Value value) {
            if (value != no_value) used_by_products_[index(value)] = true;
        };
        for (Inst inst : fn_[block].instructions) fn_.each_use(inst, note);
        const Terminator& end = fn_[block].terminator;
        note(end.condition), note(end.given);
        for (const Jump& jump : end.targets) std::ranges::for_each(jump.arguments, note);
    }
    bool is_used_by_products(Inst inst) const {
        return std::ranges::any_of(fn_.results(inst), [&](Value v) { return used_by_products_[index(v)]; });
    }

    bool moved(Inst inst, Block block) {
        const Block to = effects(fn_[inst]).speculated() ? destination(inst, block) : block;
        for (Value result : fn_.results(inst)) block_of_[index(result)] = to;
        if (to == block) return false;
        fn_[to].instructions.push_back(inst);
        return true;
    }

    /// The block before the outermost loop in which no operand is defined.
    Block destination(Inst inst, Block block) const {
        for (std::uint32_t loop = loops_.innermost(block); loop != Loops::none; loop = loops_.all()[loop].parent) {
            bool varies = false;
            fn_.each_use(inst, [&](Value operand) { varies |= loops_.contains(loop, block_of_[index(operand)]); });
            if (varies || (around_products_[loop] && !is_used_by_products(inst))) break;
            block = dominators_.parent(loops_.all()[loop].header);
        }
        return block;
    }

    Function& fn_;
    const analysis::Dominators& dominators_;
    const Loops& loops_;
    std::vector<Block> block_of_;                           // by value: where it is defined now
    std::vector<bool> used_by_products_, around_products_;  // by value, by loop
    bool changed_ = false;
};

}  // namespace

Changed loop_invariants(Function& fn, Context& context) {
    return analysis::instructions_if(Hoisting(fn, context).run());
}

}  // namespace ikat::passes
