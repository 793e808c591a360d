// SPDX-License-Identifier: Apache-2.0
#include "codegen/analysis/post_dominators.hpp"

#include <algorithm>

namespace ikat::analysis {
namespace {

using ir::Block;

class Ends {
public:
    Ends(const ir::Function& fn, const Dominators& dominators)
        : fn_(fn),
          forward_(dominators.graph()),
          predecessors_(dominators.predecessors()),
          order_(dominators.reverse_postorder().begin(), dominators.reverse_postorder().end()),
          position_(fn.block_count()),
          best_(fn.block_count(), Unknown),
          is_end_(fn.block_count()) {
        for (std::uint32_t i = 0; Block block : order_) position_[index(block)] = i++;
        by_terminator(ir::Terminator::Kind::Return, Return);
        if (std::ranges::count(best_, Unknown)) by_loops();
        by_terminator(ir::Terminator::Kind::Trap, Trap);
    }

    /// The graph with its edges reversed, of blocks that end equally well, and with one from node 0 to each end.
    Graph reversed() const {
        Graph graph(fn_.block_count() + 1);
        for (Block block : fn_.blocks())
            if (is_end_[index(block)]) graph.add_edge(index(block) + 1);
        graph.add_node();
        for (Block block : fn_.blocks()) {
            for (std::uint32_t from : predecessors_.successors(index(block)))
                if (best_[from] == best_[index(block)]) graph.add_edge(from + 1);
            graph.add_node();
        }
        return graph;
    }

private:
    enum End : std::uint8_t { Return, Endless, Trap, Unknown };

    void by_terminator(ir::Terminator::Kind kind, End end) {
        for (Block block : fn_.blocks())
            if (fn_[block].terminator.kind == kind && best_[index(block)] == Unknown) add(index(block), end);
    }

    /// The outermost loops that are left for a trap at most. Their ends are the jumps to the block that begins them.
    void by_loops() {
        for (Block block : order_) {
            const std::uint32_t begin = index(block);
            if (best_[begin] != Unknown || !is_endless(begin)) continue;
            for (std::uint32_t from : predecessors_.successors(begin))
                if (goes_back(from, begin)) add(from, Endless);
        }
    }
    bool goes_back(std::uint32_t from, std::uint32_t to) const { return position_[to] <= position_[from]; }

    /// Whether a loop begins there, and whatever does not lead back to it is in no loop.
    bool is_endless(std::uint32_t begin) const {
        const auto returns = reached(predecessors_, begin), leads_to = reached(forward_, begin);
        const auto jumps_back = [&](std::uint32_t from) { return leads_to[from] && goes_back(from, begin); };
        if (std::ranges::none_of(predecessors_.successors(begin), jumps_back)) return false;
        return std::ranges::none_of(order_, [&](Block block) {
            const std::uint32_t from = index(block);
            return leads_to[from] && !returns[from] &&
                   std::ranges::any_of(forward_.successors(from), [&](auto to) { return goes_back(from, to); });
        });
    }
    static std::vector<bool> reached(const Graph& graph, std::uint32_t start) {
        std::vector<bool> seen(graph.size());
        std::vector<std::uint32_t> work{start};
        while (!work.empty()) {
            const std::uint32_t node = work.back();
            work.pop_back();
            if (seen[node]) continue;
            seen[node] = true;
            for (std::uint32_t next : graph.successors(node)) work.push_back(next);
        }
        return seen;
    }

    /// An end, and all blocks that lead to it and to none better.
    void add(std::uint32_t last, End end) {
        is_end_[last] = true;
        std::vector<std::uint32_t> work{last};
        while (!work.empty()) {
            const std::uint32_t block = work.back();
            work.pop_back();
            if (best_[block] != Unknown) continue;
            best_[block] = end;
            for (std::uint32_t from : predecessors_.successors(block)) work.push_back(from);
        }
    }

    const ir::Function& fn_;
    const Graph &forward_, &predecessors_;
    const std::vector<Block> order_;
    std::vector<std::uint32_t> position_;  // by block, in reverse postorder
    std::vector<End> best_;                // by block: that can be reached
    std::vector<bool> is_end_;             // by block
};

}  // namespace

DominatorTree post_dominators(const ir::Function& fn, const Dominators& dominators) {
    return DominatorTree(Ends(fn, dominators).reversed());
}

}  // namespace ikat::analysis
