// SPDX-License-Identifier: Apache-2.0
// Random allocation problems: structured control flow in SSA form, several classes, tied pairs, values that can be
// computed again, critical edges without arguments, blocks nobody reaches. The same seed gives the same problem.
#pragma once
#include <cstdint>

#include "regalloc/regalloc.hpp"

namespace ikat::regalloc::fuzz {

/// About `size` instructions. One seed in five gives blocks that nothing reaches; their registers obey no limit.
Problem random_problem(std::uint64_t seed, std::uint32_t size);
inline bool has_unreachable_blocks(std::uint64_t seed) { return seed % 5 == 0; }

/// The registers that one place alone can need, per class: limits below cannot be kept.
std::vector<std::uint32_t> smallest_limits(const Problem& problem);

}  // namespace ikat::regalloc::fuzz
