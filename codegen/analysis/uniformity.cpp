// SPDX-License-Identifier: Apache-2.0
// A fixed point: blocks are walked in reverse postorder until nothing more differs. A branch on a condition that
// differs marks, once for each extent, the blocks between it and the place where all its ways have met again (its
// immediate post-dominator).
#include "codegen/analysis/uniformity.hpp"

#include <algorithm>

#include "codegen/analysis/memory.hpp"
#include "codegen/analysis/post_dominators.hpp"
#include "codegen/ir/op/accesses.hpp"
#include "codegen/ir/text/print.hpp"

namespace ikat::analysis {

using namespace ir;

namespace {

std::optional<Word> members(const Function& fn, Inst inst) {
    const auto operands = fn.operands(inst);
    return operands.empty() ? std::nullopt : constant(fn, operands.back());
}

}  // namespace

class Propagation {
public:
    Propagation(const Function& fn, const Dominators& dominators, Doubt doubt, Uniformity& facts)
        : fn_(fn),
          doubt_(doubt),
          values_(facts.values_),
          blocks_(facts.blocks_),
          dominators_(dominators),
          predecessors_(dominators.predecessors()),
          post_(post_dominators(fn, dominators)),
          position_(fn.block_count()),
          arrays_(fn.symbols),
          constant_memory_(fn) {
        for (std::size_t i = 0; Block block : dominators_.reverse_postorder()) position_[index(block)] = i++;
    }

    void run() {
        const bool called_by_some = !fn_.is_entry && doubt_ == Doubt::Differs;
        do {
            values_.assign(fn_.value_count(), anything_yet);
            blocks_.assign(fn_.block_count(), {called_by_some ? Extent::Thread : Extent::Cluster, no_block});
            parts_.assign(fn_.block_count(), Extent::Cluster);
            meets_.assign(fn_.block_count(), Extent::Cluster);
            for (changed_ = true; changed_;) {
                changed_ = false;
                for (Block block : dominators_.reverse_postorder()) visit(block);
            }
        } while (doubt_ == Doubt::Agrees && arrays_hold_less());
    }

private:
    Extent extent(Value value) const { return values_[index(value)].extent; }

    /// What is known only ever becomes less.
    void meet(Value value, const Spread& with, Extent parted = Extent::Cluster) {
        Spread& known = values_[index(value)];
        const Spread now = either(known, with, parted);
        changed_ |= now != known;
        known = now;
    }

    void visit(Block block) {
        for (Inst inst : fn_[block].instructions) {
            const auto results = fn_.results(inst);
            if (results.empty() || values_[index(results[0])] == Spread{Extent::Thread}) continue;
            const Spread made = result(inst, block);
            for (Value each : results) meet(each, made);
        }
        const Terminator& terminator = fn_[block].terminator;
        for (const Jump& jump : terminator.targets)
            for (std::size_t i = 0; i < jump.arguments.size(); ++i)
                meet(fn_[jump.to].parameters[i], values_[index(jump.arguments[i])]);
        if (terminator.condition != no_value && extent(terminator.condition) > parts_[index(block)])
            part(block, extent(terminator.condition));
    }

    Spread result(Inst inst, Block block) const {
        const Instruction& it = fn_[inst];
        const auto operands = fn_.operands(inst);
        const Operation operation(
            it.op, it.type, it.attribute, operands.size(), [&](std::size_t i) { return values_[index(operands[i])]; },
            [&](std::size_t i) { return constant(fn_, operands[i]); },
            [&](std::size_t i) { return is_whole_warps(operands[i]); }, doubt_);
        Spread out;
        const auto array = it.op == Op::Load && doubt_ == Doubt::Agrees ? own_array(inst) : std::nullopt;
        if (array) {
            out = arrays_.load(*array, operation.common(operands.size()));
        } else if (it.op == Op::Load) {
            const bool constant_memory = doubt_ == Doubt::Differs && constant_memory_.is_read_by(inst);
            out = loaded(it.memory, constant_memory, operation.common(operands.size()), blocks_[index(block)].extent,
                         doubt_);
        } else if (it.op == Op::Param) {
            out.extent = fn_.is_entry || doubt_ == Doubt::Agrees ? Extent::Cluster : Extent::Thread;
        } else {
            const Effects does = effects(it);
            const bool computes = does.none() || does.convergent || info(it.op).attribute == Attribute::Special;
            if (!computes) return {Extent::Thread};
            out = operation.result(members(fn_, inst), blocks_[index(block)].extent);
        }
        return it.guard == no_value ? out : either(out, out, extent(it.guard));
    }

