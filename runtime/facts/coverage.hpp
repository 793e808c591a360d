// SPDX-License-Identifier: Apache-2.0
// What has been checked in launches that ended without an error: "clean" says no more than this.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ikat::emulator {

/// Of the search for races.
struct RaceCounts {
    std::uint64_t shared = 0, global = 0;  // accesses by a thread or a copy
    std::uint64_t unsure = 0;              // of which some lanes of one before are ordered and some are not
    std::uint64_t unchecked = 0;           // more, which there was no room to keep
    RaceCounts& operator+=(const RaceCounts& other) {
        shared += other.shared, global += other.global, unsure += other.unsure, unchecked += other.unchecked;
        return *this;
    }
};

/// Memory that a launch has allocated and not freed, by a line.
struct HeapLeft {
    std::string file;
    std::uint32_t line = 0;
    std::uint64_t bytes = 0;
    bool operator==(const HeapLeft&) const = default;
};

/// What has been checked of a launch.
struct Coverage {
    std::string entry;
    unsigned orders = 1, asked = 1;     // in how many orders of its warps a launch has run
    std::int64_t heap_bytes = 0;        // that it has allocated and not freed in the first; below 0: the reverse
    std::vector<HeapLeft> heap_left{};  // ... by line, also what a later launch frees
    RaceCounts races{};  // in all of these; without the classes `races` and `races-shared` there are none
};

}  // namespace ikat::emulator
