// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/host/stream_order.hpp"

#include <algorithm>

#include "runtime/emulator/host/work_queue.hpp"

namespace ikat::emulator {

bool StreamClock::covers(StreamId stream, std::uint64_t number) const {
    if (number <= all_) return true;
    const auto found = std::ranges::lower_bound(streams_, stream, {}, &std::pair<StreamId, std::uint64_t>::first);
    return found != streams_.end() && found->first == stream && number <= found->second;
}

void StreamClock::learn(StreamId stream, std::uint64_t number) {
    if (number <= all_) return;
    const auto found = std::ranges::lower_bound(streams_, stream, {}, &std::pair<StreamId, std::uint64_t>::first);
    if (found != streams_.end() && found->first == stream)
        found->second = std::max(found->second, number);
    else
        streams_.emplace(found, stream, number);
}

void StreamClock::learn(std::uint64_t number) {
    all_ = std::max(all_, number);
    std::erase_if(streams_, [&](const auto& each) { return each.second <= all_; });
}

void StreamClock::join(const StreamClock& other) {
    learn(other.all_);
    for (const auto& [stream, number] : other.streams_) learn(stream, number);
}

KnownWork StreamOrder::add(const Piece& piece, bool waits_for_default) {
    if (streams_.size() + program_.size() > max_streams) forget_half();
    last_ = piece.number;
    const auto of_default = streams_.find(default_stream);
    const std::uint64_t last_of_default = of_default == streams_.end() ? 0 : of_default->second.last;
    Stream& its = streams_[piece.stream];
    if (its.first == 0) its.first = piece.number;
    its.waits_for_default = waits_for_default;
    const auto* const wait = std::get_if<work::Wait>(&piece.work);
    const auto awaited = wait ? events_.find(wait->event) : events_.end();
    const bool is_default = piece.stream == default_stream;
    const bool follows_default =
        !is_default && waits_for_default && of_default != streams_.end() && its.default_ != last_of_default;
    if (!its.known || its.waits != waits_ || is_default || follows_default || awaited != events_.end()) {
        StreamClock known = its.known ? *its.known : StreamClock();
        known.join(program_);
        const auto join = [&](StreamId stream, std::uint64_t number, const KnownWork& other) {
            known.learn(stream, number);
            if (other) known.join(*other);
        };
        if (is_default)
            for (const auto& [stream, each] : streams_)
                if (each.waits_for_default && stream != default_stream) join(stream, each.last, each.known);
        if (follows_default) join(default_stream, last_of_default, of_default->second.known);
        if (awaited != events_.end()) join(awaited->second.stream, awaited->second.number, awaited->second.known);
        its.known = std::make_shared<const StreamClock>(std::move(known));
        its.waits = waits_;
        its.default_ = last_of_default;
    }
    its.last = piece.number;
    if (const auto* const record = std::get_if<work::Record>(&piece.work))
        events_[record->event] = {piece.stream, piece.number, its.known};
    return its.known;
}

void StreamOrder::learn(StreamId stream, std::uint64_t number, const StreamClock& known) {
    program_.join(known);
    program_.learn(stream, number);
    ++waits_;
    forget_streams();
}

/// Those that the program knows all of. What is before the first piece that it does not know is one number then, so
/// that streams of the past have no entries.
void StreamOrder::forget_streams() {
    std::erase_if(streams_, [&](const auto& each) { return program_.covers(each.first, each.second.last); });
    std::uint64_t known = last_;
    for (const auto& [stream, its] : streams_) known = std::min(known, std::max(its.first - 1, program_.all()));
    program_.learn(known);
}

void StreamOrder::forget_half() {
    program_.learn(program_.all() + (last_ - program_.all()) / 2);
    ++waits_;
    forget_streams();
}

void StreamOrder::wait() {
    program_.learn(last_);
    ++waits_;
    streams_.clear();
}

void StreamOrder::wait(StreamId stream) {
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return;
    const Stream its = found->second;
    if (its.known) learn(stream, its.last, *its.known);
}

void StreamOrder::wait(EventId event) {
    const auto found = events_.find(event);
    if (found != events_.end()) learn(found->second.stream, found->second.number, *found->second.known);
}

}  // namespace ikat::emulator