    /// The symbol of the array that an access surely goes to.
    std::optional<std::size_t> own_array(Inst inst) const {
        const Space space = fn_[inst].memory.space;
        if (space != Space::Local && space != Space::Generic) return std::nullopt;
        const Object object = address_of(fn_, inst).object;
        const bool is = object.kind == Object::Symbol && fn_.symbols[object.number].space == Space::Local;
        return is ? std::optional<std::size_t>(object.number) : std::nullopt;
    }
    /// Whether to begin again, when all values are known.
    bool arrays_hold_less() {
        for (Block block : fn_.blocks())
            if (dominators_.reachable(block))
                for (Inst inst : fn_[block].instructions)
                    if (may_write_local(fn_[inst])) store(inst);
        return arrays_.settle();
    }
    static bool may_write_local(const Instruction& it) {
        if (it.op == Op::Call || it.op == Op::Opaque) return true;
        return std::ranges::any_of(accesses(it), [](const MemoryAccess& access) {
            return access.writes && (access.space == Space::Local || access.space == Space::Generic);
        });
    }
    void store(Inst inst) {
        const Instruction& it = fn_[inst];
        if (it.op != Op::Store) return arrays_.store_in_any({});
        const auto array = own_array(inst);
        for (Value value : fn_.operands(inst).subspan(1, it.memory.count)) {
            const Spread& stored = values_[index(value)];
            array ? arrays_.store(*array, stored) : arrays_.store_in_any(stored);
        }
    }

    /// Surely a multiple of 32: a constant, or what lowering makes of it and of a step to end a loop,
    /// max(%end, %step) - %step.
    bool is_whole_warps(Value value) const {
        if (const auto bits = constant(fn_, value)) return *bits % 32 == 0;
        const auto difference = operands_of(value, Op::Sub);
        if (difference.empty()) return false;
        const auto maximum = operands_of(difference[0], Op::Max);
        if (maximum.empty() || !may_be_whole(difference[1])) return false;
        return (is_whole_warps(maximum[0]) && may_be_whole(maximum[1])) ||
               (is_whole_warps(maximum[1]) && may_be_whole(maximum[0]));
    }
    bool may_be_whole(Value value) const {
        const auto bits = constant(fn_, value);
        return bits ? *bits % 32 == 0 : extent(value) != Extent::Thread;
    }
    std::span<const Value> operands_of(Value value, Op op) const {
        const Inst inst = fn_[value].instruction;
        return inst != no_inst && fn_[inst].op == op ? fn_.operands(inst) : std::span<const Value>{};
    }

    /// The ways of such a branch are gone by some threads each, up to where they meet again for good. Where two of
    /// them meet on the way or there, parameters tell the ways apart.
    void part(Block branch, Extent extent) {
        parts_[index(branch)] = extent;
        changed_ = true;
        std::uint32_t node = post_.parent(index(branch) + 1);
        // The header of a loop around the branch is not such a point: the first thread there starts the next iteration.
        while (node != DominatorTree::none && node != 0 && position_[node - 1] <= position_[index(branch)])
            node = post_.parent(node);
        const Block end = node == DominatorTree::none || node == 0 ? no_block : Block(node - 1);
        std::vector<Block> work;
        for (const Jump& jump : fn_[branch].terminator.targets) work.push_back(jump.to);
        std::vector<bool> seen(fn_.block_count());
        while (!work.empty()) {
            const Block block = work.back();
            work.pop_back();
            if (seen[index(block)]) continue;
            seen[index(block)] = true;
            if (predecessors_.successors(index(block)).size() > 1) ways_meet(block, extent, block == end);
            if (block == end) continue;
            if (blocks_[index(block)].extent < extent) blocks_[index(block)] = {extent, branch};
            for (const Jump& jump : fn_[block].terminator.targets) work.push_back(jump.to);
        }
    }

