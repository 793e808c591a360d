// SPDX-License-Identifier: Apache-2.0
// The blocks of a function in their order: instructions, the allocator's moves, labels and branches.
//
//     ^1: branch %p, ^2, ^3   with ^2 next        @!%p0 bra $L3;
//     ^4: jump ^1                                 bra $L1;
//
// A branch to the next block is not written, nor is an empty block that only jumps on. A block that only returns is
// written in place of each jump to it: `@%p0 ret;`. Labels are numbered from top to bottom; only targets of jumps have
// one.
//
//     ^1: branch %p, ^2, ^3                       mov.b32 %r0, %r1;
//     ^2: (moves) jump ^1             ==>         @%p0 bra $L1;
//     ^3:                                     (^3)
//
// The moves on a back edge go before the branch if they do not affect the exit path: one branch per iteration, the loop
// form that ptxas recognises.
#pragma once
#include <span>
#include <vector>

#include "codegen/nvptx/emit/instruction.hpp"

namespace ikat::nvptx {

class Body {
public:
    Body(const ir::Module& module, const ir::Function& fn, const Names& names, const Registers& registers,
         Writer& writer)
        : fn_(fn), registers_(registers), writer_(writer), instructions_(module, fn, names, registers, writer) {}

    /// Declares what the print instructions need. Before emit().
    void declare_print() { instructions_.declare_print(); }
    void emit();

private:
    void hoist_moves_of_rounds();
    bool may_stand_before_branch(ir::Block latch, std::size_t way, std::span<const regalloc::Edit> moves);
    void find_edits();
    void find_empty();
    bool is_empty(ir::Block block) const;
    bool only_returns(ir::Block block) const;
    ir::Block destination(ir::Block block) const;
    ir::Block next_written(ir::Block block) const;
    void find_labels();
    ptx::Name label(ir::Block block) { return labels_[index(destination(block))]; }

    void emit(ir::Block block);
    void emit_edits(ir::Block block, std::uint32_t before);
    void emit_terminator(ir::Block block);
    void emit_branch(const ir::Terminator& terminator, ir::Block next);
    void emit_multiway(const ir::Terminator& terminator);
    /// A jump, or a return if that is all the block does.
    void bra(ir::Block to, bool uniform, ptx::Name guard = ptx::no_name, bool negated = false);

    /// What to write for a branch: a conditional jump, an unconditional one, or both.
    struct BranchPlan {
        ir::Block conditional = no_id<ir::Block>, unconditional = no_id<ir::Block>;
        bool negated = false;
    };
    BranchPlan plan(const ir::Terminator& terminator, ir::Block next) const;

    const ir::Function& fn_;
    const Registers& registers_;
    Writer& writer_;
    InstructionEmitter instructions_;
    std::vector<std::uint32_t> predecessors_;  // by block: how many edges enter it
    std::vector<regalloc::Edit> moves_;        // sorted by place
    std::vector<bool> empty_;                  // by block: not written
    std::vector<bool> returns_;                // by block: not written; a jump to it is a `ret`
    std::vector<ptx::Name> labels_;            // by block; ptx::no_name if nothing jumps there
    std::vector<std::size_t> edits_;           // by block: its next edit; one more at the end
    std::uint32_t tables_ = 0;                 // number of branch target tables so far
};

}  // namespace ikat::nvptx
