// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/host/stream_order.hpp"

#include <algorithm>

#include "runtime/emulator/host/work_queue.hpp"

namespace ikat::emulator {

std::uint64_t StreamClock::all(unsigned device) const {
    const auto found = std::ranges::lower_bound(devices_, device, {}, &std::pair<unsigned, std::uint64_t>::first);
    return found != devices_.end() && found->first == device ? found->second : 0;
}

bool StreamClock::covers(StreamKey stream, std::uint64_t number) const {
    if (number <= all(stream.device)) return true;
    const auto found = std::ranges::lower_bound(streams_, stream, {}, &std::pair<StreamKey, std::uint64_t>::first);
    return found != streams_.end() && found->first == stream && number <= found->second;
}

void StreamClock::learn(StreamKey stream, std::uint64_t number) {
    if (number <= all(stream.device)) return;
    const auto found = std::ranges::lower_bound(streams_, stream, {}, &std::pair<StreamKey, std::uint64_t>::first);
    if (found != streams_.end() && found->first == stream)
        found->second = std::max(found->second, number);
    else
        streams_.emplace(found, stream, number);
}

void StreamClock::learn(std::uint64_t number, unsigned device) {
    if (number <= all(device)) return;
    const auto found = std::ranges::lower_bound(devices_, device, {}, &std::pair<unsigned, std::uint64_t>::first);
    if (found != devices_.end() && found->first == device)
        found->second = number;
    else
        devices_.emplace(found, device, number);
    std::erase_if(streams_, [&](const auto& each) { return each.first.device == device && each.second <= number; });
}

void StreamClock::join(const StreamClock& other) {
    for (const auto& [device, number] : other.devices_) learn(number, device);
    for (const auto& [stream, number] : other.streams_) learn(stream, number);
}

void StreamClock::forget(unsigned device) {
    std::erase_if(devices_, [&](const auto& each) { return each.first == device; });
    std::erase_if(streams_, [&](const auto& each) { return each.first.device == device; });
}

KnownWork StreamOrder::add(const Piece& piece, bool waits_for_default) {
    if (streams_.size() + program_.size() > max_streams) forget_half();
    last_[piece.device] = piece.number;
    const StreamKey own{piece.device, piece.stream}, default_one{piece.device, default_stream};
    const auto of_default = streams_.find(default_one);
    const std::uint64_t last_of_default = of_default == streams_.end() ? 0 : of_default->second.last;
    Stream& its = streams_[own];
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
        const auto join = [&](StreamKey stream, std::uint64_t number, const KnownWork& other) {
            known.learn(stream, number);
            if (other) known.join(*other);
        };
        if (is_default)
            for (const auto& [stream, each] : streams_)
                if (stream.device == piece.device && each.waits_for_default && stream != own)
                    join(stream, each.last, each.known);
        if (follows_default) join(default_one, last_of_default, of_default->second.known);
        if (awaited != events_.end()) join(awaited->second.stream, awaited->second.number, awaited->second.known);
        its.known = std::make_shared<const StreamClock>(std::move(known));
        its.waits = waits_;
        its.default_ = last_of_default;
    }
    its.last = piece.number;
    if (const auto* const record = std::get_if<work::Record>(&piece.work))
        events_.insert_or_assign(record->event, Point{own, piece.number, its.known});
    return its.known;
}

void StreamOrder::learn(StreamKey stream, std::uint64_t number, const StreamClock& known) {
    program_.join(known);
    program_.learn(stream, number);
    ++waits_;
    forget_streams();
}

/// Those that the program knows all of. What is before the first piece that it does not know is one number then, so
/// that streams of the past have no entries.
void StreamOrder::forget_streams() {
    std::erase_if(streams_, [&](const auto& each) { return program_.covers(each.first, each.second.last); });
    std::map<unsigned, std::uint64_t> known = last_;
    for (const auto& [stream, its] : streams_) {
        std::uint64_t& all = known[stream.device];
        all = std::min(all, std::max(its.first - 1, program_.all(stream.device)));
    }
    for (const auto& [device, all] : known) program_.learn(all, device);
}

void StreamOrder::forget_half() {
    for (const auto& [device, last] : last_) {
        const std::uint64_t all = program_.all(device);
        program_.learn(all + (last - all) / 2, device);
    }
    ++forgotten_;
    ++waits_;
    forget_streams();
}

void StreamOrder::wait(unsigned device) {
    for (const auto& [stream, each] : streams_)
        if (stream.device == device && each.known) program_.join(*each.known);
    const auto last = last_.find(device);
    program_.learn(last == last_.end() ? 0 : last->second, device);
    ++waits_;
    forget_streams();
}

void StreamOrder::wait(StreamKey stream) {
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return;
    const Stream its = found->second;
    if (its.known) learn(stream, its.last, *its.known);
}

void StreamOrder::wait(EventId event) {
    const auto found = events_.find(event);
    if (found == events_.end()) return;
    const Point its = found->second;
    learn(its.stream, its.number, *its.known);
}

void StreamOrder::end(unsigned device) {
    std::erase_if(streams_, [&](const auto& each) { return each.first.device == device; });
    std::erase_if(events_, [&](const auto& each) { return each.second.stream.device == device; });
    last_.erase(device);
    program_.forget(device);
}

}  // namespace ikat::emulator
