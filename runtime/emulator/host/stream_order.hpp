// SPDX-License-Identifier: Apache-2.0
// What of the work of devices is ordered, and what may be done at the same time: by vector clocks, of streams as those
// of races (tools/races/clock.hpp) are of warps. A piece of work knows all before it on its stream, what that has
// waited for, and what the program had waited for when it enqueued it.
//
//     stream 1   a: 1 ── record e: 2 ── c: 5
//     stream 2                └──── wait e: 3 ── b: 4         b knows 2 of stream 1, so a, not c
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/emulator/host/ids.hpp"

namespace ikat::emulator {

struct Piece;

/// A stream of one of the devices of the process.
struct StreamKey {
    unsigned device = 0;
    StreamId stream{};

    StreamKey(StreamId of) : stream(of) {}
    StreamKey(unsigned on, StreamId of) : device(on), stream(of) {}
    auto operator<=>(const StreamKey&) const = default;
};

/// What is known to be done: of devices all pieces up to a number, and of some streams up to later ones.
class StreamClock {
public:
    bool covers(StreamKey stream, std::uint64_t number) const;
    /// All of a stream up to a number.
    void learn(StreamKey stream, std::uint64_t number);
    /// All of a device.
    void learn(std::uint64_t number, unsigned device = 0);
    void join(const StreamClock& other);
    /// The device has ended.
    void forget(unsigned device);
    /// Up to which piece of a device it knows all; and how many streams it knows more of.
    std::uint64_t all(unsigned device) const;
    std::size_t size() const { return streams_.size(); }

private:
    std::vector<std::pair<unsigned, std::uint64_t>> devices_;   // ascending
    std::vector<std::pair<StreamKey, std::uint64_t>> streams_;  // ascending
};
using KnownWork = std::shared_ptr<const StreamClock>;

/// Not thread-safe. What one thread of the program has waited for counts as known to all of its threads.
class StreamOrder {
public:
    /// A piece is enqueued: what it knows.
    KnownWork add(const Piece& piece, bool waits_for_default);
    /// The program has waited for all of a device, for a stream, or for an event.
    void wait(unsigned device = 0);
    void wait(StreamKey stream);
    void wait(EventId event);
    /// A device has ended, when all of its work was done.
    void end(unsigned device);
    /// The program can ask for it no longer.
    void forget(EventId event) { events_.erase(event); }
    /// What the program knows.
    const StreamClock& program() const { return program_; }
    /// How often work has counted as waited for without having been, see max_streams.
    std::uint64_t forgotten() const { return forgotten_; }
    /// The entries of its lists.
    std::size_t size() const { return streams_.size() + events_.size() + program_.size(); }

    /// Where more streams than this have work that the program has not waited for, or has waited for between such work,
    /// the older half of it counts as waited for: it is compared with nothing. Each piece that waits to be done may
    /// know of as many streams.
    static constexpr std::size_t max_streams = 512;

private:
    struct Stream {
        KnownWork known;          // its last piece
        std::uint64_t first = 0;  // the number of the first one that the program does not know
        std::uint64_t last = 0;   // ... and of the last
        bool waits_for_default = true;
        std::uint64_t waits = 0;     // of the program, that the stream knows
        std::uint64_t default_ = 0;  // ... the last piece of the default stream
    };
    struct Point {
        StreamKey stream;
        std::uint64_t number = 0;
        KnownWork known;
    };
    void learn(StreamKey stream, std::uint64_t number, const StreamClock& known);
    void forget_streams();
    void forget_half();

    StreamClock program_;
    std::uint64_t waits_ = 0, forgotten_ = 0;
    std::map<unsigned, std::uint64_t> last_;  // by device
    std::map<StreamKey, Stream> streams_;     // that the program does not know all of
    std::map<EventId, Point> events_;         // their last recordings
};

}  // namespace ikat::emulator
