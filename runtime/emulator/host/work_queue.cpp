// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/host/work_queue.hpp"

#include <algorithm>

namespace ikat::emulator {

Worker worker_of(const Work& work) {
    return std::holds_alternative<work::HostCall>(work) ? Worker::Host : Worker::Device;
}

bool waits_for(const Piece& later, const Piece& earlier) {
    if (later.stream == earlier.stream) return true;
    const auto* const wait = std::get_if<work::Wait>(&later.work);
    const auto* const record = std::get_if<work::Record>(&earlier.work);
    return wait && record && wait->event == record->event;
}

const Piece& WorkQueue::add(StreamId stream, Work work) {
    return pieces_.emplace_back(Piece{.number = ++last_, .stream = stream, .work = std::move(work)});
}

void WorkQueue::remove(const Piece& piece) {
    pieces_.remove_if([&](const Piece& each) { return &each == &piece; });
}

Piece* WorkQueue::next(Worker worker) {
    for (auto piece = pieces_.begin(); piece != pieces_.end(); ++piece) {
        if (piece->is_running || worker_of(piece->work) != worker) continue;
        const auto is_before = [&](const Piece& earlier) { return waits_for(*piece, earlier); };
        if (std::none_of(pieces_.begin(), piece, is_before)) return &*piece;
    }
    return nullptr;
}

bool WorkQueue::has(std::uint64_t number) const {
    return std::ranges::find(pieces_, number, &Piece::number) != pieces_.end();
}

bool WorkQueue::has(StreamId stream) const {
    return std::ranges::find(pieces_, stream, &Piece::stream) != pieces_.end();
}

}  // namespace ikat::emulator
