// SPDX-License-Identifier: Apache-2.0
// A directed graph whose nodes are 0 … n-1: the successors of all nodes in one array, and where each node's start.
// Enough for control flow: the IR, the verifier and the analyses build one to get orders and dominators.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace ikat {

class Graph {
public:
    Graph() = default;
    /// Nodes are added in order: each call of add_edge belongs to the node that the next call of add_node closes.
    explicit Graph(std::size_t nodes) {
        first_.reserve(nodes + 1);
        to_.reserve(2 * nodes);
    }
    void add_edge(std::uint32_t to) { to_.push_back(to); }
    void add_node() { first_.push_back(std::uint32_t(to_.size())); }

    std::size_t size() const { return first_.size() - 1; }
    std::span<const std::uint32_t> successors(std::uint32_t node) const {
        return std::span(to_).subspan(first_[node], first_[node + 1] - first_[node]);
    }

    /// The same graph with every edge reversed; edges into one node are in the order of their sources.
    Graph reversed() const {
        Graph out;
        out.first_.assign(size() + 1, 0);
        out.to_.resize(to_.size());
        for (std::uint32_t node : to_) ++out.first_[node + 1];
        for (std::size_t node = 0; node < size(); ++node) out.first_[node + 1] += out.first_[node];
        std::vector<std::uint32_t> next(out.first_.begin(), out.first_.end() - 1);
        for (std::uint32_t node = 0; node < size(); ++node)
            for (std::uint32_t successor : successors(node)) out.to_[next[successor]++] = node;
        return out;
    }

    /// The nodes reachable from node 0, each before its successors except along back edges.
    std::vector<std::uint32_t> reverse_postorder() const {
        struct Visit {
            std::uint32_t node, next;
        };
        std::vector<std::uint32_t> order;
        if (size() == 0) return order;
        std::vector<bool> seen(size());
        std::vector<Visit> path{{0, 0}};
        seen[0] = true;
        while (!path.empty()) {
            Visit& visit = path.back();
            const auto targets = successors(visit.node);
            if (visit.next == targets.size()) {
                order.push_back(visit.node);
                path.pop_back();
                continue;
            }
            const std::uint32_t target = targets[targets.size() - ++visit.next];  // last first: the order reads forward
            if (!seen[target]) {
                seen[target] = true;
                path.push_back({target, 0});
            }
        }
        std::ranges::reverse(order);
        return order;
    }

    bool operator==(const Graph&) const = default;

private:
    std::vector<std::uint32_t> first_{0}, to_;
};

}  // namespace ikat
