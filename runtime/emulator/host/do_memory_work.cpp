// SPDX-License-Identifier: Apache-2.0
// How copies, fills and the like are done.
#include <cstring>
#include <deque>

#include "runtime/emulator/core/memory/memory.hpp"
#include "runtime/emulator/host/host_device.hpp"

namespace ikat::emulator {

void HostDevice::perform(const work::SetVariable& change) {
    change.module->program().set_variable(change.name, change.contents);
}

void HostDevice::copy_row(const work::Copy& copy, work::Place to, work::Place from) {
    Memory::State& own = memory_.space().state();
    Memory::State &target = copy.to_elsewhere ? *copy.to_elsewhere : own,
                  &source = copy.from_elsewhere ? *copy.from_elsewhere : own;
    const std::size_t bytes = copy.bytes;
    if (to.host && from.host) {
        std::memcpy(to.host, from.host, bytes);
    } else if (to.host) {
        std::memcpy(to.host, source.range(from.device, bytes, "a copy from the device", false).begin, bytes);
        check_download(options_, origin_, source, from.device, bytes);
    } else if (from.host) {
        std::memcpy(target.range(to.device, bytes, "a copy to the device", true).begin, from.host, bytes);
        target.note_written(to.device, bytes);
    } else {
        Memory::copy(target, to.device, source, from.device, bytes);
    }
}

void HostDevice::perform(const work::Copy& copy) {
    if (copy.bytes == 0) return;
    std::deque<Memory::State::Kept> kept;  // of others nobody releases it meanwhile
    for (const auto& elsewhere : {copy.to_elsewhere, copy.from_elsewhere})
        if (elsewhere) kept.emplace_back(elsewhere);
    const auto at = [](work::Place first, work::Copy::Pitch pitch, std::size_t row, std::size_t plane) {
        return first.at(plane * pitch.plane + row * pitch.row);
    };
    for (std::size_t plane = 0; plane < copy.planes; ++plane)
        for (std::size_t row = 0; row < copy.rows; ++row)
            copy_row(copy, at(copy.to, copy.to_pitch, row, plane), at(copy.from, copy.from_pitch, row, plane));
}

void HostDevice::perform(const work::Renew& memory) {
    if (memory.bytes > 0) memory_.space().renew(memory.address);
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
