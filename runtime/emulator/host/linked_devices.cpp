// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/host/linked_devices.hpp"

#include <algorithm>
#include <vector>

#include "runtime/emulator/host/host_device.hpp"

namespace ikat::emulator {

unsigned SharedOrder::add_device() {
    const std::lock_guard lock(mutex);
    return ++devices;
}

void SharedOrder::end(unsigned device) {
    const std::lock_guard lock(mutex);
    known.end(device);
    races.end(device);
}

SharedOrder& shared_order() {
    static auto& its = *new SharedOrder;  // some devices end after all else
    return its;
}

namespace {

struct AllLinked {
    std::mutex mutex;
    std::vector<std::shared_ptr<LinkedDevice>> devices;  // in the order in which they were linked
    std::shared_mutex memory;                            // of TurnOfMemory
};
AllLinked& all_linked() {
    static auto& its = *new AllLinked;
    return its;
}

std::vector<std::shared_ptr<LinkedDevice>> linked_devices() {
    const std::lock_guard lock(all_linked().mutex);
    return all_linked().devices;
}

void add_linked(const std::shared_ptr<LinkedDevice>& device) {
    const std::lock_guard lock(all_linked().mutex);
    auto& devices = all_linked().devices;
    if (std::ranges::find(devices, device) == devices.end()) devices.push_back(device);
}

}  // namespace

TurnOfMemory::TurnOfMemory(bool is_linked, bool is_alone) {
    if (!is_linked) return;
    if (is_alone)
        alone_ = std::unique_lock(all_linked().memory);
    else
        beside_ = std::shared_lock(all_linked().memory);
}

void HostDevice::link(HostDevice& other) {
    if (&other == this) return;
    add_linked(self_), add_linked(other.self_);
    is_linked_ = other.is_linked_ = true;
}

void HostDevice::unlink() {
    {
        const std::lock_guard lock(all_linked().mutex);
        std::erase(all_linked().devices, self_);
    }
    const std::unique_lock nobody_uses_it(self_->mutex);
    self_->device = nullptr;
    shared_.end(number_);
}

void HostDevice::set_peer_access(HostDevice& other, bool is_enabled) {
    forbid_in_host_call();
    link(other);
    for (;;) {
        drain();
        const std::lock_guard lock(work_mutex_);
        if (!queue_.empty() || is_busy_) continue;  // another thread has enqueued something
        is_enabled ? memory_.space().see(other.memory_.space()) : memory_.space().hide(other.memory_.space());
        return;
    }
}

std::shared_ptr<const std::atomic<bool>> HostDevice::done(EventId event) {
    const std::lock_guard lock(work_mutex_);
    return queue_.done(event);
}

std::optional<std::uint64_t> HostDevice::next_number() const {
    const std::lock_guard lock(work_mutex_);
    return is_busy_ ? std::nullopt : queue_.next_number(Worker::Device);
}

bool HostDevice::step() {
    Lock lock(work_mutex_);
    return work_once(lock);
}

bool HostDevice::work_anywhere(Lock& lock) {
    if (!is_linked_) return work_once(lock);
    lock.unlock();
    struct Ready {
        std::shared_ptr<LinkedDevice> device;
        std::uint64_t number;
    };
    std::vector<Ready> ready;
    for (const std::shared_ptr<LinkedDevice>& each : linked_devices()) {
        const std::shared_lock lives(each->mutex);
        if (!each->device) continue;
        if (const auto number = each->device->next_number()) ready.push_back({each, *number});
    }
    std::ranges::sort(ready, {}, &Ready::number);
    lock.lock();
    if (ready.empty()) return false;
    const std::shared_ptr<LinkedDevice> its = ready[order_.pick(ready.size())].device;
    lock.unlock();
    bool has_worked = false;
    {
        const std::shared_lock lives(its->mutex);
        has_worked = its->device && its->device->step();
    }
    lock.lock();
    return has_worked;
}

void HostDevice::note_wait() {
    const std::lock_guard lock(shared_.mutex);
    shared_.known.wait(number_);
    if (shared_.pending == 0) shared_.races.forget(shared_.known.program());
}

void HostDevice::note_wait(StreamId stream) {
    const std::lock_guard lock(shared_.mutex);
    shared_.known.wait(StreamKey(number_, stream));
    if (shared_.pending == 0) shared_.races.forget(shared_.known.program());
}

void HostDevice::note_wait(EventId event) {
    const std::lock_guard lock(shared_.mutex);
    shared_.known.wait(event);
    if (shared_.pending == 0) shared_.races.forget(shared_.known.program());
}

}  // namespace ikat::emulator
