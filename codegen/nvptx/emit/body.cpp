// SPDX-License-Identifier: Apache-2.0
#include "codegen/nvptx/emit/body.hpp"

#include <algorithm>
#include <utility>

#include "codegen/ir/cfg.hpp"
#include "codegen/ir/text/print.hpp"

namespace ikat::nvptx {

using ir::Block, ir::Terminator;

void Body::emit() {
    predecessors_ = ir::predecessor_counts(fn_);
    moves_ = registers_.allocation.edits;
    hoist_moves_of_rounds();
    find_edits();
    find_empty();
    find_labels();
    for (Block block : fn_.blocks())
        if (!empty_[index(block)]) emit(block);
}

/// Moves the edits of blocks that only jump back to a loop header to the end of the block that branches to them.
void Body::hoist_moves_of_rounds() {
    const auto block_of = [](const regalloc::Edit& edit) { return index(edit.block); };
    for (Block latch : fn_.blocks()) {
        const Terminator& terminator = fn_[latch].terminator;
        if (terminator.kind != Terminator::Kind::Branch) continue;
        for (const std::size_t way : {0, 1}) {
            const Block between = terminator.targets[way].to;
            const ir::BasicBlock& round = fn_[between];
            if (!round.instructions.empty() || round.terminator.kind != Terminator::Kind::Jump) continue;
            if (index(round.terminator.targets[0].to) > index(latch)) continue;  // not a back edge
            if (predecessors_[index(between)] != 1) continue;
            const auto [first, last] = std::ranges::equal_range(moves_, index(between), {}, block_of);
            if (!may_stand_before_branch(latch, way, {first, last})) continue;
            for (auto edit = first; edit != last; ++edit)
                edit->block = regalloc::FlowBlock(index(latch)),
                edit->before = std::uint32_t(fn_[latch].instructions.size());
            std::rotate(std::ranges::upper_bound(moves_.begin(), first, index(latch), {}, block_of), first, last);
            break;  // the move overwrites something that the other path needs
        }
    }
}

/// Whether no move writes what the branch reads or what is live on the other path.
bool Body::may_stand_before_branch(Block latch, std::size_t way, std::span<const regalloc::Edit> moves) {
    const auto is_written = [&](regalloc::LiveRange value) {
        return std::ranges::any_of(moves, [&](const regalloc::Edit& move) {
            return move.register_class == registers_.problem.values[index(value)].register_class &&
                   move.to == registers_.allocation.registers[index(value)];
        });
    };
    const regalloc::BasicBlock& block = registers_.problem.blocks[index(latch)];
    const regalloc::Edge& other = block.edges[1 - way];
    if (moves.empty() || std::ranges::any_of(block.terminator_uses, is_written)) return false;
    if (std::ranges::any_of(other.arguments, is_written)) return false;
    return std::ranges::none_of(registers_.allocation.live_in[index(other.to)], is_written);
}

void Body::find_edits() {
    std::size_t at = 0;
    for (Block block : fn_.blocks()) {
        edits_.push_back(at);
        while (at < moves_.size() && index(moves_[at].block) == index(block)) ++at;
    }
    edits_.push_back(at);
}

void Body::find_empty() {
    std::vector<bool> has_label(fn_.block_count());  // in a table of targets, or where readers look for the start
    has_label[index(fn_.entry())] = true;
    for (Block block : fn_.blocks())
        if (fn_[block].terminator.kind == Terminator::Kind::Multiway)
            for (const ir::Jump& jump : fn_[block].terminator.targets) has_label[index(jump.to)] = true;
    // Where all paths through a loop join before the back edge: the threads of a warp reconverge there before the next
    // iteration.
    const auto collects = [&](Block block) {
        return predecessors_[index(block)] > 1 && index(fn_[block].terminator.targets[0].to) < index(block);
    };
    for (Block block : fn_.blocks()) {
        returns_.push_back(only_returns(block) && !has_label[index(block)]);
        empty_.push_back(returns_.back() || (is_empty(block) && !collects(block)));
    }
}

bool Body::is_empty(Block block) const {
    const bool jumps_on = fn_[block].terminator.kind == Terminator::Kind::Jump && block != fn_.entry() &&
                          fn_[block].terminator.targets[0].to != block;
    const bool holds_nothing =
        std::ranges::all_of(fn_[block].instructions, [&](ir::Inst inst) { return is_immediate(fn_[inst].op); });
    return jumps_on && holds_nothing && edits_[index(block)] == edits_[index(block) + 1];
}

bool Body::only_returns(Block block) const {
    const ir::BasicBlock& it = fn_[block];
    return it.terminator.kind == Terminator::Kind::Return && it.terminator.given == ir::no_value &&
           it.instructions.empty() && edits_[index(block)] == edits_[index(block) + 1];
}

/// Where a jump to the block ends up. For a cycle of empty blocks (an endless loop), one of them.
Block Body::destination(Block block) const {
    for (std::size_t steps = 0; empty_[index(block)] && !returns_[index(block)] && steps < fn_.block_count(); ++steps)
        block = fn_[block].terminator.targets[0].to;
    return block;
}

Block Body::next_written(Block block) const {
    std::uint32_t next = index(block) + 1;
    while (next < fn_.block_count() && empty_[next]) ++next;
    return Block(next);
}

Body::BranchPlan Body::plan(const Terminator& terminator, Block next) const {
    BranchPlan plan;
    if (terminator.kind == Terminator::Kind::Jump) {
        plan.unconditional = destination(terminator.targets[0].to);
    } else if (terminator.kind == Terminator::Kind::Branch) {
        plan.conditional = destination(terminator.targets[0].to);
        plan.unconditional = destination(terminator.targets[1].to);
        if (plan.conditional == plan.unconditional) {
            plan.conditional = no_id<Block>;
        } else if (plan.conditional == next) {
            std::swap(plan.conditional, plan.unconditional);
            plan.negated = true;
        }
    }
    if (plan.unconditional == next) plan.unconditional = no_id<Block>;
    return plan;
}

void Body::find_labels() {
    std::vector<bool> wanted(fn_.block_count());
    const auto want = [&](Block block) {
        if (block != no_id<Block> && !returns_[index(block)]) wanted[index(block)] = true;
    };
    for (Block block : fn_.blocks()) {
        if (empty_[index(block)]) continue;
        const Terminator& terminator = fn_[block].terminator;
        const BranchPlan planned = plan(terminator, next_written(block));
        want(planned.conditional), want(planned.unconditional);
        if (terminator.kind == Terminator::Kind::Multiway)
            for (const ir::Jump& jump : terminator.targets) want(destination(jump.to));
    }
    labels_.assign(fn_.block_count(), ptx::no_name);
    for (std::uint32_t i = 0, number = 0; i < wanted.size(); ++i)
        if (wanted[i]) labels_[i] = writer_.module().intern("$L" + std::to_string(++number));
}

void Body::emit(Block block) {
    if (labels_[index(block)] != ptx::no_name) writer_.label(labels_[index(block)]);
    const auto& list = fn_[block].instructions;
    for (std::uint32_t i = 0; i < list.size(); ++i) {
        emit_edits(block, i);
        instructions_.emit(list[i]);
    }
    emit_edits(block, std::uint32_t(list.size()));
    emit_terminator(block);
}

/// Emits the edits before instruction `before`; they are sorted, and edits_ is the position in them.
void Body::emit_edits(Block block, std::uint32_t before) {
    std::size_t& at = edits_[index(block)];
    static constexpr std::string_view moves[] = {"mov.pred", "mov.b16", "mov.b32", "mov.b64"};
    for (; at < moves_.size() && index(moves_[at].block) == index(block) && moves_[at].before == before; ++at) {
        const regalloc::Edit& edit = moves_[at];
        IKAT_ASSERT(edit.kind == regalloc::Edit::Kind::Move, "PTX is written without spills");
        writer_.instruction(moves[edit.register_class], {writer_.register_operand(edit.register_class, edit.to),
                                                         writer_.register_operand(edit.register_class, edit.from)});
    }
}

void Body::emit_terminator(Block block) {
    const Terminator& terminator = fn_[block].terminator;
    writer_.set_location(terminator.where);
    switch (terminator.kind) {
        case Terminator::Kind::None: IKAT_ASSERT(false, "a block without an end\n" + ir::print(fn_)); break;
        case Terminator::Kind::Jump:
        case Terminator::Kind::Branch: emit_branch(terminator, next_written(block)); break;
        case Terminator::Kind::Multiway: emit_multiway(terminator); break;
        case Terminator::Kind::Return: instructions_.emit_return(terminator.given); break;
        case Terminator::Kind::Trap:
            writer_.instruction("trap", {});
            writer_.instruction("exit", {});  // else ptxas considers what follows reachable
            break;
    }
}

void Body::emit_branch(const Terminator& terminator, Block next) {
    const BranchPlan planned = plan(terminator, next);
    if (planned.conditional != no_id<Block>)
        bra(planned.conditional, terminator.uniform, instructions_.register_name(terminator.condition),
            planned.negated);
    if (planned.unconditional != no_id<Block>) bra(planned.unconditional, terminator.kind == Terminator::Kind::Jump);
}

void Body::bra(Block to, bool uniform, ptx::Name guard, bool negated) {
    if (returns_[index(to)]) return writer_.instruction(writer_.spelling("ret"), {}, guard, negated);
    const ptx::Operand target{.kind = ptx::Operand::Kind::Symbol, .name = label(to)};
    // An unconditional branch is always uniform: .uni adds information only to a guarded one.
    writer_.instruction(writer_.spelling(uniform && guard != ptx::no_name ? "bra.uni" : "bra"), {&target, 1}, guard,
                        negated);
}

/// `table: .branchtargets $L1, $L2; brx.idx %r0, table;`: selection has clamped the index.
void Body::emit_multiway(const Terminator& terminator) {
    std::vector<ptx::Operand> targets;
    for (const ir::Jump& jump : terminator.targets)
        targets.push_back({.kind = ptx::Operand::Kind::Symbol, .name = label(jump.to)});
    const std::string table = "$T" + std::to_string(++tables_);
    const ptx::Operand operands[] = {instructions_.operand(terminator.condition), writer_.name(table)};
    writer_.label(operands[1].name);
    writer_.directive(".branchtargets", targets);
    writer_.instruction(writer_.spelling(terminator.uniform ? "brx.idx.uni" : "brx.idx"), operands);
}

}  // namespace ikat::nvptx
