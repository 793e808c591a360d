// SPDX-License-Identifier: Apache-2.0
// In which order a launch does what may be done in any order, and its text: "7,priorities,late,missed-waits".
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ikat::emulator {

struct Schedule {
    /// Of the warps of a block. BySeed: another random order in each round; round-robin with seed 0.
    enum class Turns : std::uint8_t { BySeed, Ascending, Descending, Priorities };
    /// Of copies, products and other asynchronous work. BySeed: each when chance has it, or with seed 0
    /// as late as it may.
    enum class Arrivals : std::uint8_t { BySeed, Early, Late };

    std::uint32_t seed = 0;  // of all that is random
    Turns turns = Turns::BySeed;
    Arrivals arrivals = Arrivals::BySeed;
    bool lanes = true;           // with a seed, also the order of the diverged lanes of a warp
    bool moved_shared = true;    // ... dynamic shared memory is moved on by its alignment
    bool any_leader = true;      // ... elect takes any lane
    bool missed_waits = false;   // try_wait answers no before each yes
    bool starved_block = false;  // a block of each cluster runs only when the others cannot continue
    bool any_blocks = false;     // blocks start in any order, and some at a time

    /// Nothing but the order of a seed.
    static Schedule of(std::uint32_t seed) {
        return {.seed = seed, .lanes = false, .moved_shared = false, .any_leader = false};
    }
    bool operator==(const Schedule&) const = default;
};

/// The text that read_schedule() reads as the same.
std::string to_string(const Schedule& schedule);

/// A number, or `random` for one that is drawn, and words, all separated by commas. Nothing if it is none, or if two of
/// the words exclude each other.
std::optional<Schedule> read_schedule(std::string_view text);

/// The words with what they mean, for messages.
std::string schedule_words();

}  // namespace ikat::emulator
