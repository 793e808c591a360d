// SPDX-License-Identifier: Apache-2.0
// Chooses the values to keep in memory, so that at every point the values that must be in registers fit the limits.
//
//     limit 2
//         v0, v1, v2 live                 one too many before i
//     i:  = v1                            v1 must stay; of v0 and v2, the one used later goes to memory
// At each point some values must be in registers, its operands: those that the instruction reads, or those that it
// writes (plus its late uses, if it is early), or those that an edge passes. Other live values can wait in memory; the
// one with the farthest next use goes first (Belady's rule). Ties prefer a rematerialisable value, then the lowest
// number.
// A chosen value is in a register only around its definition and its uses (spill.cpp keeps it longer if there is room).
// At its uses it was already counted, so choosing never raises the need elsewhere, with one exception: an argument in
// memory for a parameter in memory passes through a register at the end of the block. So we repeat over all blocks
// until nothing more is chosen.
// The limit cannot be met where the operands of a single point exceed it.
#include <algorithm>

#include "regalloc/next_use.hpp"

namespace ikat::regalloc {
namespace {

struct Chooser {
    const Problem& problem;
    const Flow& flow;
    const Liveness& liveness;
    NextUse next_use{problem, flow, liveness};
    Bitset chosen{problem.values.size()};
    Bitset operands{problem.values.size()};                                           // of the current point
    Bitset live{problem.values.size()};                                               // there
    std::vector<std::uint32_t> extra = std::vector<std::uint32_t>(liveness.classes);  // registers besides the operands

    Class class_of(LiveRange v) const { return problem.values[index(v)].register_class; }
    std::uint32_t limit(std::size_t c) const { return c < problem.limits.size() ? problem.limits[c] : unlimited; }
    bool in_memory(FlowBlock b, LiveRange parameter) const {
        return b != FlowBlock{0} && chosen.test(index(parameter));
    }

    void add_operands(std::span<const LiveRange> values) {
        for (LiveRange v : values) operands.set(index(v));
    }
    void new_place() {
        operands.clear();
        std::ranges::fill(extra, 0);
    }

    std::vector<std::uint32_t> needed() const {
        std::vector<std::uint32_t> count = extra;
        operands.each([&](std::size_t v) { ++count[class_of(LiveRange(v))]; });
        live.each([&](std::size_t v) { count[class_of(LiveRange(v))] += !operands.test(v) && !chosen.test(v); });
        return count;
    }

    bool goes_before(LiveRange a, LiveRange b) const {
        if (next_use.at(a) != next_use.at(b)) return next_use.at(a) > next_use.at(b);
        return problem.values[index(a)].rematerialisable && !problem.values[index(b)].rematerialisable;
    }

    /// The value of class c that can wait longest; no_id if all live values are operands or already in memory.
    LiveRange farthest(std::size_t c) const {
        LiveRange best = no_id<LiveRange>;
        live.each([&](std::size_t i) {
            const LiveRange v{std::uint32_t(i)};
            if (class_of(v) != c || operands.test(i) || chosen.test(i)) return;
            if (best == no_id<LiveRange> || goes_before(v, best)) best = v;
        });
        return best;
    }

    /// Returns the remaining excess, by class.
    std::vector<std::uint32_t> relieve() {
        std::vector<std::uint32_t> excess = needed();
        for (std::size_t c = 0; c < excess.size(); ++c) {
            excess[c] -= std::min(excess[c], limit(c));
            for (; excess[c] > 0; --excess[c]) {
                const LiveRange v = farthest(c);
                if (v == no_id<LiveRange>) break;
                chosen.set(index(v));
            }
        }
        return excess;
    }

    /// Arguments that must be in registers at the end of b, and a register through which memory is copied to memory.
    void add_edges(FlowBlock b) {
        const BasicBlock& block = problem.blocks[index(b)];
        for (const Edge& edge : block.edges) {
            const auto& parameters = problem.blocks[index(edge.to)].parameters;
            for (std::size_t i = 0; i < parameters.size(); ++i) {
                const LiveRange argument = edge.arguments[i];
                if (in_memory(edge.to, parameters[i])) {
                    if (chosen.test(index(argument))) extra[class_of(argument)] = 1;
                } else if (block.edges.size() == 1) {
                    operands.set(index(argument));
                }
            }
        }
    }

