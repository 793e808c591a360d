// SPDX-License-Identifier: Apache-2.0
// What a launch is, how it is to run, and what it says in the end.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/support/diagnostic.hpp"
#include "runtime/emulator/core/checks/checks.hpp"
#include "runtime/emulator/core/schedule.hpp"
#include "runtime/facts/coverage.hpp"
#include "runtime/facts/launch_view.hpp"

namespace ikat::emulator {

class GridsInFlight;
class Suppressions;
class Tool;
struct TouchedMemory;

/// How far a launch is.
struct Progress {
    std::string_view entry;
    std::uint64_t blocks_done = 0, blocks = 0, warp_instructions = 0;
};

struct Options : Schedule {
    unsigned threads = 1;  // host threads over which the CTAs of a launch are spread
    Checks checks = Checks::strict();
    // Findings that do not end the launch, once for each line; called at its end, in the order of lines. Empty:
    // dropped.
    std::function<void(const Diagnostic&)> warning;
    std::shared_ptr<Suppressions> suppressions{};  // of findings that are in a class
    std::uint64_t step_budget =
        1000000000;                       // instructions of a warp between two of its barriers; more count as endless
    std::uint64_t launch_budget = ~0ull;  // of all warps of a launch, over barriers
    std::function<void(std::string_view)> output;    // what the kernel prints, in CTA order; empty = stdout
    bool asks_for_heap = false;                      // for Statistics::heap_left
    std::vector<std::shared_ptr<const Tool>> tools;  // that watch the launch (tool.hpp)
};

struct Launch {
    std::string_view entry{};
    std::array<std::uint32_t, 3> grid{1, 1, 1};
    std::array<std::uint32_t, 3> block{1, 1, 1};
    std::uint32_t dynamic_shared_bytes = 0;
    std::array<std::uint32_t, 3> cluster{0, 0, 0};  // blocks of a cluster; 0: as the entry says, else 1
    std::span<const std::byte> parameters{};  // laid out as the entry's .param list: each at its natural alignment
    bool begins_early = false;                // may begin before the launch in front of it in its stream has ended
    GridsInFlight* grids = nullptr;           // of that stream; nullptr: they are not looked at
    TouchedMemory* touched = nullptr;         // gets the bytes that it touches; nullptr: nobody asks
    std::vector<LaunchView> views{};          // of the arguments that are buffers, as far as the host knows them
};

/// A parameter of a kernel.
struct KernelParameter {
    std::string name;
    std::string type;  // ".u64"
    std::size_t offset, bytes, alignment;
};

/// Counts of a finished launch.
struct Statistics {
    std::uint64_t warp_instructions = 0;
    std::uint64_t lane_instructions = 0;  // lanes summed over warp instructions, whether their guard is on or off
    std::uint64_t global_bytes_read = 0, global_bytes_written = 0;
    RaceCounts races{};
    std::vector<HeapLeft> heap_left{};  // with Options::asks_for_heap
};

}  // namespace ikat::emulator
