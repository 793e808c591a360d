// SPDX-License-Identifier: Apache-2.0
// How the work of a device is done.
#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/emulator/host/host_device.hpp"

namespace ikat::emulator {

void HostDevice::forbid_in_host_call() const {
    if (is_host_call())
        throw Error("a function that a stream calls waits for the device", "it must not use the device");
}

bool HostDevice::is_host_call() const {
    const std::lock_guard lock(work_mutex_);
    return std::this_thread::get_id() == host_calls_.get_id();
}

const Piece& HostDevice::add(StreamId stream, Work work) {
    const Piece& added = queue_.add(stream, std::move(work));
    if (worker_of(added.work) == Worker::Host && !host_calls_.joinable())
        host_calls_ = std::thread([this] { serve_host_calls(); });
    changed_.notify_all();
    return added;
}

void HostDevice::enqueue(StreamId stream, Work work) {
    const bool is_call = worker_of(work) == Worker::Host;
    if (!is_call) forbid_in_host_call();
    Lock lock(work_mutex_);
    const std::uint64_t number = add(stream, std::move(work)).number;
    if (!is_call) work_until(lock, [&] { return !queue_.has(number); });
}

void HostDevice::run(StreamId stream, Work work) {
    forbid_in_host_call();
    Lock lock(work_mutex_);
    const std::uint64_t number = add(stream, std::move(work)).number;
    awaited_.push_back({number, nullptr});
    work_until(lock, [&] { return !queue_.has(number); });
    const auto its = std::ranges::find(awaited_, number, &Awaited::number);
    const std::exception_ptr what = std::move(its->failure);
    awaited_.erase(its);
    if (what) std::rethrow_exception(what);
}

void HostDevice::finish(StreamId stream) {
    forbid_in_host_call();
    Lock lock(work_mutex_);
    work_until(lock, [&] { return !queue_.has(stream); });
    const auto failed = failures_.extract(stream);
    if (failed) std::rethrow_exception(failed.mapped());
}

void HostDevice::finish() {
    forbid_in_host_call();
    Lock lock(work_mutex_);
    work_until(lock, [&] { return queue_.empty(); });
    const auto failed = std::exchange(failures_, {});
    if (!failed.empty()) std::rethrow_exception(failed.begin()->second);
}

void HostDevice::end_grids(std::optional<StreamId> stream) {
    const std::lock_guard lock(work_mutex_);
    std::erase_if(grids_, [&](const auto& each) { return !stream || each.first == *stream; });
}

bool HostDevice::is_idle(StreamId stream) const {
    const std::lock_guard lock(work_mutex_);
    return !queue_.has(stream);
}

template <class Condition>
void HostDevice::work_until(Lock& lock, Condition is_met) {
    while (!is_met()) {
        Piece* const piece = is_busy_ ? nullptr : queue_.next(Worker::Device);
        if (!piece) {
            changed_.wait(lock);
            continue;
        }
        is_busy_ = true;
        perform(lock, *piece);
        is_busy_ = false;
    }
}

void HostDevice::serve_host_calls() {
    Lock lock(work_mutex_);
    for (;;) {
        if (Piece* const piece = queue_.next(Worker::Host))
            perform(lock, *piece);
        else if (is_ending_)
            return;
        else
            changed_.wait(lock);
    }
}

void HostDevice::perform(Lock& lock, Piece& piece) {
    piece.is_running = true;
    const std::shared_ptr<GridsInFlight> grids = grids_before(piece);
    lock.unlock();
    std::exception_ptr failure;
    try {
        std::visit(
            [&]<class W>(const W& work) {
                if constexpr (std::is_same_v<W, work::Launch>)
                    perform(work, *grids);
                else
                    perform(work);
            },
            piece.work);
    } catch (...) { failure = std::current_exception(); }
    lock.lock();
    if (const auto awaited = std::ranges::find(awaited_, piece.number, &Awaited::number); awaited != awaited_.end())
        awaited->failure = failure;
    else if (failure)
        failures_.try_emplace(piece.stream, failure);
    queue_.remove(piece);
    changed_.notify_all();
}

std::shared_ptr<GridsInFlight> HostDevice::grids_before(const Piece& piece) {
    const bool is_launch = std::holds_alternative<work::Launch>(piece.work);
    const bool is_event =
        std::holds_alternative<work::Record>(piece.work) || std::holds_alternative<work::Wait>(piece.work);
    // The default stream and others wait for each other.
    std::erase_if(grids_, [&](const auto& each) {
        const bool is_own = each.first == piece.stream;
        return is_own ? !is_launch && !is_event
                      : !is_event && (each.first == default_stream || piece.stream == default_stream);
    });
    if (!is_launch) return nullptr;
    std::shared_ptr<GridsInFlight>& its = grids_[piece.stream];
    if (!its) its = std::make_shared<GridsInFlight>();
    return its;
}

void HostDevice::perform(const work::Launch& asked, GridsInFlight& grids) {
    LoadedModule& module = *asked.module;
    {
        const std::lock_guard lock(objects_mutex_);
        const auto context = contexts_.find(asked.context);
        if (context != contexts_.end()) memory_.space().set_heap_bytes(context->second.heap_bytes);
    }
    module.use_shadows();
    emulator::Launch launch = asked.launch();
    launch.grids = &grids;
    if (!launch.begins_early) grids.clear();
    try {
        emulator::run(module.program(), launch, options_, module.origin());
    } catch (...) {
        grids.clear();
        throw;
    }
    grids.end(launch.begins_early);
}

void HostDevice::perform(const work::SetVariable& change) {
    change.module->program().set_variable(change.name, change.contents);
}

void HostDevice::copy_row(work::Place to, work::Place from, std::size_t bytes) {
    Memory& space = memory_.space();
    if (to.host && from.host) {
        std::memcpy(to.host, from.host, bytes);
    } else if (to.host) {
        space.read(from.device, {to.host, bytes});
        check_download(options_, origin_, space, from.device, bytes);
    } else if (from.host) {
        space.write(to.device, {from.host, bytes});
    } else {
        space.copy(to.device, from.device, bytes);
    }
}

void HostDevice::perform(const work::Copy& copy) {
    if (copy.bytes == 0) return;
    const auto at = [](work::Place first, work::Copy::Pitch pitch, std::size_t row, std::size_t plane) {
        return first.at(plane * pitch.plane + row * pitch.row);
    };
    for (std::size_t plane = 0; plane < copy.planes; ++plane)
        for (std::size_t row = 0; row < copy.rows; ++row)
            copy_row(at(copy.to, copy.to_pitch, row, plane), at(copy.from, copy.from_pitch, row, plane), copy.bytes);
}

void HostDevice::perform(const work::Fill& fill) {
    for (std::size_t row = 0; row < fill.rows; ++row)
        memory_.space().fill(fill.to + row * fill.pitch, fill.element, fill.count);
}

void HostDevice::perform(const work::Record& record) {
    const std::lock_guard lock(objects_mutex_);
    if (const auto found = events_.find(record.event); found != events_.end())
        found->second.time = std::chrono::steady_clock::now();
}

}  // namespace ikat::emulator
