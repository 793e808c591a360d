// SPDX-License-Identifier: Apache-2.0
// How often shared memory is accessed for an instruction of a warp. It has 32 banks of 4 bytes, of which each gives or
// takes one word at a time, in a wavefront. Lanes that use the same word share it, except in atomics, which are done
// one after the other. 32 lanes are served together if each has up to 4 bytes, 16 if each has 8, 8 if each has 16.
#pragma once
#include <cstdint>
#include <span>

#include "runtime/emulator/tools/traffic/counter.hpp"

namespace ikat::emulator {

struct Wavefronts {
    std::uint64_t taken = 0;
    std::uint64_t possible = 0;  // without bank conflicts: one for all lanes that are served together
    bool operator==(const Wavefronts&) const = default;
};

/// For the lanes in `mask`, of which each accesses `bytes` bytes at its address.
Wavefronts wavefronts_of(std::span<const std::uint64_t> addresses, std::uint32_t mask, std::uint32_t bytes,
                         Direction direction);

/// Before an access of b bytes at address a (a register) + x: c is its Direction, d the tool's slot. y is the number of
/// lanes from the first on that have an address, + 256 if it has 8 bytes, + 512 if it is generic, + 1024 if the access
/// is of whole warps only.
const MicroOp* count_shared_traffic(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);

}  // namespace ikat::emulator
