// SPDX-License-Identifier: Apache-2.0
// The work of a device that is not done yet, and which of it is next.
//
//     stream 1   launch a ── record e                      b waits for e, d for c
//     stream 2                  └──── wait e ── launch b
//     stream 3   host call c ── copy d
//
// What is on the default stream waits for all that came before it, and what comes after it waits for that. Streams that
// do not wait for the default one are left out of this.
#pragma once
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "runtime/emulator/host/stream_order.hpp"
#include "runtime/emulator/host/work.hpp"

namespace ikat::emulator {

/// A piece of work on its stream. Later ones have higher numbers, over all devices of the process.
struct Piece {
    std::uint64_t number = 0;
    StreamId stream{};
    Work work;
    unsigned device = 0;
    unsigned stream_number = 0;               // of it, for messages; 0: the default one
    std::uint64_t awaited = 0;                // of a Wait: the number of the recording that it waits for; 0: none
    KnownWork known{};                        // what is done before it in every order
    std::optional<std::uint64_t> checksum{};  // of what it copies from the host, which nobody may change
    bool is_running = false;
};

/// Who does a piece of work: the device, one at a time, or the thread of its host calls, also for graphs with some.
enum class Worker : std::uint8_t { Device, Host };
Worker worker_of(const Work& work);
/// Whether it may write memory of the host.
bool may_write_host(const Work& work);
/// Of the memory of the host that it copies and that nobody may change meanwhile; nothing if there is none.
std::optional<std::uint64_t> checksum_of(const Work& work);

/// Which of several pieces that can begin is next: by a seed, always the same one after the same calls; or, without a
/// seed, the one that was enqueued first.
class WorkOrder {
public:
    explicit WorkOrder(std::optional<std::uint32_t> seed = {}) : seed_(seed) {}
    /// A number below `count`.
    std::size_t pick(std::size_t count);

private:
    std::optional<std::uint32_t> seed_;
    std::uint64_t choices_ = 0;
};

/// Not thread-safe.
class WorkQueue {
public:
    using Numbers = std::shared_ptr<std::atomic<std::uint64_t>>;
    /// Several queues may have one row of numbers: the order in which the program has enqueued work.
    explicit WorkQueue(unsigned device = 0, Numbers numbers = std::make_shared<std::atomic<std::uint64_t>>(0))
        : device_(device), numbers_(std::move(numbers)) {}

    /// Puts it after what the stream has.
    Piece& add(StreamId stream, Work work, bool waits_for_default = true);
    void remove(const Piece& piece);
    /// The piece that this worker does next; nullptr if none can begin. This is all that decides about the order.
    Piece* next(Worker worker, WorkOrder& order);
    /// A piece that is done by this worker, or could be; nullptr if there is none.
    Piece* first(Worker worker);

    /// Whether a piece is not done yet, or any of a stream, or the last recording of an event that was asked for.
    bool has(StreamId stream, std::uint64_t number) const;
    bool has(StreamId stream) const { return streams_.contains(stream); }
    /// Whether a new piece of a stream would wait for nothing.
    bool is_free(StreamId stream, bool waits_for_default) const;
    bool has(EventId event) const;
    /// What becomes true when the last recording of an event is done; null if it is.
    std::shared_ptr<const std::atomic<bool>> done(EventId event);
    /// The lowest number of the pieces that this worker could begin.
    std::optional<std::uint64_t> next_number(Worker worker) const;
    bool empty() const { return streams_.empty(); }
    std::size_t size() const { return size_; }

private:
    struct Waiting {
        std::deque<Piece> pieces;  // by number; none is empty
        bool waits_for_default = true;
    };
    bool can_begin(const Piece& piece, bool waits_for_default) const;

    const unsigned device_;
    const Numbers numbers_;
    std::map<StreamId, Waiting> streams_;
    std::map<EventId, std::uint64_t> recordings_;                              // the number of the last one
    std::set<std::uint64_t> not_recorded_;                                     // the numbers of those that are not done
    std::map<std::uint64_t, std::shared_ptr<std::atomic<bool>>> asked_about_;  // recordings, by number
    std::size_t size_ = 0;
};

}  // namespace ikat::emulator
