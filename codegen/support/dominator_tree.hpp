// SPDX-License-Identifier: Apache-2.0
// Dominators of a graph from its node 0. A node a dominates b if every path from node 0 to b goes through a.
// Computed with the iteration of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance Algorithm"): walk in reverse
// postorder, set each node's parent to the meet of its predecessors, until nothing changes. The tree is then numbered
// in pre-order, where a subtree is an interval, so that a query costs two comparisons.
#pragma once
#include "codegen/support/graph.hpp"

namespace ikat {

class DominatorTree {
public:
    static constexpr std::uint32_t none = ~0u;

    DominatorTree() = default;
    explicit DominatorTree(const Graph& graph) : DominatorTree(graph, graph.reversed()) {}
    DominatorTree(const Graph& graph, const Graph& predecessors);

    bool reachable(std::uint32_t node) const { return begin_[node] != none; }
    /// The immediate dominator; none for node 0 and for unreachable nodes.
    std::uint32_t parent(std::uint32_t node) const { return parent_[node]; }
    /// Reflexive. No path reaches an unreachable node, so every node dominates it.
    bool dominates(std::uint32_t a, std::uint32_t b) const {
        if (!reachable(b)) return true;
        return begin_[a] <= begin_[b] && begin_[b] < end_[a];
    }
    /// Reachable nodes: each after its parent, and a subtree is an interval.
    const std::vector<std::uint32_t>& preorder() const { return preorder_; }
    /// Reachable nodes in reverse postorder of the graph.
    const std::vector<std::uint32_t>& reverse_postorder() const { return reverse_postorder_; }

    bool operator==(const DominatorTree&) const = default;

private:
    void find_parents(const Graph& predecessors);
    void number();

    std::vector<std::uint32_t> parent_, begin_, end_, preorder_, reverse_postorder_;
};

}  // namespace ikat
