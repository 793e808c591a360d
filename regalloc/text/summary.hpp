// SPDX-License-Identifier: Apache-2.0
// What a person wants to know about an answer: registers per class, and where the pressure is highest.
#pragma once
#include <cstdint>
#include <vector>

#include "regalloc/regalloc.hpp"

namespace ikat::regalloc {

struct ClassSummary {
    std::uint32_t registers = 0;  // used by the answer
    std::uint32_t max_live = 0;   // needed by the problem
    FlowBlock block{};            // the first place that needs max_live
    std::uint32_t before = 0;     // instruction; the number of instructions = before the terminator
    std::uint32_t moves = 0, spills = 0, reloads = 0, rematerialised = 0;
};

/// One row per class.
std::vector<ClassSummary> summary_of(const Problem& problem, const Allocation& allocation);

}  // namespace ikat::regalloc
