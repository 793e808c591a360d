// SPDX-License-Identifier: Apache-2.0
// What a pool of memory has: numbers, and a map of its segments, for people and for tools.
//
//     const PoolReport report = device.pool().report();
//     std::puts(to_text(report).c_str());
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace ikat::runtime {

/// The limit of a pool that has none.
inline constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

/// What a pool has at one moment. All sizes are bytes, as blocks have them: multiples of 256.
struct PoolReport {
    std::uint64_t used = 0;          // in blocks that somebody has
    std::uint64_t reserved = 0;      // in segments: what the device has given to the pool
    std::uint64_t peak_used = 0;     // the most that `used` has been
    std::uint64_t largest_free = 0;  // the largest block that nobody has
    std::uint64_t limit = no_limit;  // that `reserved` may reach
    std::string kind{};              // whose pool it is, as IKAT_POOL names it: "own", "driver", "off"

    /// The blocks of at least this many bytes, and fewer than twice as many.
    struct SizeClass {
        std::uint64_t bytes = 0;
        std::uint64_t used = 0, free = 0;  // blocks
        bool operator==(const SizeClass&) const = default;
    };
    std::vector<SizeClass> classes{};  // those that have blocks, from small to large

    /// Somebody has it; nobody has, but only work of the stream that freed it may; anybody may.
    enum class State : std::uint8_t { Used, Waiting, Free };
    struct Block {
        std::uint64_t offset = 0, bytes = 0;  // in its segment
        State state = State::Free;
        bool operator==(const Block&) const = default;
    };
    /// Memory that the device has given as one piece. Segments are numbered as they were made.
    struct Segment {
        std::uint64_t number = 0, bytes = 0;
        std::vector<Block> blocks{};
        bool operator==(const Segment&) const = default;
    };
    std::vector<Segment> segments{};  // by number

    std::uint64_t free() const { return reserved - used; }
    /// How much of the free memory is not in its largest block: 0 if nothing is free, near 1 if it is all in small
    /// ones.
    double fragmentation() const { return free() == 0 ? 0 : 1 - double(largest_free) / double(free()); }
};

/// The numbers as lines of text, and all of the report as JSON.
std::string to_text(const PoolReport& report);
std::string to_json(const PoolReport& report);
/// The segments, one line of 64 characters for each: '#' if a byte of that 64th is used, else '+' if one waits for its
/// stream, else '.'.
std::string map_as_text(const PoolReport& report);
/// The same to scale, a picture in SVG.
std::string map_as_svg(const PoolReport& report);

}  // namespace ikat::runtime
