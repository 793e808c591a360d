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
// Needs: nothing. Keeps: blocks and edges. Lengthens the live ranges of what it moves.
#include "codegen/passes/passes.hpp"

namespace ikat::passes {
namespace {

using namespace ir;
using analysis::Loops;

class Hoisting {
public:
    Hoisting(Function& fn, Context& context)
        : fn_(fn), dominators_(context.dominators()), loops_(context.loops()), block_of_(fn.value_count()) {}

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
            if (varies) break;
            block = dominators_.parent(loops_.all()[loop].header);
        }
        return block;
    }

    Function& fn_;
    const analysis::Dominators& dominators_;
    const Loops& loops_;
    std::vector<Block> block_of_;  // by value: where it is defined now
    bool changed_ = false;
};

}  // namespace

Changed loop_invariants(Function& fn, Context& context) {
    return analysis::instructions_if(Hoisting(fn, context).run());
}

}  // namespace ikat::passes
