// SPDX-License-Identifier: Apache-2.0
#include "codegen/analysis/post_dominators.hpp"

#include <algorithm>
#include <ranges>

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

    /// The outermost loops that are left for a trap at most: strongly connected blocks that lead to no other loop.
    /// Their ends are the jumps to the block that begins them, the first of them in reverse postorder.
    void by_loops() {
        find_components();
        for (Block block : order_) {
            const std::uint32_t begin = index(block);
            if (best_[begin] != Unknown || !component(begin).is_loop || component(begin).leads_to_loop) continue;
            for (std::uint32_t from : predecessors_.successors(begin))
                if (goes_back(from, begin)) add(from, Endless);
        }
    }
    bool goes_back(std::uint32_t from, std::uint32_t to) const { return position_[to] <= position_[from]; }

    struct Component {
        bool is_loop = false, leads_to_loop = false;
    };
    Component& component(std::uint32_t block) { return components_[component_of_[block]]; }

    /// Kosaraju's way: from each block in reverse postorder, what leads to it and is in no component yet. Components
    /// are found before those that they lead to.
    void find_components() {
        std::vector<std::uint32_t> found, work;
        std::vector<bool> waits(fn_.block_count());
        for (Block block : order_) waits[index(block)] = true;
        component_of_.resize(fn_.block_count());
        for (Block block : order_) {
            if (!waits[index(block)]) continue;
            components_.emplace_back();
            work.push_back(index(block));
            while (!work.empty()) {
                const std::uint32_t member = work.back();
                work.pop_back();
                if (!waits[member]) continue;
                waits[member] = false;
                component_of_[member] = std::uint32_t(components_.size() - 1);
                found.push_back(member);
                for (std::uint32_t from : predecessors_.successors(member)) work.push_back(from);
            }
        }
        for (std::uint32_t from : found | std::views::reverse)
            for (std::uint32_t to : forward_.successors(from))
                if (component_of_[from] != component_of_[to])
                    component(from).leads_to_loop |= component(to).is_loop || component(to).leads_to_loop;
                else
                    component(from).is_loop = true;
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
    std::vector<Component> components_;    // of blocks that lead to each other
    std::vector<std::uint32_t> component_of_;
};

}  // namespace

DominatorTree post_dominators(const ir::Function& fn, const Dominators& dominators) {
    return DominatorTree(Ends(fn, dominators).reversed());
}

}  // namespace ikat::analysis
