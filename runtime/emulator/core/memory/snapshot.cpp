// SPDX-License-Identifier: Apache-2.0
// The contents of all buffers, kept and put back.
#include <algorithm>

#include "runtime/emulator/core/memory/memory.hpp"

namespace ikat::emulator {

Memory::State::Snapshot Memory::State::snapshot(const Snapshot& before) const {
    const std::lock_guard lock(mutex_);
    Snapshot out;
    for (const auto& [address, buffer] : buffers_) {
        if (buffer.freed) continue;
        const std::byte* const host = cell_of(address).host.load(std::memory_order_relaxed);
        const std::uint8_t* const bits = cell_of(address).written.load(std::memory_order_relaxed);
        const auto found = before.buffers.find(address);
        const Snapshot::Contents last = found == before.buffers.end() ? Snapshot::Contents{} : found->second;
        Snapshot::Contents& contents = out.buffers[address];
        contents.bytes = std::make_shared<SavedBytes>(std::span(host, buffer.bytes), last.bytes);
        if (bits)
            contents.written =
                std::make_shared<SavedBytes>(std::as_bytes(std::span(bits, (buffer.bytes + 7) / 8)), last.written);
    }
    return out;
}

bool Memory::State::restore(const Snapshot& snapshot) {
    const std::lock_guard lock(mutex_);
    const auto is_live = [&](const auto& each) {
        const auto found = buffers_.find(each.first);
        return found != buffers_.end() && !found->second.freed && found->second.bytes == each.second.bytes->size();
    };
    const auto live = std::ranges::count(buffers_, false, [](const auto& each) { return each.second.freed; });
    if (std::size_t(live) != snapshot.buffers.size() || !std::ranges::all_of(snapshot.buffers, is_live)) return false;
    for (const auto& [address, contents] : snapshot.buffers) {
        contents.bytes->restore({cell_of(address).host.load(std::memory_order_relaxed), contents.bytes->size()});
        std::uint8_t* const bits = cell_of(address).written.load(std::memory_order_relaxed);
        if (bits && contents.written)
            contents.written->restore(std::as_writable_bytes(std::span(bits, contents.written->size())));
    }
    return true;
}

}  // namespace ikat::emulator
