// SPDX-License-Identifier: Apache-2.0
// The global memory traffic of a launch, requested and moved, by buffer, and that of shared memory, by line. Global
// memory moves in sectors of 32 bytes, so a warp that reads every eighth float moves eight times what it requests.
// docs/emulator.md says what the model leaves out.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/support/diagnostic.hpp"

namespace ikat::emulator {

/// The unit in which global memory is moved to the caches.
inline constexpr std::uint64_t sector_bytes = 32;

/// The traffic of one buffer by reads, writes or atomics.
struct Traffic {
    std::uint64_t accesses = 0;   // warp instructions with a lane in the buffer
    std::uint64_t requested = 0;  // distinct bytes that each of them requests, summed
    std::uint64_t sectors = 0;    // distinct sectors of each of them, summed
    std::uint64_t moved = 0;      // bytes of those sectors that were not in the warp's share of the cache
    std::uint64_t touched = 0;    // bytes of all sectors that the launch touched, each once

    /// The fraction of the sectors that was requested: 1 if accesses are contiguous and aligned.
    double efficiency() const { return sectors ? double(requested) / double(sector_bytes * sectors) : 1; }
    bool operator==(const Traffic&) const = default;
};

/// A buffer, and what was read, written and combined in it.
struct BufferTraffic {
    std::string name;
    std::uint64_t address = 0, bytes = 0;
    Traffic read{}, written{}, atomic{};
    bool operator==(const BufferTraffic&) const = default;
};

/// The accesses to shared memory by one kind of instruction of a line. shared_traffic.hpp has the model.
struct SharedTraffic {
    Location where{};              // a line of the kernel's source, or of its PTX
    std::string instruction{};     // "ld", "ldmatrix"
    std::uint64_t accesses = 0;    // warp instructions
    std::uint64_t wavefronts = 0;  // that they took
    std::uint64_t possible = 0;    // that they would take without bank conflicts

    double efficiency() const { return wavefronts ? double(possible) / double(wavefronts) : 1; }
    /// Adds the numbers of another launch, or line.
    void add(const SharedTraffic& more) {
        accesses += more.accesses;
        wavefronts += more.wavefronts;
        possible += more.possible;
    }
    bool operator==(const SharedTraffic&) const = default;
};

/// The touched buffers, by address. Memory from a kernel's malloc is one buffer, the last, with address 0.
struct LaunchTraffic {
    std::string entry;
    std::uint64_t warp_instructions = 0;  // that were executed
    std::uint64_t lane_instructions = 0;  // lanes summed over them, whether their guard is on or off
    std::vector<BufferTraffic> buffers;
    std::vector<SharedTraffic> shared{};  // by file and line
    bool operator==(const LaunchTraffic&) const = default;
};

}  // namespace ikat::emulator
