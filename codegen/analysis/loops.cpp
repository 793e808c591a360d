// SPDX-License-Identifier: Apache-2.0
#include "codegen/analysis/loops.hpp"

namespace ikat::analysis {

using namespace ir;

Loops::Loops(const Function& fn, const Dominators& dominators) : innermost_(fn.block_count(), none) {
    const Graph& predecessors = dominators.predecessors();
    std::vector<bool> inside(fn.block_count());
    // Headers in reverse postorder: an outer loop's comes first, and the inner loop then claims its blocks.
    for (Block header : dominators.reverse_postorder()) {
        std::vector<Block> work;
        for (std::uint32_t from : predecessors.successors(index(header)))
            if (dominators.reachable(Block(from)) && dominators.dominates(header, Block(from)) &&
                (work.empty() || work.back() != Block(from)))
                work.push_back(Block(from));
        if (work.empty()) continue;

        Loop loop;
        loop.header = header;
        loop.parent = innermost(header);
        if (loop.parent != none) loop.depth = loops_[loop.parent].depth + 1;
        std::vector<bool> is_latch(fn.block_count());
        for (Block latch : work) is_latch[index(latch)] = true;
        inside.assign(inside.size(), false);
        inside[index(header)] = true;
        while (!work.empty()) {
            const Block block = work.back();
            work.pop_back();
            if (inside[index(block)]) continue;
            inside[index(block)] = true;
            for (std::uint32_t from : predecessors.successors(index(block)))
                if (dominators.reachable(Block(from))) work.push_back(Block(from));
        }
        for (Block block : dominators.reverse_postorder()) {
            if (!inside[index(block)]) continue;
            loop.blocks.push_back(block);
            if (is_latch[index(block)]) loop.latches.push_back(block);
            innermost_[index(block)] = std::uint32_t(loops_.size());
        }
        loops_.push_back(std::move(loop));
    }
}

bool Loops::contains(std::uint32_t loop, Block block) const {
    for (std::uint32_t at = innermost(block); at != none; at = loops_[at].parent)
        if (at == loop) return true;
    return false;
}

}  // namespace ikat::analysis
