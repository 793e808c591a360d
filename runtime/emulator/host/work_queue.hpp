// SPDX-License-Identifier: Apache-2.0
// The work of a device that is not done yet, and which of it is next.
//
//     stream 1   launch a ── record e                      b waits for e, d for c
//     stream 2                  └──── wait e ── launch b
//     stream 0   host call c ── copy d
#pragma once
#include <list>

#include "runtime/emulator/host/work.hpp"

namespace ikat::emulator {

/// A piece of work on its stream. Later ones have higher numbers.
struct Piece {
    std::uint64_t number = 0;
    StreamId stream{};
    Work work;
    bool is_running = false;
};

/// Who does a piece of work: the device, one at a time, or the thread of its host calls.
enum class Worker : std::uint8_t { Device, Host };
Worker worker_of(const Work& work);

/// Whether a piece cannot begin before an earlier one has ended: one of its stream, or the recording of the event that
/// it waits for.
bool waits_for(const Piece& later, const Piece& earlier);

/// Not thread-safe.
class WorkQueue {
public:
    /// Puts it after what the stream has.
    const Piece& add(StreamId stream, Work work);
    void remove(const Piece& piece);
    /// The piece that this worker does next; nullptr if none can begin. This is all that decides about the order: as
    /// enqueued.
    Piece* next(Worker worker);

    bool has(std::uint64_t number) const;
    bool has(StreamId stream) const;
    bool empty() const { return pieces_.empty(); }

private:
    std::list<Piece> pieces_;  // by number
    std::uint64_t last_ = 0;
};

}  // namespace ikat::emulator