    /// Parameters differ, but for those that get one value from everywhere. Where ways meet for good, that may be the
    /// head of a loop, to which its iterations come back together.
    void ways_meet(Block block, Extent parted, bool for_good) {
        if (meets_[index(block)] >= parted) return;
        if (!for_good) meets_[index(block)] = parted;
        for (std::size_t i = 0; i < fn_[block].parameters.size(); ++i) {
            Value one = no_value;
            bool differ = false;
            for (std::uint32_t from : predecessors_.successors(index(block)))
                for (const Jump& jump : fn_[Block(from)].terminator.targets) {
                    if (jump.to != block || (for_good && dominators_.dominates(block, Block(from)))) continue;
                    differ |= one != no_value && one != jump.arguments[i];
                    one = jump.arguments[i];
                }
            const Value parameter = fn_[block].parameters[i];
            if (differ) meet(parameter, values_[index(parameter)], parted);
        }
    }

    const Function& fn_;
    const Doubt doubt_;
    std::vector<Spread>& values_;
    std::vector<Uniformity::Control>& blocks_;
    const Dominators& dominators_;
    const Graph& predecessors_;
    const DominatorTree post_;
    std::vector<std::size_t> position_;  // by block, in reverse postorder
    std::vector<Extent> parts_, meets_;  // by block: done for this extent
    OwnArrays arrays_;
    const ConstantMemory constant_memory_;
    bool changed_ = false;
};

Uniformity::Uniformity(const Function& fn, const Dominators& dominators, Doubt doubt) {
    Propagation(fn, dominators, doubt, *this).run();
}

std::vector<Diagnostic> divergent_operations(const Function& fn, const Dominators& dominators, Doubt doubt) {
    const auto needed = [&](Inst inst) {
        const std::optional<Word> named = members(fn, inst);
        const bool may_be_all = !named && doubt == Doubt::Differs;
        return needed_by(fn[inst].op, fn[inst].attribute, may_be_all ? Word{0xffffffff} : named, fn.bounds.max_threads);
    };
    const auto any = [&](Block block) {
        return std::ranges::any_of(fn[block].instructions, [&](Inst inst) { return needed(inst) != Extent::Thread; });
    };
    if (std::ranges::none_of(fn.blocks(), any)) return {};
    const Uniformity facts(fn, dominators, doubt);
    std::vector<Diagnostic> out;
    for (Block block : fn.blocks())
        for (Inst inst : fn[block].instructions) {
            if (!dominators.reachable(block) || facts.extent(block) <= needed(inst)) continue;
            const Block cause = facts.cause(block);
            out.push_back(
                {.where = fn[inst].where,
                 .message = "@" + fn.name + ", ^" + std::to_string(index(block)) + ": only some threads of a " +
                            std::string(extent_names[std::size_t(needed(inst))]) + " can come to " + print(fn, inst),
                 .hint = "it is for all of them: put it where all threads come, or after a branch that they take "
                         "together",
                 .notes = {{fn[cause].terminator.where, "they part in ^" + std::to_string(index(cause)) + ": " +
                                                            print(fn, fn[cause].terminator)}}});
        }
    return out;
}

void verify_convergence(std::span<const Function> functions) {
    std::vector<Diagnostic> all;
    for (const Function& fn : functions)
        for (Diagnostic& finding : divergent_operations(fn, Dominators(fn))) all.push_back(std::move(finding));
    if (!all.empty()) throw Error(std::move(all));
}

}  // namespace ikat::analysis
