// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/host/owned_memory.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <iterator>

#include "codegen/support/diagnostic.hpp"

namespace ikat::emulator {

void OwnedMemory::check_room(std::size_t bytes, std::string_view name) const {
    if (bytes > limit_ - used_)
        throw Error(fmt::format("no device memory for the {} bytes of buffer '{}'", bytes, name),
                    fmt::format("{} of {} bytes are in use", used_, limit_));
}

std::uint64_t OwnedMemory::add(Allocation allocation, std::string_view name) {
    const std::lock_guard lock(mutex_);
    check_room(allocation.bytes, name);
    const std::uint64_t address = allocation.is_managed ? space_.allocate_mapped(allocation.bytes, name)
                                                        : space_.allocate(allocation.bytes, name);
    allocations_.emplace(address, allocation);
    used_ += allocation.bytes;
    return address;
}

std::uint64_t OwnedMemory::allocate(ContextId context, std::size_t bytes, std::string_view name) {
    return add({.context = context, .bytes = bytes}, name);
}

std::uint64_t OwnedMemory::allocate_managed(ContextId context, std::size_t bytes) {
    return add({.context = context, .bytes = bytes, .is_managed = true}, {});
}

void OwnedMemory::release(std::map<std::uint64_t, Allocation>::iterator allocation) {
    used_ -= allocation->second.bytes;
    space_.release(allocation->first);
    allocations_.erase(allocation);
}

bool OwnedMemory::release(std::uint64_t address) {
    const std::lock_guard lock(mutex_);
    const auto found = allocations_.find(address);
    if (found == allocations_.end()) return false;
    release(found);
    return true;
}

std::uint64_t OwnedMemory::reserve(ContextId context, std::size_t bytes, std::string_view name) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t address = space_.reserve(bytes, name);
    reserved_.emplace(address, Allocation{.context = context, .bytes = bytes});
    return address;
}

void OwnedMemory::begin(std::uint64_t address) {
    const std::lock_guard lock(mutex_);
    const auto its = reserved_.find(address);
    if (its == reserved_.end() || allocations_.contains(address)) return;
    check_room(its->second.bytes, {});
    space_.begin(address);
    allocations_.emplace(*its);
    used_ += its->second.bytes;
}

void OwnedMemory::give_back(std::uint64_t address) {
    const std::lock_guard lock(mutex_);
    if (reserved_.erase(address) == 0) return;
    space_.give_back(address);
}

std::uint64_t OwnedMemory::used_bytes() const {
    const std::lock_guard lock(mutex_);
    return used_;
}

std::uint64_t OwnedMemory::allocate_pinned(ContextId context, std::size_t bytes, unsigned flags) {
    const std::uint64_t address = space_.allocate_mapped(bytes, "page-locked memory");
    const std::lock_guard lock(mutex_);
    pinned_[address] = {.context = context, .begin = address, .bytes = bytes, .flags = flags, .device = address};
    return address;
}

bool OwnedMemory::register_pinned(ContextId context, void* begin, std::size_t bytes, unsigned flags) {
    const auto first = reinterpret_cast<std::uintptr_t>(begin);
    const std::lock_guard lock(mutex_);
    const auto next = pinned_.lower_bound(first);
    if (pinned_around(first) || (next != pinned_.end() && next->first - first < bytes)) return false;
    const std::uintptr_t offset = first % std::uintptr_t(sysconf(_SC_PAGESIZE));  // whole pages are reachable
    void* const page = reinterpret_cast<void*>(first - offset);
    const std::uint64_t device = space_.adopt(page, offset + bytes, "registered memory") + offset;
    pinned_[first] = {
        .context = context, .begin = first, .bytes = bytes, .flags = flags, .is_registered = true, .device = device};
    return true;
}

void OwnedMemory::release(const PinnedRange& range) {
    space_.release(range.is_registered ? space_.buffer_of(range.device).address : range.device);
}

bool OwnedMemory::release_pinned(const void* begin, bool is_registered) {
    const std::lock_guard lock(mutex_);
    const auto found = pinned_.find(reinterpret_cast<std::uintptr_t>(begin));
    if (found == pinned_.end() || found->second.is_registered != is_registered) return false;
    release(found->second);
    pinned_.erase(found);
    return true;
}

std::optional<PinnedRange> OwnedMemory::pinned_around(std::uintptr_t address) const {
    const auto next = pinned_.upper_bound(address);
    if (next == pinned_.begin()) return {};
    const PinnedRange& range = std::prev(next)->second;
    return address - range.begin < range.bytes ? std::optional(range) : std::nullopt;
}

std::optional<PinnedRange> OwnedMemory::pinned(std::uintptr_t address) const {
    const std::lock_guard lock(mutex_);
    return pinned_around(address);
}

OwnedMemory::Buffer OwnedMemory::buffer(std::uint64_t address) const {
    const auto [begin, bytes] = space_.buffer_of(address);
    const std::lock_guard lock(mutex_);
    const auto found = allocations_.find(begin);
    if (found == allocations_.end()) return {begin, bytes};
    return {begin, bytes, found->second.context, found->second.is_managed};
}

void OwnedMemory::end(ContextId context) {
    const std::lock_guard lock(mutex_);
    for (auto it = allocations_.begin(); it != allocations_.end();)
        if (const auto its = it++; its->second.context == context) release(its);
    std::erase_if(reserved_, [&](const auto& each) {
        const bool is_its = each.second.context == context;
        if (is_its) space_.give_back(each.first);
        return is_its;
    });
    std::erase_if(pinned_, [&](const auto& each) {
        if (each.second.context != context) return false;
        release(each.second);
        return true;
    });
}

}  // namespace ikat::emulator
