// SPDX-License-Identifier: Apache-2.0
// Dominators of a function's blocks, with the control-flow graph they were found in. The algorithm, and what
// "reachable" means, stand in codegen/support/dominator_tree.hpp; a question costs two comparisons.
#pragma once
#include "codegen/ir/cfg.hpp"
#include "codegen/support/dominator_tree.hpp"

namespace ikat::analysis {

inline constexpr ir::Block no_block = no_id<ir::Block>;

class Dominators {
    static auto as_blocks(const std::vector<std::uint32_t>& nodes) {
        return nodes | std::views::transform([](std::uint32_t node) { return ir::Block(node); });
    }

public:
    explicit Dominators(const ir::Function& fn) : graph_(control_flow(fn)), tree_(graph_) {}

    bool reachable(ir::Block block) const { return tree_.reachable(index(block)); }
    /// The immediate dominator; no_block for the entry and for unreachable blocks.
    ir::Block parent(ir::Block block) const { return ir::Block(tree_.parent(index(block))); }
    /// Reflexive; every block dominates an unreachable one.
    bool dominates(ir::Block a, ir::Block b) const { return tree_.dominates(index(a), index(b)); }

    /// Reachable blocks, each after its parent in the tree; a subtree is an interval.
    auto preorder() const { return as_blocks(tree_.preorder()); }
    /// Reachable blocks, each before its successors but for back edges.
    auto reverse_postorder() const { return as_blocks(tree_.reverse_postorder()); }

    /// Exactly one edge leads to the block.
    bool has_one_way_in(ir::Block block) const { return edges_in_[index(block)] == 1; }

    const Graph& graph() const { return graph_; }

private:
    static std::vector<std::uint32_t> count_edges(const Graph& graph) {
        std::vector<std::uint32_t> out(graph.size());
        for (std::uint32_t node = 0; node < graph.size(); ++node)
            for (std::uint32_t successor : graph.successors(node)) ++out[successor];
        return out;
    }

    Graph graph_;
    DominatorTree tree_;
    std::vector<std::uint32_t> edges_in_ = count_edges(graph_);  // by block
};

}  // namespace ikat::analysis
