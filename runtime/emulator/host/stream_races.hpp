// SPDX-License-Identifier: Apache-2.0
// Work of two streams on the same bytes, one a write, that nothing orders (stream_order.hpp). What a piece of work has
// touched is compared with what others have, whichever was done first: so what is found does not depend on the order.
//
//     stream 1   a writes x, bytes 0 to 4095          what b does not know and has bytes in common with it: a
//     stream 2   b reads x, bytes 1024 to 2047
#pragma once
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/support/diagnostic.hpp"
#include "runtime/emulator/host/work_queue.hpp"
#include "runtime/emulator/tools/touched/byte_ranges.hpp"

namespace ikat::emulator {

/// What a piece of work is called.
struct Deed {
    std::string what{};  // "kernel 'scale'", "a copy"
    Location where{};
    bool frees = false, allocates = false;
};
Deed deed_of(const Work& work);

/// Bytes of a buffer, by address.
struct TouchedBytes {
    std::uint64_t buffer = 0;  // its address; 0: memory of the host
    ByteRanges read{}, written{};
    ByteRanges strong{};  // by atomics: two of them are no race
};

/// Not thread-safe.
class StreamRaces {
public:
    /// What a message says of a race.
    struct Race {
        struct Side {
            std::shared_ptr<const Deed> deed;
            unsigned place = 0;  // of its Point, as the device
            std::shared_ptr<const std::string> device{};
            std::string_view does{};  // "writes"
        };
        Side first, second;  // as they were enqueued
        std::uint64_t buffer = 0;
        ByteRanges::Range bytes{};  // addresses
    };
    /// A piece of work: its number, its stream, and what is done before it in every order.
    struct Point {
        std::uint64_t number = 0;
        StreamKey stream;
        const StreamClock& known;
        unsigned place = 0;  // the number that messages have of the stream, or of the branch of a graph
        std::shared_ptr<const std::string> device{};  // its name
    };
    /// The first race of a piece of work, which then belongs to what others are compared with.
    std::optional<Race> add(const Point& piece, const std::shared_ptr<const Deed>& deed,
                            std::vector<TouchedBytes> touched);
    /// No piece of work is waiting: what the program knows is compared with nothing any more.
    void forget(const StreamClock& known);
    /// A device has ended.
    void end(unsigned device);
    /// The entries of ranges that it has.
    std::size_t size() const { return size_; }

    /// Beyond, the older half is forgotten.
    static constexpr std::size_t max_size = 1 << 18;

private:
    struct Record {
        std::uint64_t number = 0;
        std::shared_ptr<const Deed> deed;
        unsigned place = 0;
        std::shared_ptr<const std::string> device{};
        TouchedBytes touched;
        std::size_t size() const;
    };
    using Records = std::list<Record>;  // by number
    std::optional<Race> compare(const Record& before, const Record& now) const;
    void add(Records& to, Record record);
    template <class Condition>
    void erase_first(Condition is_over);

    std::map<std::uint64_t, std::map<StreamKey, Records>> buffers_;
    std::size_t size_ = 0;
};

}  // namespace ikat::emulator
