// SPDX-License-Identifier: Apache-2.0
#include "runtime/pool/pool_object.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "codegen/support/environment.hpp"

namespace ikat::runtime {

using pool::BlockId;
using pool::everybody;
using pool::QueueId;
using pool::Ticket;

PoolKind pool_kind(std::string_view asked) {
    const std::string_view name = asked.empty() ? environment("IKAT_POOL") : asked;
    if (name.empty()) return PoolKind::Own;
    const auto* const found = std::ranges::find(pool_kind_names, name);
    if (found == std::end(pool_kind_names))
        throw Error(
            fmt::format("there is no pool '{}'{}", name, asked.empty() ? " (from IKAT_POOL)" : ""),
            "the memory of queues comes from ikat's own pool (own), from the driver's (driver), or is allocated "
            "and freed each time (off)");
    return PoolKind(found - std::begin(pool_kind_names));
}

PoolObject::PoolObject(Reference<Backend> device, PoolKind kind)
    : device_(std::move(device)), kind_(kind), is_emulated_(device_->properties().kind == DeviceKind::Emulator) {}

PoolObject::~PoolObject() {
    for (const auto& [queue, events] : pending_)
        for (const Pending& each : events) device_->destroy_event(each.event);
    for (const EventHandle event : spare_events_) device_->destroy_event(event);
    if (!keeps_memory()) return;
    for (const std::uint64_t address : blocks_.segments()) device_->release(address);
}

// ---- allocation

PoolObject::Grant PoolObject::allocate(std::size_t bytes, std::string_view name, StreamHandle stream) {
    std::string refusal;
    if (const auto grant = attempt(bytes, name, stream, refusal)) return *grant;
    do {
        wait_for_released();
        if (const auto grant = attempt(bytes, name, stream, refusal)) return *grant;
        if (trim() == 0) continue;
        if (const auto grant = attempt(bytes, name, stream, refusal)) return *grant;
    } while (asks_program(bytes));
    throw out_of_memory(bytes, name, refusal);
}

std::optional<PoolObject::Grant> PoolObject::attempt(std::size_t bytes, std::string_view name, StreamHandle stream,
                                                     std::string& refusal) {
    if (kind_ != PoolKind::Own) return attempt_counted(bytes, name, stream, refusal);
    std::unique_lock lock(mutex_);
    const QueueId queue = queue_of(stream);
    std::optional<BlockId> block = take(bytes, queue);
    if (!block) block = grow_and_take(bytes, queue, refusal, lock);
    if (!block) return {};
    if (!is_emulated_) return Grant{blocks_.address(*block), bytes, *block};
    lock.unlock();
    try {
        return Grant{device_->allocate(bytes, name, stream), bytes, *block};
    } catch (const Error& error) {
        refusal = error.diagnostics().front().message;
        lock.lock();
        blocks_.give(*block, everybody);
        return {};
    }
}

/// What work of the stream has released may be taken at once; what other work has, when that is done.
std::optional<BlockId> PoolObject::take(std::size_t bytes, QueueId queue) {
    if (queue == everybody) poll();  // what a device has released is mostly there by now
    if (const auto block = blocks_.take(bytes, queue)) return block;
    if (pending_.empty()) return {};
    poll();
    return blocks_.take(bytes, queue);
}

/// The lock is open while the device is asked, which may wait for its work.
std::optional<BlockId> PoolObject::grow_and_take(std::size_t bytes, QueueId queue, std::string& refusal,
                                                 std::unique_lock<std::mutex>& lock) {
    refusal.clear();
    if (bytes > pool::most_bytes) return {};
    const std::uint64_t segment = pool::segment_bytes(bytes), reserved = blocks_.reserved() + growing_;
    if (reserved > limit_ || segment > limit_ - reserved) return {};
    std::uint64_t address = next_address_;
    if (is_emulated_) {
        next_address_ += segment;
    } else {
        growing_ += segment;
        lock.unlock();
        try {
            address = device_->allocate(segment, "memory pool");
        } catch (const Error& error) {
            lock.lock();
            growing_ -= segment;
            if (dynamic_cast<const KernelError*>(&error)) throw;
            refusal = error.diagnostics().front().message;
            return {};
        }
        lock.lock();
        growing_ -= segment;
    }
    blocks_.add_segment(address, segment);
    return blocks_.take(bytes, queue);
}

/// Without a pool of ours.
std::optional<PoolObject::Grant> PoolObject::attempt_counted(std::size_t bytes, std::string_view name,
                                                             StreamHandle stream, std::string& refusal) {
    {
        const std::lock_guard lock(mutex_);
        refusal.clear();
        if (used_ > limit_ || bytes > limit_ - used_) return {};
        used_ += bytes;
    }
    std::optional<Grant> out;
    try {
        const bool is_at_once = kind_ == PoolKind::Off && !is_emulated_;
        out = {is_at_once ? device_->allocate(bytes, name) : device_->allocate(bytes, name, stream), bytes};
    } catch (const Error& error) {
        const std::lock_guard lock(mutex_);
        used_ -= bytes;
        if (dynamic_cast<const KernelError*>(&error)) throw;
        refusal = error.diagnostics().front().message;
        return {};
    }
    const std::lock_guard lock(mutex_);
    peak_used_ = std::max(peak_used_, used_);
    return out;
}

/// Makes what streams have released free for all. On the emulator the device is not waited for: that would order the
/// work of its streams, and so hide that the program does not.
void PoolObject::wait_for_released() {
    const Ticket before = last_ticket();
    if (keeps_memory()) device_->synchronize(default_stream);
    reached(default_stream, before);
}

bool PoolObject::asks_program(std::uint64_t bytes) {
    Reference<const OutOfMemoryFunction> function;
    {
        const std::lock_guard lock(mutex_);
        function = function_;
    }
    return function && (*function)(bytes);
}

Error PoolObject::out_of_memory(std::size_t bytes, std::string_view name, const std::string& refusal) const {
    const PoolReport has = report();
    const std::string limit = has.limit == no_limit ? "has no limit" : fmt::format("may have {}", has.limit);
    Diagnostic out{
        .message = fmt::format("no memory for the {} bytes of buffer '{}': the pool uses {} of {} bytes, its "
                               "largest free block has {}, and it {}",
                               bytes, name, has.used, has.reserved, has.largest_free, limit),
        .hint = refusal.empty() ? "free buffers, or raise the limit with device.pool().set_limit()"
                                : "free buffers: device.pool().on_out_of_memory() calls a function that does"};
    if (!refusal.empty()) out.notes.push_back({.message = refusal});
    return Error(std::move(out));
}

// ---- release

void PoolObject::release(const Grant& grant, StreamHandle stream) noexcept {
    if (kind_ != PoolKind::Own) return release_counted(grant, stream);
    {
        const std::lock_guard lock(mutex_);
        const bool is_of_device = stream == default_stream;
        // Memory of the device's own queue is used by any stream: an event of its own stream is behind all of them.
        const QueueId queue = !is_of_device ? queue_of(stream) : is_emulated_ ? everybody : released_by_device_;
        const Ticket ticket = blocks_.give(grant.block, queue);
        if (!is_emulated_) record(queue, stream, ticket);
    }
    if (is_emulated_) device_->release(grant.address, stream);
}

void PoolObject::release(const Grant& grant) noexcept {
    if (kind_ != PoolKind::Own) return release_counted(grant, {});
    bool is_done = true;
    if (is_emulated_) {
        device_->release(grant.address);
    } else {
        try {
            device_->synchronize(default_stream);
        } catch (...) { is_done = false; }  // it is for nobody until somebody has waited for the device
    }
    const std::lock_guard lock(mutex_);
    blocks_.give(grant.block, is_done ? everybody : released_by_device_);
}

void PoolObject::release_counted(const Grant& grant, std::optional<StreamHandle> stream) noexcept {
    const bool is_at_once = kind_ == PoolKind::Off && !is_emulated_;
    if (kind_ == PoolKind::Driver && !stream && !is_emulated_) {
        try {
            device_->synchronize(default_stream);  // the driver does not wait for what uses memory of its pool
        } catch (...) {}                           // who waits for the device is told
    }
    is_at_once || !stream ? device_->release(grant.address) : device_->release(grant.address, *stream);
    const std::lock_guard lock(mutex_);
    used_ -= grant.bytes;
}

// ---- which work is done

QueueId PoolObject::queue_of(StreamHandle stream) {
    if (stream == default_stream) return everybody;
    const auto [found, is_new] = streams_.try_emplace(stream);
    if (is_new) found->second = blocks_.add_queue();
    return found->second;
}

void PoolObject::end(StreamHandle stream) {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return;
    blocks_.end_queue(found->second);
    streams_.erase(found);
}

/// Where a device refuses, the memory stays with the queue until the program has waited for it.
void PoolObject::record(QueueId queue, StreamHandle stream, Ticket ticket) noexcept {
    try {
        std::deque<Pending>& events = pending_[queue];
        if (events.size() == most_pending) {
            device_->record(events.back().event, stream);
            events.back().ticket = ticket;
            return;
        }
        if (spare_events_.empty()) spare_events_.push_back(device_->create_event());
        device_->record(spare_events_.back(), stream);
        events.push_back({ticket, spare_events_.back()});
        spare_events_.pop_back();
    } catch (const Error&) {}
}

/// Asks for each queue how far it is.
void PoolObject::poll() {
    for (auto& [queue, events] : pending_) {
        std::optional<Ticket> last;
        while (!events.empty() && device_->query(events.front().event)) {
            last = events.front().ticket;
            forget(events, *last);
        }
        if (last) blocks_.reached(queue, *last);
    }
    std::erase_if(pending_, [](const auto& of) { return of.second.empty(); });
}

void PoolObject::forget(std::deque<Pending>& events, Ticket ticket) {
    while (!events.empty() && events.front().ticket <= ticket) {
        spare_events_.push_back(events.front().event);
        events.pop_front();
    }
}

Ticket PoolObject::last_ticket() const {
    const std::lock_guard lock(mutex_);
    return blocks_.last_ticket();
}

void PoolObject::reached(StreamHandle stream, Ticket ticket) {
    const std::lock_guard lock(mutex_);
    if (stream == default_stream) {  // the whole device
        for (auto& [queue, events] : pending_) forget(events, ticket);
        blocks_.reached(ticket);
    } else if (const auto found = streams_.find(stream); found != streams_.end()) {
        if (const auto events = pending_.find(found->second); events != pending_.end()) forget(events->second, ticket);
        blocks_.reached(found->second, ticket);
    }
}

void PoolObject::synchronize(StreamHandle stream) {
    const Ticket before = last_ticket();
    device_->synchronize(stream);
    reached(stream, before);
}

bool PoolObject::query(StreamHandle stream) {
    const Ticket before = last_ticket();
    const bool is_done = device_->query(stream);
    if (is_done) reached(stream, before);
    return is_done;
}

// ---- what the program asks for

PoolReport PoolObject::report() const {
    const std::lock_guard lock(mutex_);
    PoolReport out = kind_ == PoolKind::Own ? blocks_.report()
                                            : PoolReport{.used = used_, .reserved = used_, .peak_used = peak_used_};
    out.limit = limit_;
    out.kind = pool_kind_names[std::size_t(kind_)];
    return out;
}

void PoolObject::set_limit(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    limit_ = bytes;
}

void PoolObject::ask(Reference<const OutOfMemoryFunction> function) {
    const std::lock_guard lock(mutex_);
    function_ = std::move(function);
}

std::uint64_t PoolObject::trim() {
    std::vector<std::uint64_t> segments;
    std::uint64_t bytes = 0;
    {
        const std::lock_guard lock(mutex_);
        poll();
        bytes = blocks_.reserved();
        segments = blocks_.trim();
        bytes -= blocks_.reserved();
    }
    if (keeps_memory())
        for (const std::uint64_t address : segments) device_->release(address);
    return bytes;
}

// ---- the handle

const Reference<PoolObject>& Pool::object() const {
    if (!object_) throw Error(moved_from, moved_from_hint);
    return object_;
}
PoolReport Pool::report() const { return object()->report(); }
void Pool::set_limit(std::uint64_t bytes) { object()->set_limit(bytes); }
std::uint64_t Pool::trim() { return object()->trim(); }
void Pool::ask(Reference<const OutOfMemoryFunction> function) { object()->ask(std::move(function)); }

}  // namespace ikat::runtime
