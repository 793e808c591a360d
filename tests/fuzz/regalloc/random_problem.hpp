// SPDX-License-Identifier: Apache-2.0
// Random allocation problems: structured control flow in SSA form, several classes, tied pairs, rematerialisable
// values, critical edges without arguments, unreachable blocks. The same seed gives the same problem.
#pragma once
#include <cstdint>

#include "regalloc/regalloc.hpp"

namespace ikat::regalloc::fuzz {

/// About `size` instructions. One seed in five gives unreachable blocks, to whose registers limits do not apply.
Problem random_problem(std::uint64_t seed, std::uint32_t size);
inline bool has_unreachable_blocks(std::uint64_t seed) { return seed % 5 == 0; }

/// The registers that a single instruction may need, per class: lower limits cannot be met.
std::vector<std::uint32_t> smallest_limits(const Problem& problem);

}  // namespace ikat::regalloc::fuzz
