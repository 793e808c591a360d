// SPDX-License-Identifier: Apache-2.0
// What a micro-op is, for those that watch it (tool.hpp); written by the rule that emits it.
#pragma once
#include <cstdint>

#include "runtime/emulator/core/memory.hpp"

namespace ikat::emulator {

enum class Direction : std::uint8_t { Read, Write, Atomic };
inline constexpr std::size_t directions = 3;

/// The threads that a fence, or an access with an order, speaks to.
enum class Scope : std::uint8_t { Thread, Block, Cluster, Device, System };

/// How it orders what the threads of a launch do.
struct Synchronises {
    bool meets_warp = false;                  // the lanes that execute it meet
    bool acquires = false, releases = false;  // a fence, or the order of its own access
    Scope scope = Scope::Thread;
    // What a fence makes visible to copies and products, which access memory by the asynchronous proxy: ordinary
    // accesses of shared and global memory, barriers in shared memory that its thread has made, tensor maps.
    bool shows_shared = false, shows_global = false, shows_barriers = false, shows_maps = false;
};

struct MicroInfo {
    /// The memory that each lane accesses; none if there are no bytes.
    struct Access {
        Space space = Space::Generic;
        std::uint32_t bytes = 0;
        Direction direction = Direction::Read;
        std::uint32_t lanes = ~0u;  // those that give an address
        std::int32_t offset = 0;    // from the address, which is field a
        bool is_strong = false;     // an atomic, or volatile or relaxed: two of them on one address are no race
        bool is_of_all = false;     // made by all lanes of the warp together, as ldmatrix
    } access{};
    Synchronises synchronises{};
};

}  // namespace ikat::emulator
