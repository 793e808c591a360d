// SPDX-License-Identifier: Apache-2.0
// The distance to the next use of a value, in instructions, on the shortest path. See next_use.cpp.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "regalloc/stages.hpp"

namespace ikat::regalloc {

class NextUse {
public:
    static constexpr std::uint32_t never = 1u << 30;

    NextUse(const Problem& problem, const Flow& flow, const Liveness& liveness);

    /// Positions are counted from the start of a block; the terminator follows the last instruction. Call
    /// enter_from_below(b), then step_over(b, i) for i downwards: at() then describes the point after instruction i -
    /// 1.
    void enter_from_below(FlowBlock b);
    void step_over(FlowBlock b, std::size_t i);
    std::uint32_t at(LiveRange v) const { return position_[index(v)]; }

private:
    bool update_start(FlowBlock b);

    const Problem& problem_;
    const Flow& flow_;
    std::vector<std::uint32_t> position_;                                     // by LiveRange
    std::vector<std::vector<std::pair<LiveRange, std::uint32_t>>> at_start_;  // by FlowBlock: for live-in values
};

}  // namespace ikat::regalloc
