// SPDX-License-Identifier: Apache-2.0
// The contents of all buffers, kept and put back.
#include <algorithm>

#include "runtime/emulator/core/memory/memory.hpp"

namespace ikat::emulator {

void Memory::State::add_own(Snapshot& to, const Snapshot& before) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [address, buffer] : buffers_) {
        if (buffer.freed) continue;
        const std::byte* const host = cell_of(address).host.load(std::memory_order_relaxed);
        const std::uint8_t* const bits = cell_of(address).written.load(std::memory_order_relaxed);
        const auto found = before.buffers.find(address);
        const Snapshot::Contents last = found == before.buffers.end() ? Snapshot::Contents{} : found->second;
        Snapshot::Contents& contents = to.buffers[address];
        contents.bytes = std::make_shared<SavedBytes>(std::span(host, buffer.bytes), last.bytes);
        if (bits)
            contents.written =
                std::make_shared<SavedBytes>(std::as_bytes(std::span(bits, (buffer.bytes + 7) / 8)), last.written);
    }
}

Memory::State::Snapshot Memory::State::snapshot(const Snapshot& before) const {
    Snapshot out;
    for (const std::shared_ptr<State>& each : seen()) each->add_own(out, before);
    return out;
}

bool Memory::State::restore(const Snapshot& snapshot) {
    std::vector<std::shared_ptr<State>> all = seen();
    std::ranges::sort(all);  // the same order wherever some are locked together
    std::vector<std::unique_lock<std::mutex>> locks;
    for (const std::shared_ptr<State>& each : all) locks.emplace_back(each->mutex_);
    std::size_t live = 0, found = 0;
    for (const std::shared_ptr<State>& each : all)
        for (const auto& [address, buffer] : each->buffers_) {
            if (buffer.freed) continue;
            const auto its = snapshot.buffers.find(address);
            ++live, found += its != snapshot.buffers.end() && its->second.bytes->size() == buffer.bytes;
        }
    if (live != found || found != snapshot.buffers.size()) return false;
    for (const auto& [address, contents] : snapshot.buffers) {
        contents.bytes->restore({cell_of(address).host.load(std::memory_order_relaxed), contents.bytes->size()});
        std::uint8_t* const bits = cell_of(address).written.load(std::memory_order_relaxed);
        if (bits && contents.written)
            contents.written->restore(std::as_writable_bytes(std::span(bits, contents.written->size())));
    }
    return true;
}

}  // namespace ikat::emulator
