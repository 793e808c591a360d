// SPDX-License-Identifier: Apache-2.0
// Stack slots for values in memory: one each, but an argument and its parameter share one if possible, so that nothing
// is copied on the edge.
//
//     block1(v3, v4):                   v3 and v5, both in memory and never live at once: one slot
//         v5 = v3                       stored where it is defined
//         goto block1(v5, v4)           nothing to do
// Values that share a slot form a group without interference. A parameter that is stored before a branch keeps its own
// slot: on the branch's other edge any value of its group might be live.
#include "regalloc/stages.hpp"

namespace ikat::regalloc {
namespace {

struct Sharing {
    const Problem& problem;
    const Flow& flow;
    const Liveness& liveness;
    const Bitset& values;                          // values that need a slot
    std::vector<std::vector<LiveRange>> groups{};  // by slot; empty = merged into another
    std::vector<std::uint32_t> group_of{};         // by LiveRange
    Bitset alone{problem.values.size()};

    void start() {
        group_of.assign(problem.values.size(), 0);
        values.each([&](std::size_t v) {
            group_of[v] = std::uint32_t(groups.size());
            groups.push_back({LiveRange(v)});
        });
        for (FlowBlock b : flow.order)
            if (edge_at_start(problem, flow, b))
                for (LiveRange v : problem.blocks[index(b)].parameters) alone.set(index(v));
    }

    bool may_merge(std::uint32_t a, std::uint32_t b) const {
        for (LiveRange v : groups[a])
            for (LiveRange w : groups[b])
                if (alone.test(index(v)) || alone.test(index(w)) || liveness.interfere(v, w)) return false;
        return true;
    }

    void merge(LiveRange argument, LiveRange parameter) {
        const std::uint32_t from = group_of[index(argument)], to = group_of[index(parameter)];
        if (from == to || !may_merge(from, to)) return;
        for (LiveRange v : groups[from]) group_of[index(v)] = to;
        groups[to].insert(groups[to].end(), groups[from].begin(), groups[from].end());
        groups[from].clear();
    }

    StackSlots run() {
        start();
        for (FlowBlock b : flow.order)
            if (const Edge* edge = edge_at_end(problem, b))
                for (std::size_t i = 0; i < edge->arguments.size(); ++i) {
                    const LiveRange parameter = problem.blocks[index(edge->to)].parameters[i];
                    if (values.test(index(edge->arguments[i])) && values.test(index(parameter)))
                        merge(edge->arguments[i], parameter);
                }
        StackSlots slots{std::vector<std::uint32_t>(problem.values.size()), 0};
        for (const auto& group : groups) {
            for (LiveRange v : group) slots.of[index(v)] = slots.count;
            slots.count += !group.empty();
        }
        return slots;
    }
};

}  // namespace

StackSlots share_slots(const Problem& problem, const Flow& flow, const Liveness& liveness, const Bitset& values) {
    return Sharing{problem, flow, liveness, values}.run();
}

}  // namespace ikat::regalloc
