// SPDX-License-Identifier: Apache-2.0
#include "codegen/support/dominator_tree.hpp"

namespace ikat {

DominatorTree::DominatorTree(const Graph& graph, const Graph& predecessors)
    : parent_(graph.size(), none),
      begin_(graph.size(), none),
      end_(graph.size(), 0),
      reverse_postorder_(graph.reverse_postorder()) {
    find_parents(predecessors);
    number();
}

void DominatorTree::find_parents(const Graph& predecessors) {
    // Within the loop, nodes are identified by their position in reverse postorder: a parent has a smaller one.
    const std::uint32_t count = std::uint32_t(reverse_postorder_.size());
    if (count == 0) return;
    std::vector<std::uint32_t> place(predecessors.size(), none), parent(count, none);
    for (std::uint32_t i = 0; i < count; ++i) place[reverse_postorder_[i]] = i;
    const auto meet = [&](std::uint32_t a, std::uint32_t b) {
        while (a != b) {
            while (a > b) a = parent[a];
            while (b > a) b = parent[b];
        }
        return a;
    };
    parent[0] = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (std::uint32_t i = 1; i < count; ++i) {
            std::uint32_t found = none;
            for (std::uint32_t node : predecessors.successors(reverse_postorder_[i])) {
                const std::uint32_t from = place[node];
                if (from == none || parent[from] == none) continue;
                found = found == none ? from : meet(found, from);
            }
            changed |= parent[i] != found;
            parent[i] = found;
        }
    }
    for (std::uint32_t i = 1; i < count; ++i) parent_[reverse_postorder_[i]] = reverse_postorder_[parent[i]];
}

void DominatorTree::number() {
    std::vector<std::uint32_t> size(parent_.size(), 1), next(parent_.size());
    for (auto node = reverse_postorder_.rbegin(); node != reverse_postorder_.rend(); ++node)
        if (parent_[*node] != none) size[parent_[*node]] += size[*node];
    preorder_.resize(reverse_postorder_.size());
    for (std::uint32_t node : reverse_postorder_) {
        begin_[node] = parent_[node] == none ? 0 : next[parent_[node]];
        end_[node] = begin_[node] + size[node];
        next[node] = begin_[node] + 1;
        if (parent_[node] != none) next[parent_[node]] = end_[node];
        preorder_[begin_[node]] = node;
    }
}

}  // namespace ikat
