// SPDX-License-Identifier: Apache-2.0
// The control-flow graph of a problem: an order of the blocks, predecessors, loop depth, and where an edge's moves go.
//
// The order is reverse postorder. A block's dominators are on every path to it, so they all come before it: colouring
// in this order is colouring in dominance order, and no dominator tree is needed. Successors are visited in order, so a
// loop's body is coloured before the code after the loop.
// The moves of an edge are at the end of the block it leaves if no other edge leaves it, else at the start of the block
// it enters. The terminator reads its uses after the moves before it; that is safe because a block with moves at its
// end has one successor, so its terminator reads nothing (validate asserts this).
#include <algorithm>

#include "codegen/support/diagnostic.hpp"
#include "regalloc/stages.hpp"

namespace ikat::regalloc {
namespace {

void reverse_postorder(const Problem& problem, Flow& flow) {
    struct Visit {
        FlowBlock block;
        std::size_t edges_left;
    };
    const auto edges = [&](FlowBlock b) -> auto& { return problem.blocks[index(b)].edges; };
    std::vector<Visit> path{{FlowBlock{0}, edges(FlowBlock{0}).size()}};
    flow.reachable[0] = true;
    while (!path.empty()) {
        auto& [block, left] = path.back();
        if (left == 0) {
            flow.order.push_back(block);
            path.pop_back();
            continue;
        }
        const FlowBlock to = edges(block)[--left].to;
        IKAT_ASSERT(index(to) < problem.blocks.size(), "an edge leads to no block");
        if (flow.reachable[index(to)]) continue;
        flow.reachable[index(to)] = true;
        path.push_back({to, edges(to).size()});
    }
    std::ranges::reverse(flow.order);
}

void find_predecessors(const Problem& problem, Flow& flow) {
    const std::size_t count = problem.blocks.size();
    flow.first_source.assign(count + 1, 0);
    for (FlowBlock b : flow.order)
        for (const Edge& edge : problem.blocks[index(b)].edges) ++flow.first_source[index(edge.to) + 1];
    flow.predecessors.assign(flow.first_source.begin() + 1, flow.first_source.end());
    ++flow.predecessors[0];
    for (std::size_t b = 0; b < count; ++b) flow.first_source[b + 1] += flow.first_source[b];

    flow.all_sources.resize(flow.first_source[count]);
    std::vector<std::uint32_t> next(flow.first_source.begin(), flow.first_source.end() - 1);
    for (FlowBlock b : flow.order)
        for (const Edge& edge : problem.blocks[index(b)].edges) flow.all_sources[next[index(edge.to)]++] = b;
    flow.source.assign(count, no_id<FlowBlock>);
    for (std::uint32_t b = 0; b < count; ++b)
        if (const auto sources = flow.sources(FlowBlock{b}); !sources.empty()) flow.source[b] = sources.front();
}

/// A loop is a block that is entered from a later block in the order, with all blocks on the paths from it to that one.
void measure_loops(Flow& flow) {
    std::vector<std::uint32_t> position(flow.reachable.size());
    for (std::uint32_t i = 0; i < flow.order.size(); ++i) position[index(flow.order[i])] = i;
    std::vector<FlowBlock> member_of(flow.reachable.size(), no_id<FlowBlock>);
    std::vector<FlowBlock> pending;
    for (FlowBlock header : flow.order) {
        const auto add = [&](FlowBlock b) {
            if (position[index(b)] < position[index(header)] || member_of[index(b)] == header) return;
            member_of[index(b)] = header;
            ++flow.depth[index(b)];
            pending.push_back(b);
        };
        for (FlowBlock latch : flow.sources(header)) add(latch);
        if (pending.empty()) continue;
        add(header);
        while (!pending.empty()) {
            const FlowBlock b = pending.back();
            pending.pop_back();
            if (b != header)
                for (FlowBlock source : flow.sources(b)) add(source);
        }
    }
}

}  // namespace

std::size_t class_count(const Problem& problem) {
    std::size_t count = problem.limits.size();
    for (const Problem::Range& range : problem.values) count = std::max<std::size_t>(count, range.register_class + 1u);
    return count;
}

Flow flow_of(const Problem& problem) {
    IKAT_ASSERT(!problem.blocks.empty(), "a problem has at least its entry");
    Flow flow;
    flow.reachable.assign(problem.blocks.size(), false);
    flow.depth.assign(problem.blocks.size(), 0);
    reverse_postorder(problem, flow);
    find_predecessors(problem, flow);
    measure_loops(flow);
    return flow;
}

const Edge* edge_at_end(const Problem& problem, FlowBlock b) {
    const auto& edges = problem.blocks[index(b)].edges;
    return edges.size() == 1 ? &edges.front() : nullptr;
}

const Edge* edge_at_start(const Problem& problem, const Flow& flow, FlowBlock b) {
    if (flow.predecessors[index(b)] != 1 || b == FlowBlock{0}) return nullptr;
    const auto& edges = problem.blocks[index(flow.source[index(b)])].edges;
    return edges.size() == 1 ? nullptr : &*std::ranges::find(edges, b, &Edge::to);
}

}  // namespace ikat::regalloc
