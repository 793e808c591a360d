// SPDX-License-Identifier: Apache-2.0
// Control flow of a function as a graph: node i is block i, an edge for each target of its terminator, in order.
#pragma once
#include "codegen/ir/function.hpp"
#include "codegen/support/graph.hpp"
#include "codegen/support/grouped.hpp"

namespace ikat::ir {

inline Graph control_flow(const Function& fn) {
    Graph graph(fn.block_count());
    for (Block block : fn.blocks()) {
        for (const Jump& jump : fn[block].terminator.targets) graph.add_edge(index(jump.to));
        graph.add_node();
    }
    return graph;
}

/// By block: how many terminator targets lead to it.
inline std::vector<std::uint32_t> predecessor_counts(const Function& fn) {
    std::vector<std::uint32_t> counts(fn.block_count());
    for (Block block : fn.blocks())
        for (const Jump& jump : fn[block].terminator.targets) ++counts[index(jump.to)];
    return counts;
}

/// A target of a block's terminator.
struct Edge {
    Block from{};
    std::uint32_t target = 0;
};

/// The edges into each block, in the order of those they come from. Valid until terminators change.
class EdgesIn {
public:
    explicit EdgesIn(const Function& fn)
        : edges_(fn.block_count(), [&](auto&& add) {
              for (Block block : fn.blocks())
                  for (std::uint32_t target = 0; const Jump& jump : fn[block].terminator.targets)
                      add(index(jump.to), Edge{block, target++});
          }) {}
    std::span<const Edge> operator[](Block block) const { return edges_[index(block)]; }

private:
    Grouped<Edge> edges_;
};

}  // namespace ikat::ir
