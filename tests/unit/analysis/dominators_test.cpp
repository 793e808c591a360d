// SPDX-License-Identifier: Apache-2.0
// Dominators compared with their definition on random graphs: a dominates b if b cannot be reached without a.
#include <random>

#include "codegen/support/dominator_tree.hpp"
#include "tests/catch.hpp"

using namespace ikat;

namespace {

Graph graph_of(const std::vector<std::vector<std::uint32_t>>& edges) {
    Graph graph(edges.size());
    for (const auto& targets : edges) {
        for (std::uint32_t to : targets) graph.add_edge(to);
        graph.add_node();
    }
    return graph;
}

std::vector<bool> reached_without(const Graph& graph, std::uint32_t removed) {
    std::vector<bool> seen(graph.size());
    std::vector<std::uint32_t> work;
    if (removed != 0) work.push_back(0);
    while (!work.empty()) {
        const std::uint32_t node = work.back();
        work.pop_back();
        if (seen[node] || node == removed) continue;
        seen[node] = true;
        for (std::uint32_t to : graph.successors(node)) work.push_back(to);
    }
    return seen;
}

}  // namespace

TEST_CASE("a graph keeps its edges in order, and reversed ones by source") {
    const Graph graph = graph_of({{1, 2}, {2}, {1, 0}});
    CHECK(graph.size() == 3);
    CHECK(std::vector(graph.successors(0).begin(), graph.successors(0).end()) == std::vector<std::uint32_t>{1, 2});
    const Graph reversed = graph.reversed();
    CHECK(std::vector(reversed.successors(1).begin(), reversed.successors(1).end()) ==
          std::vector<std::uint32_t>{0, 2});
    CHECK(std::vector(reversed.successors(0).begin(), reversed.successors(0).end()) == std::vector<std::uint32_t>{2});
}

TEST_CASE("reverse postorder goes forward and leaves out unreachable nodes") {
    CHECK(graph_of({{1, 2}, {3}, {3}, {}, {0}}).reverse_postorder() == std::vector<std::uint32_t>{0, 1, 2, 3});
    CHECK(graph_of({{2}, {}, {1, 2}}).reverse_postorder() == std::vector<std::uint32_t>{0, 2, 1});
}

TEST_CASE("a diamond's join is dominated only by its fork") {
    const DominatorTree tree(graph_of({{1, 2}, {3}, {3}, {}, {3}}));
    CHECK(tree.parent(3) == 0);
    CHECK(tree.dominates(0, 3));
    CHECK(tree.dominates(3, 3));
    CHECK_FALSE(tree.dominates(1, 3));
    CHECK_FALSE(tree.reachable(4));
    CHECK(tree.dominates(1, 4));
    CHECK_FALSE(tree.dominates(4, 1));
}

TEST_CASE("dominators agree with their definition on random graphs") {
    std::mt19937 random(1);
    for (int round = 0; round < 400; ++round) {
        const std::size_t count = 1 + random() % 12;
        std::vector<std::vector<std::uint32_t>> edges(count);
        for (auto& targets : edges)
            for (std::size_t n = random() % 4; n > 0; --n) targets.push_back(std::uint32_t(random() % count));
        const Graph graph = graph_of(edges);
        const DominatorTree tree(graph);
        const std::vector<bool> reached = reached_without(graph, DominatorTree::none);
        for (std::uint32_t a = 0; a < count; ++a) {
            const std::vector<bool> without = reached_without(graph, a);
            for (std::uint32_t b = 0; b < count; ++b) {
                INFO("round " << round << ": " << a << " dominates " << b);
                if (reached[b]) CHECK(tree.dominates(a, b) == (reached[a] && !without[b]));
            }
            CHECK(tree.reachable(a) == reached[a]);
        }
        // Pre-order: each node after its parent, and the parent dominates it strictly.
        std::vector<bool> seen(count);
        for (std::uint32_t node : tree.preorder()) {
            seen[node] = true;
            if (tree.parent(node) == DominatorTree::none) continue;
            CHECK(seen[tree.parent(node)]);
            CHECK(tree.dominates(tree.parent(node), node));
        }
        CHECK(tree.preorder().size() == tree.reverse_postorder().size());
    }
}
