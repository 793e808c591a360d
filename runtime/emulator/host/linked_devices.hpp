// SPDX-License-Identifier: Apache-2.0
// What devices of the process have in common: which of their work is ordered, and what it has touched; and those that
// have to do with each other, by an event that one waits for, a copy, or peer access.
//
//     emulator:0   stream 1   fill x ── record e           a wait for stream 2 of emulator:1 does work of both devices,
//     emulator:1   stream 2               └── wait e ── copy y = x       in an order that its seed chooses
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>

#include "runtime/emulator/host/stream_races.hpp"
#include "runtime/emulator/host/work_queue.hpp"

namespace ikat::emulator {

class HostDevice;

struct SharedOrder {
    /// The number of a new device, from 1 on.
    unsigned add_device();
    /// A device has ended: it has no work.
    void end(unsigned device);

    const WorkQueue::Numbers numbers = std::make_shared<std::atomic<std::uint64_t>>(0);
    std::mutex mutex;  // locked for what follows, after that of a device's work
    StreamOrder known;
    StreamRaces races;
    std::size_t pending = 0;  // pieces of work that are not done
    unsigned devices = 0;
};
/// That of the process.
SharedOrder& shared_order();

/// A device as others reach it, until it ends.
struct LinkedDevice {
    explicit LinkedDevice(HostDevice& of) : device(&of) {}
    std::shared_mutex mutex;  // locked by others while they use it
    HostDevice* device;       // null: it has ended
};

/// While it lives, work of linked devices may write to memory; or, of a launch in several orders, which puts back what
/// it has found, nobody else may.
class TurnOfMemory {
public:
    TurnOfMemory(bool is_linked, bool is_alone);

private:
    std::shared_lock<std::shared_mutex> beside_;
    std::unique_lock<std::shared_mutex> alone_;
};

}  // namespace ikat::emulator