    void relieve_end(FlowBlock b) {
        for (std::vector<std::uint32_t> excess;;) {
            new_place();
            add_operands(problem.blocks[index(b)].terminator_uses);
            add_edges(b);
            excess = relieve();
            const LiveRange parameter = parameter_in_excess(b, excess);
            if (parameter == no_id<LiveRange>) return;
            chosen.set(index(parameter));
        }
    }

    /// Arguments alone may fill the registers while a memory-to-memory copy needs one more: a parameter to spill then.
    LiveRange parameter_in_excess(FlowBlock b, const std::vector<std::uint32_t>& excess) const {
        if (const Edge* edge = edge_at_end(problem, b); edge && edge->to != FlowBlock{0})
            for (LiveRange v : problem.blocks[index(edge->to)].parameters)
                if (excess[class_of(v)] > 0 && !chosen.test(index(v))) return v;
        return no_id<LiveRange>;
    }

    /// A tied use needs a copy if it lives on, but not if it is in memory, because then its reload has its own
    /// register.
    void relieve_before(FlowBlock b, std::size_t i, const Bitset& live_after) {
        const Instruction& instruction = problem.blocks[index(b)].instructions[i];
        const auto copied = liveness.copied(b, i);
        new_place();
        add_operands(instruction.uses);
        std::vector<LiveRange> avoidable;
        for (std::size_t t = 0; t < copied.size(); ++t) {
            const LiveRange use = instruction.uses[instruction.tied[t].use];
            const bool first = std::none_of(instruction.tied.begin(), instruction.tied.begin() + std::ptrdiff_t(t),
                                            [&](const Tied& other) { return instruction.uses[other.use] == use; });
            const bool late = reads_late(instruction, use);
            if (!copied[t] || (first && !late && chosen.test(index(use)))) continue;
            ++extra[class_of(use)];
            if (first && !late && live_after.test(index(use))) avoidable.push_back(use);
        }
        std::vector<std::uint32_t> excess = relieve();
        for (LiveRange v : avoidable)
            if (std::uint32_t& left = excess[class_of(v)]; left > 0) --left, chosen.set(index(v));
    }

    void relieve_block(FlowBlock b) {
        const BasicBlock& block = problem.blocks[index(b)];
        next_use.enter_from_below(b);
        live.clear();
        for (LiveRange v : liveness.out[index(b)]) live.set(index(v));
        relieve_end(b);
        for (std::size_t i = block.instructions.size(); i-- > 0;) {
            const Instruction& instruction = block.instructions[i];
            new_place();
            add_operands(instruction.definitions);
            for (LiveRange v : instruction.uses)
                if (reads_late(instruction, v)) operands.set(index(v));
            relieve();
            const Bitset live_after = live;
            for (LiveRange v : instruction.definitions) live.reset(index(v));
            for (LiveRange v : instruction.uses) live.set(index(v));
            next_use.step_over(b, i);
            relieve_before(b, i, live_after);
        }
        new_place();
        for (LiveRange v : block.parameters) live.set(index(v));
        if (b == FlowBlock{0}) add_operands(block.parameters);
        relieve();
    }

    Bitset run() {
        for (std::size_t before = 0, after = 1; before != after; after = chosen.count()) {
            before = chosen.count();
            for (FlowBlock b : flow.order) relieve_block(b);
        }
        return chosen;
    }
};

}  // namespace

Bitset choose_spilled(const Problem& problem, const Flow& flow, const Liveness& liveness) {
    const std::vector<std::uint32_t> highest = max_live(problem, flow, liveness);
    bool fits = true;
    for (std::size_t c = 0; c < problem.limits.size(); ++c) fits &= highest[c] <= problem.limits[c];
    if (fits) return Bitset(problem.values.size());
    return Chooser{problem, flow, liveness}.run();
}

}  // namespace ikat::regalloc
