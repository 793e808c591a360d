// SPDX-License-Identifier: Apache-2.0
// Runs a problem on data, in SSA form and with an answer's registers, side by side. It shares no code with the
// allocator or its checker: it is the reference for both.
#pragma once
#include <cstdint>
#include <string>

#include "regalloc/regalloc.hpp"

namespace ikat::regalloc::fuzz {

/// Follows one path (chosen by `seed` and the data) for at most `steps` blocks. Returns the first use that reads a
/// wrong value, or an empty string. The answer must name registers and slots that exist.
std::string execute(const Problem& problem, const Allocation& answer, std::uint64_t seed, std::uint32_t steps);

}  // namespace ikat::regalloc::fuzz
