// SPDX-License-Identifier: Apache-2.0
// How many registers are needed at each point.
//
//     v2, v3 = v0            just after: everything live across, v2 and v3, even if v3 is unused
//          ◀── the point     the larger of the two
//     v4 = v2 (tied v4 v2)   just before: everything live, and a copy of v2 for v4 to overwrite if v2 lives on
// At the start of a block all parameters count, used or not: the edges write them. The values live before the
// terminator include the arguments, and an edge never needs more than the start of the block it enters.
#include <algorithm>

#include "regalloc/stages.hpp"

namespace ikat::regalloc {
namespace {

struct Counter {
    const Problem& problem;
    std::vector<std::uint32_t> live;

    std::uint32_t& of(LiveRange v) { return live[problem.values[index(v)].register_class]; }
    void add(std::span<const LiveRange> values) {
        for (LiveRange v : values) ++of(v);
    }
    void remove(std::span<const LiveRange> values) {
        for (LiveRange v : values) --of(v);
    }
};

}  // namespace

std::vector<std::uint32_t> block_pressure(const Problem& problem, const Liveness& liveness, FlowBlock b) {
    const BasicBlock& block = problem.blocks[index(b)];
    Counter counter{problem, std::vector<std::uint32_t>(liveness.classes)};
    const std::size_t classes = counter.live.size(), count = block.instructions.size();
    std::vector<std::uint32_t> rows((count + 1) * classes);
    const auto raise = [&](std::size_t place) {
        for (std::size_t c = 0; c < classes; ++c)
            rows[place * classes + c] = std::max(rows[place * classes + c], counter.live[c]);
    };

    for (LiveRange v : liveness.in[index(b)]) ++counter.of(v);
    counter.add(block.parameters);
    raise(0);
    counter.remove(liveness.dead_parameters(b));
    for (std::size_t i = 0; i < count; ++i) {
        const Instruction& instruction = block.instructions[i];
        const auto copied = liveness.copied(b, i);
        const auto add_copies = [&](std::uint32_t change) {
            for (std::size_t t = 0; t < copied.size(); ++t)
                if (copied[t]) counter.of(instruction.uses[instruction.tied[t].use]) += change;
        };
        add_copies(1);
        raise(i);
        add_copies(~0u);
        counter.remove(liveness.dying(b, i));
        counter.add(instruction.definitions);
        raise(i + 1);
        counter.remove(liveness.dead(b, i));
    }
    return rows;
}

std::vector<std::uint32_t> max_live(const Problem& problem, const Flow& flow, const Liveness& liveness) {
    std::vector<std::uint32_t> highest(liveness.classes);
    if (highest.empty()) return highest;
    for (FlowBlock b : flow.order) {
        const auto rows = block_pressure(problem, liveness, b);
        for (std::size_t i = 0; i < rows.size(); ++i)
            highest[i % highest.size()] = std::max(highest[i % highest.size()], rows[i]);
    }
    return highest;
}

std::vector<std::vector<std::vector<std::uint32_t>>> pressure(const Problem& problem) {
    const Flow flow = flow_of(problem);
    validate(problem, flow);
    const Liveness liveness = liveness_of(problem, flow);
    const std::size_t classes = liveness.classes;
    std::vector<std::vector<std::vector<std::uint32_t>>> table(problem.blocks.size());
    for (std::size_t b = 0; b < table.size(); ++b) {
        table[b].assign(problem.blocks[b].instructions.size() + 1, std::vector<std::uint32_t>(classes));
        if (!flow.reachable[b]) continue;
        const auto rows = block_pressure(problem, liveness, FlowBlock(b));
        for (std::size_t i = 0; i < rows.size(); ++i) table[b][i / classes][i % classes] = rows[i];
    }
    return table;
}

}  // namespace ikat::regalloc
