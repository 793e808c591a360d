// SPDX-License-Identifier: Apache-2.0
// How many blocks of a kernel fit on a multiprocessor, from its limits (codegen/ptx/table/target.cpp) and the
// allocation granularity of registers and shared memory.
#pragma once
#include <cstdint>
#include <string_view>

#include "codegen/ptx/table/target.hpp"

namespace ikat {

/// What a block takes of a multiprocessor.
struct BlockNeeds {
    std::uint32_t threads = 0;
    std::uint32_t registers = 0;     // per thread
    std::uint32_t shared_bytes = 0;  // static and dynamic
};

/// How many blocks a multiprocessor holds at once.
struct Occupancy {
    std::uint32_t registers = 0;  // per thread, as requested
    std::uint32_t blocks = 0;     // 0: not even one fits
    std::uint32_t warps = 0;      // of these blocks
    std::string_view limited_by;  // "registers", "shared memory", "warps", "blocks": the first that is exhausted
};

/// For such blocks on a target.
Occupancy occupancy(const ptx::Target& target, const BlockNeeds& block);

}  // namespace ikat
