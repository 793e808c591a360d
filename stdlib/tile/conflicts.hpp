// SPDX-License-Identifier: Apache-2.0
// Bank conflicts of tiles, found when a kernel is captured.
#pragma once
#include <cstdint>
#include <span>

#include "dsl/lanes/layout.hpp"
#include "dsl/record/trace.hpp"

namespace ikat::stdlib {

/// How often shared memory is accessed for lanes that access `bytes` bytes each at these bytes, at the same time. It
/// has 32 banks of 4 bytes; lanes that use the same word of a bank share the access. A group of 8 lanes is served
/// together if each has 16 bytes, 16 lanes if each has 8, 32 otherwise.
std::uint32_t wavefronts(std::span<const std::uint64_t> places, std::uint32_t bytes);

/// An error at capture if 16 bytes each of eight rows of this tile, one below the other, meet in a bank.
void require_no_conflicts(const SwizzledLayout& tile, std::uint32_t element_bytes, const Where& where);

}  // namespace ikat::stdlib
