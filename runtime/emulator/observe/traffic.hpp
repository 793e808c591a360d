// SPDX-License-Identifier: Apache-2.0
// What the warps of a launch ask of global memory, and what moves for it, by buffer. Memory moves in sectors of 32
// bytes, so a warp that reads every eighth float moves eight times what it asked for. docs/emulator.md says what the
// model leaves out.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ikat::emulator {

inline constexpr std::uint64_t sector_bytes = 32;

/// Of one buffer, by reads, by writes or by atomics.
struct Traffic {
    std::uint64_t accesses = 0;   // warp instructions that have a lane in the buffer
    std::uint64_t requested = 0;  // distinct bytes that each of them asks for, summed
    std::uint64_t sectors = 0;    // distinct sectors of each of them, summed
    std::uint64_t moved = 0;      // bytes of those sectors that the warp's share of the cache did not hold
    std::uint64_t touched = 0;    // bytes of all sectors that the launch touched, each once

    /// The part of the sectors that was asked for: 1 where accesses are contiguous and aligned.
    double efficiency() const { return sectors ? double(requested) / double(sector_bytes * sectors) : 1; }
    bool operator==(const Traffic&) const = default;
};

struct BufferTraffic {
    std::string name;
    std::uint64_t address = 0, bytes = 0;
    Traffic read{}, written{}, atomic{};
    bool operator==(const BufferTraffic&) const = default;
};

/// Buffers that were not touched are not in it; the others in the order of their addresses. What kernels have from
/// malloc is one, the last, whose address is 0.
struct LaunchTraffic {
    std::string entry;
    std::uint64_t warp_instructions = 0;  // that were executed
    std::uint64_t lane_instructions = 0;  // lanes summed over them, whether their guard is on or off
    std::vector<BufferTraffic> buffers;
    bool operator==(const LaunchTraffic&) const = default;
};

}  // namespace ikat::emulator
