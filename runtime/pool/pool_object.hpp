// SPDX-License-Identifier: Apache-2.0
// A pool of a device: its blocks (blocks.hpp), the segments that the device has given for them, and events that tell
// which work is done. On the emulator each allocation is a buffer of its own, so that all checks see it; there the pool
// only does the bookkeeping.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/backend.hpp"
#include "runtime/pool/blocks.hpp"
#include "runtime/pool/pool.hpp"

namespace ikat::runtime {

/// Who has the free memory: ikat, the driver, or nobody.
enum class PoolKind : std::uint8_t { Own, Driver, Off };
inline constexpr std::string_view pool_kind_names[] = {"own", "driver", "off"};

/// What `asked` names, else IKAT_POOL, else Own. Throws Error for another name.
PoolKind pool_kind(std::string_view asked);

class PoolObject final : public Counted {
public:
    PoolObject(Reference<Backend> device, PoolKind kind);
    /// All that was allocated has been released.
    ~PoolObject() override;

    struct Grant {
        std::uint64_t address = 0, bytes = 0;
        pool::BlockId block{};
    };
    /// At a point of a stream: for work after it. Throws Error if there is not enough memory.
    Grant allocate(std::size_t bytes, std::string_view name, StreamHandle stream);
    /// For work after that point of the stream, and for all when the work before it is done.
    void release(const Grant& grant, StreamHandle stream) noexcept;
    /// For all work from now on: waits for the device.
    void release(const Grant& grant) noexcept;

    /// Backend::synchronize() and query(), after which what the stream has released is for all.
    void synchronize(StreamHandle stream);
    bool query(StreamHandle stream);
    /// The stream will be destroyed, and another one may get its handle.
    void end(StreamHandle stream);

    PoolReport report() const;
    void set_limit(std::uint64_t bytes);
    std::uint64_t trim();
    void ask(Reference<const OutOfMemoryFunction> function);

    const Reference<Backend>& device() const { return device_; }

private:
    /// An event that was recorded behind the release of a ticket, and those before it.
    struct Pending {
        pool::Ticket ticket{};
        EventHandle event{};
    };
    /// A queue that releases more often before its work is done has its last event recorded again, later.
    static constexpr std::size_t most_pending = 64;

    bool keeps_memory() const { return kind_ == PoolKind::Own && !is_emulated_; }
    std::optional<Grant> attempt(std::size_t bytes, std::string_view name, StreamHandle stream, std::string& refusal);
    std::optional<Grant> attempt_counted(std::size_t bytes, std::string_view name, StreamHandle stream,
                                         std::string& refusal);
    std::optional<pool::BlockId> take(std::size_t bytes, pool::QueueId queue);
    std::optional<pool::BlockId> grow_and_take(std::size_t bytes, pool::QueueId queue, std::string& refusal,
                                               std::unique_lock<std::mutex>& lock);
    void release_counted(const Grant& grant, std::optional<StreamHandle> stream) noexcept;
    pool::QueueId queue_of(StreamHandle stream);
    void record(pool::QueueId queue, StreamHandle stream, pool::Ticket ticket) noexcept;
    void poll();
    pool::Ticket last_ticket() const;
    void reached(StreamHandle stream, pool::Ticket ticket);
    void forget(std::deque<Pending>& events, pool::Ticket ticket);
    void wait_for_released();
    bool asks_program(std::uint64_t bytes);
    Error out_of_memory(std::size_t bytes, std::string_view name, const std::string& refusal) const;

    const Reference<Backend> device_;
    const PoolKind kind_;
    const bool is_emulated_;

    mutable std::mutex mutex_;  // locked for the following; never while the program's function runs, or for a wait
    pool::Blocks blocks_;
    std::map<StreamHandle, pool::QueueId> streams_;  // that have allocated or released something
    const pool::QueueId released_by_device_ = blocks_.add_queue();
    std::map<pool::QueueId, std::deque<Pending>> pending_;
    std::vector<EventHandle> spare_events_;
    std::uint64_t growing_ = 0;                        // bytes of segments that threads are asking the device for
    std::uint64_t next_address_ = pool::segment_step;  // of a segment without memory
    std::uint64_t limit_ = no_limit;
    std::uint64_t used_ = 0, peak_used_ = 0;  // without blocks: bytes as they were asked for
    Reference<const OutOfMemoryFunction> function_;
};

}  // namespace ikat::runtime
