// SPDX-License-Identifier: Apache-2.0
// What a device has.
#include "runtime/emulator/host/host_device.hpp"

#include <fmt/format.h>

#include <utility>

#include "codegen/support/notes.hpp"
#include "runtime/emulator/core/memory/memory.hpp"
#include "runtime/emulator/host/trace.hpp"

namespace ikat::emulator {

HostDevice::HostDevice(HostOptions options, Origin origin, std::uint64_t memory_bytes)
    : memory_(memory_bytes, options.name),
      options_(std::move(options)),
      origin_(origin),
      order_(options_.by_number   ? std::optional<std::uint32_t>(1)
             : options_.seed != 0 ? std::optional(options_.seed)
                                  : std::nullopt),
      about_races_(action_about(FaultCode::StreamRace, options_, origin)),
      traced_as_(options_.trace ? options_.trace->add_device() : 0) {
    primary_ = ContextId(new_id());
    contexts_[primary_];
}

HostDevice::~HostDevice() {
    drain();
    unlink();
    {
        const std::lock_guard lock(work_mutex_);
        is_ending_ = true;
        changed_.notify_all();
        first_added_.notify_all();
    }
    if (host_calls_.joinable()) host_calls_.join();
    if (idle_.joinable()) idle_.join();
    for (const auto& [stream, failure] : failures_) {
        try {
            std::rethrow_exception(failure);
        } catch (const std::exception& error) {
            note(fmt::format("the work of a stream failed, and nothing has waited for it:\n{}\n", error.what()));
        }
    }
}

std::uint64_t HostDevice::new_id() {
    static std::atomic<std::uint64_t> last = 0x10000;
    return last += 16;
}

void HostDevice::begin(Context& context) { context = {.is_alive = true, .heap_bytes = default_heap_bytes}; }

ContextId HostDevice::create_context() {
    const auto id = ContextId(new_id());
    const std::lock_guard lock(objects_mutex_);
    begin(contexts_[id]);
    return id;
}

void HostDevice::retain_primary() {
    const std::lock_guard lock(objects_mutex_);
    Context& primary = contexts_.at(primary_);
    if (!primary.is_alive) begin(primary);
    ++primary.users;
}

bool HostDevice::release_primary() {
    {
        const std::lock_guard lock(objects_mutex_);
        Context& primary = contexts_.at(primary_);
        if (primary.users == 0) return false;
        if (--primary.users > 0) return true;
    }
    end(primary_);
    return true;
}

unsigned HostDevice::primary_users() const {
    const std::lock_guard lock(objects_mutex_);
    return contexts_.at(primary_).users;
}

void HostDevice::end(ContextId context) {
    drain();
    std::vector<std::shared_ptr<LoadedModule>> ended;  // they end without the lock
    std::vector<StreamId> streams;
    std::unique_lock lock(objects_mutex_);
    const auto belongs = [&](const auto& each) { return each.second.context == context; };
    std::erase_if(modules_, [&](auto& each) {
        if (each.second->context() != context) return false;
        ended.push_back(std::move(each.second));
        return true;
    });
    for (const auto& [id, stream] : streams_)
        if (stream.context == context) streams.push_back(id);
    std::erase_if(streams_, belongs);
    std::erase_if(events_, belongs);
    memory_.end(context);
    contexts_.at(context) = {};
    lock.unlock();
    for (const StreamId stream : streams) forget_failures(stream);
}

bool HostDevice::is_alive(ContextId context) const {
    const std::lock_guard lock(objects_mutex_);
    const auto found = contexts_.find(context);
    return found != contexts_.end() && found->second.is_alive;
}

void HostDevice::set_heap_bytes(ContextId context, std::size_t bytes) {
    const std::lock_guard lock(objects_mutex_);
    contexts_.at(context).heap_bytes = bytes;
}

ModuleId HostDevice::load(std::optional<ContextId> context, ModuleText text) {
    auto loaded = std::make_shared<LoadedModule>(std::move(text), memory_.space(), context);
    const auto id = ModuleId(new_id());
    const std::lock_guard lock(objects_mutex_);
    modules_.emplace(id, std::move(loaded));
    return id;
}

std::shared_ptr<LoadedModule> HostDevice::find(ModuleId module) const {
    const std::lock_guard lock(objects_mutex_);
    const auto found = modules_.find(module);
    return found == modules_.end() ? nullptr : found->second;
}

void HostDevice::unload(ModuleId module) {
    std::shared_ptr<LoadedModule> ended;  // without the lock
    const std::lock_guard lock(objects_mutex_);
    if (const auto found = modules_.find(module); found != modules_.end()) {
        ended = std::move(found->second);
        modules_.erase(found);
    }
}

HostDevice::Entries HostDevice::entries() const {
    Entries out;
    {
        const std::lock_guard lock(objects_mutex_);
        out.objects = modules_.size() + streams_.size() + events_.size();
    }
    const std::lock_guard lock(work_mutex_);
    out.work = queue_.size(), out.streams = grids_.size() + failures_.size();
    const std::lock_guard shared(shared_.mutex);
    out.known = shared_.known.size(), out.ranges = shared_.races.size();
    return out;
}

template <class Id, class Object>
std::optional<Object> HostDevice::copy_of(const std::map<Id, Object>& objects, Id id) {
    const auto found = objects.find(id);
    return found == objects.end() ? std::nullopt : std::optional(found->second);
}

StreamId HostDevice::create_stream(Stream stream) {
    const auto id = StreamId(new_id());
    const std::lock_guard lock(objects_mutex_);
    stream.number = ++last_stream_;
    streams_.emplace(id, stream);
    return id;
}

std::optional<Stream> HostDevice::find(StreamId stream) const {
    const std::lock_guard lock(objects_mutex_);
    return copy_of(streams_, stream);
}

void HostDevice::forget_failures(StreamId stream) {
    const std::lock_guard lock(work_mutex_);
    failures_.erase(stream);
}

bool HostDevice::destroy(StreamId stream) {
    {
        const std::lock_guard lock(objects_mutex_);
        if (streams_.erase(stream) == 0) return false;
    }
    const std::lock_guard lock(work_mutex_);
    forget_grids_of_ended(stream);
    return true;
}

EventId HostDevice::create_event(Event event) {
    const auto id = EventId(new_id());
    const std::lock_guard lock(objects_mutex_);
    events_.emplace(id, event);
    return id;
}

std::optional<Event> HostDevice::find(EventId event) const {
    const std::lock_guard lock(objects_mutex_);
    return copy_of(events_, event);
}

bool HostDevice::destroy(EventId event) {
    {
        const std::lock_guard lock(shared_.mutex);
        shared_.known.forget(event);
    }
    const std::lock_guard lock(objects_mutex_);
    return events_.erase(event) > 0;
}

}  // namespace ikat::emulator
