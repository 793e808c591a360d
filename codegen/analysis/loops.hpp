// SPDX-License-Identifier: Apache-2.0
// Natural loops: a header, the edges back to it from blocks that it dominates (latches), and everything between. Loops
// with the same header are one loop; two loops are nested or disjoint.
//
//     ^0 ─▶ ^1 ─▶ ^2 ─▶ ^3        header ^1, latches ^2, blocks ^1 ^2
//            ▲─────┘
//
// Cycles without a dominating header (which structured code does not make) are not loops here.
#pragma once
#include <vector>

#include "codegen/analysis/dominators.hpp"

namespace ikat::analysis {

struct Loop {
    ir::Block header{};
    std::vector<ir::Block> blocks;   // the header first, then in reverse postorder
    std::vector<ir::Block> latches;  // in reverse postorder
    std::uint32_t parent = ~0u;      // the loop around it; Loops::none if there is none
    std::uint32_t depth = 1;         // 1 for an outermost loop
    bool operator==(const Loop&) const = default;
};

class Loops {
public:
    static constexpr std::uint32_t none = ~0u;

    Loops(const ir::Function& fn, const Dominators& dominators);

    /// Outer loops before the loops nested in them.
    const std::vector<Loop>& all() const { return loops_; }
    /// The innermost loop around a block, as an index into all(); none if there is none.
    std::uint32_t innermost(ir::Block block) const { return innermost_[index(block)]; }
    /// How many loops are around a block.
    std::uint32_t depth(ir::Block block) const { return innermost(block) == none ? 0 : loops_[innermost(block)].depth; }
    bool contains(std::uint32_t loop, ir::Block block) const;

    bool operator==(const Loops&) const = default;

private:
    std::vector<Loop> loops_;
    std::vector<std::uint32_t> innermost_;  // by block
};

}  // namespace ikat::analysis
