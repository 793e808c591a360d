// SPDX-License-Identifier: Apache-2.0
// Distances to next uses: a shortest-path problem over the blocks, solved backwards until nothing changes.
//
//     i:  = v0             v0 at i
//     goto b1, b2          v1 at length + the nearer of (b1: v1 at 3) and (b2: v1 at 0, after a loop: + 1000)
// An edge that leaves loops counts as a thousand instructions for each: values used only after the loop are farther
// away than anything the next iteration uses.
#include "regalloc/next_use.hpp"

#include <algorithm>

namespace ikat::regalloc {
namespace {

constexpr std::uint32_t loop_exit = 1000;

}  // namespace

NextUse::NextUse(const Problem& problem, const Flow& flow, const Liveness& liveness)
    : problem_(problem), flow_(flow), position_(problem.values.size()), at_start_(problem.blocks.size()) {
    for (FlowBlock b : flow.order)
        for (LiveRange v : liveness.in[index(b)]) at_start_[index(b)].emplace_back(v, never);
    for (bool changed = true; changed;) {
        changed = false;
        for (auto b = flow.order.rbegin(); b != flow.order.rend(); ++b) changed |= update_start(*b);
    }
}

void NextUse::enter_from_below(FlowBlock b) {
    const BasicBlock& block = problem_.blocks[index(b)];
    const std::uint32_t end = std::uint32_t(block.instructions.size());
    std::ranges::fill(position_, never);
    for (const Edge& edge : block.edges) {
        const std::uint32_t here = flow_.depth[index(b)], there = flow_.depth[index(edge.to)];
        const std::uint32_t length = end + 1 + (here > there ? (here - there) * loop_exit : 0);
        for (const auto& [v, position] : at_start_[index(edge.to)])
            position_[index(v)] = std::min(position_[index(v)], position + length);
    }
    for (const Edge& edge : block.edges)
        for (LiveRange v : edge.arguments) position_[index(v)] = end;
    for (LiveRange v : block.terminator_uses) position_[index(v)] = end;
}

void NextUse::step_over(FlowBlock b, std::size_t i) {
    const Instruction& instruction = problem_.blocks[index(b)].instructions[i];
    for (LiveRange v : instruction.definitions) position_[index(v)] = never;
    for (LiveRange v : instruction.uses) position_[index(v)] = std::uint32_t(i);
}

bool NextUse::update_start(FlowBlock b) {
    enter_from_below(b);
    for (std::size_t i = problem_.blocks[index(b)].instructions.size(); i-- > 0;) step_over(b, i);
    bool changed = false;
    for (auto& [v, position] : at_start_[index(b)]) {
        const std::uint32_t nearest = std::min(position_[index(v)], never);
        changed |= nearest != position;
        position = nearest;
    }
    return changed;
}

}  // namespace ikat::regalloc
