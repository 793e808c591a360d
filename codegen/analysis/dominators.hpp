// SPDX-License-Identifier: Apache-2.0
// Dominators of a function's blocks, with the control-flow graph they were found in, forwards and backwards. The
// algorithm and the meaning of "reachable" are in codegen/support/dominator_tree.hpp; a query costs two comparisons.
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
    explicit Dominators(const ir::Function& fn)
        : graph_(control_flow(fn)), predecessors_(graph_.reversed()), tree_(graph_, predecessors_) {}

    bool reachable(ir::Block block) const { return tree_.reachable(index(block)); }
    /// The immediate dominator; no_block for the entry and for unreachable blocks.
    ir::Block parent(ir::Block block) const { return ir::Block(tree_.parent(index(block))); }
    /// Reflexive; every block dominates an unreachable one.
    bool dominates(ir::Block a, ir::Block b) const { return tree_.dominates(index(a), index(b)); }

    /// Reachable blocks, each after its parent in the tree; a subtree is an interval.
    auto preorder() const { return as_blocks(tree_.preorder()); }
    /// Reachable blocks, each before its successors except along back edges.
    auto reverse_postorder() const { return as_blocks(tree_.reverse_postorder()); }

    /// Exactly one edge leads to the block.
    bool has_one_way_in(ir::Block block) const { return predecessors_.successors(index(block)).size() == 1; }

    const Graph& graph() const { return graph_; }
    const Graph& predecessors() const { return predecessors_; }

    bool operator==(const Dominators&) const = default;

private:
    Graph graph_, predecessors_;
    DominatorTree tree_;
};

}  // namespace ikat::analysis
