// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/host/work_queue.hpp"

#include "runtime/emulator/host/graphs/work_graph.hpp"

#include <algorithm>
#include <vector>

namespace ikat::emulator {

Worker worker_of(const Work& work) {
    const auto* const graph = std::get_if<work::Graph>(&work);
    const bool calls = graph ? graph->graph->calls_program : std::holds_alternative<work::HostCall>(work);
    return calls ? Worker::Host : Worker::Device;
}

std::size_t WorkOrder::pick(std::size_t count) {
    if (!seed_ || count == 1) return 0;
    // splitmix64: a step for each choice.
    std::uint64_t x = (std::uint64_t{*seed_} << 32) + ++choices_ * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (x ^ x >> 31) % count;
}

Piece& WorkQueue::add(StreamId stream, Work work, bool waits_for_default) {
    Waiting& its = streams_[stream];
    its.waits_for_default = waits_for_default;
    Piece& added = its.pieces.emplace_back(
        Piece{.number = ++*numbers_, .stream = stream, .work = std::move(work), .device = device_});
    ++size_;
    if (const auto* const record = std::get_if<work::Record>(&added.work)) {
        recordings_[record->event] = added.number;
        not_recorded_.insert(added.number);
    } else if (const auto* const wait = std::get_if<work::Wait>(&added.work)) {
        if (const auto found = recordings_.find(wait->event); found != recordings_.end()) added.awaited = found->second;
    }
    return added;
}

void WorkQueue::remove(const Piece& piece) {
    if (const auto* const record = std::get_if<work::Record>(&piece.work)) {
        const auto found = recordings_.find(record->event);
        if (found != recordings_.end() && found->second == piece.number) recordings_.erase(found);
        not_recorded_.erase(piece.number);
        if (const auto asked = asked_about_.find(piece.number); asked != asked_about_.end()) {
            *asked->second = true;
            asked_about_.erase(asked);
        }
    }
    const auto its = streams_.find(piece.stream);
    its->second.pieces.pop_front();  // the others of a stream wait for the first
    if (its->second.pieces.empty()) streams_.erase(its);
    --size_;
}

bool WorkQueue::can_begin(const Piece& piece, bool waits_for_default) const {
    if (piece.is_running || not_recorded_.contains(piece.awaited)) return false;
    if (const auto* const wait = std::get_if<work::Wait>(&piece.work); wait && wait->elsewhere && !*wait->elsewhere)
        return false;
    const auto is_before = [&](const auto& each) { return each.second.pieces.front().number < piece.number; };
    if (piece.stream == default_stream)
        return std::ranges::none_of(streams_,
                                    [&](const auto& each) { return each.second.waits_for_default && is_before(each); });
    const auto of_default = streams_.find(default_stream);
    return !waits_for_default || of_default == streams_.end() || !is_before(*of_default);
}

Piece* WorkQueue::next(Worker worker, WorkOrder& order) {
    std::vector<Piece*> ready;
    for (auto& [stream, its] : streams_) {
        Piece& piece = its.pieces.front();
        if (worker_of(piece.work) == worker && can_begin(piece, its.waits_for_default)) ready.push_back(&piece);
    }
    if (ready.empty()) return nullptr;
    std::ranges::sort(ready, {}, &Piece::number);
    return ready[order.pick(ready.size())];
}

Piece* WorkQueue::first(Worker worker) {
    for (auto& [stream, its] : streams_) {
        Piece& piece = its.pieces.front();
        if (worker_of(piece.work) == worker && (piece.is_running || can_begin(piece, its.waits_for_default)))
            return &piece;
    }
    return nullptr;
}

bool WorkQueue::has(StreamId stream, std::uint64_t number) const {
    const auto its = streams_.find(stream);
    return its != streams_.end() && its->second.pieces.front().number <= number &&
           its->second.pieces.back().number >= number;
}

bool WorkQueue::is_free(StreamId stream, bool waits_for_default) const {
    if (has(stream)) return false;
    if (stream == default_stream)
        return std::ranges::none_of(streams_, [](const auto& each) { return each.second.waits_for_default; });
    return !waits_for_default || !has(default_stream);
}

std::shared_ptr<const std::atomic<bool>> WorkQueue::done(EventId event) {
    const auto found = recordings_.find(event);
    if (found == recordings_.end()) return nullptr;
    std::shared_ptr<std::atomic<bool>>& its = asked_about_[found->second];
    if (!its) its = std::make_shared<std::atomic<bool>>(false);
    return its;
}

std::optional<std::uint64_t> WorkQueue::next_number(Worker worker) const {
    std::optional<std::uint64_t> lowest;
    for (const auto& [stream, its] : streams_) {
        const Piece& piece = its.pieces.front();
        if (worker_of(piece.work) == worker && can_begin(piece, its.waits_for_default))
            lowest = std::min(lowest.value_or(piece.number), piece.number);
    }
    return lowest;
}

bool WorkQueue::has(EventId event) const { return recordings_.contains(event); }

}  // namespace ikat::emulator
