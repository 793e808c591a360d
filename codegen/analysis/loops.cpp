// SPDX-License-Identifier: Apache-2.0
#include "codegen/analysis/loops.hpp"

#include <algorithm>

namespace ikat::analysis {

using namespace ir;

Loops::Loops(const Function& fn, const Dominators& dominators) : innermost_(fn.block_count(), none) {
    const Graph& predecessors = dominators.predecessors();
    const auto order = dominators.reverse_postorder();
    std::vector<std::uint32_t> place(fn.block_count());
    for (std::uint32_t i = 0; i < order.size(); ++i) place[index(order[i])] = i;
    const auto in_order = [&](Block block) { return place[index(block)]; };
    // Headers in reverse postorder: an outer loop's comes first, and the inner loop then claims its blocks.
    for (Block header : order) {
        std::vector<Block> work;
        for (std::uint32_t from : predecessors.successors(index(header)))
            if (dominators.reachable(Block(from)) && dominators.dominates(header, Block(from)))
                work.push_back(Block(from));
        if (work.empty()) continue;

        Loop loop;
        loop.header = header;
        loop.parent = innermost(header);
        if (loop.parent != none) loop.depth = loops_[loop.parent].depth + 1;
        std::ranges::sort(work, {}, in_order);
        work.erase(std::unique(work.begin(), work.end()), work.end());  // two edges from one block
        loop.latches = work;
        const std::uint32_t number = std::uint32_t(loops_.size());
        const auto claim = [&](Block block) {
            if (innermost_[index(block)] == number) return false;
            innermost_[index(block)] = number;
            loop.blocks.push_back(block);
            return true;
        };
        claim(header);
        while (!work.empty()) {
            const Block block = work.back();
            work.pop_back();
            if (!claim(block)) continue;
            for (std::uint32_t from : predecessors.successors(index(block)))
                if (dominators.reachable(Block(from))) work.push_back(Block(from));
        }
        std::ranges::sort(loop.blocks, {}, in_order);
        loops_.push_back(std::move(loop));
    }
}

bool Loops::contains(std::uint32_t loop, Block block) const {
    for (std::uint32_t at = innermost(block); at != none; at = loops_[at].parent)
        if (at == loop) return true;
    return false;
}

}  // namespace ikat::analysis
