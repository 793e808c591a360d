// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/host/stream_races.hpp"

#include <algorithm>
#include <iterator>

namespace ikat::emulator {

std::size_t StreamRaces::Record::size() const {
    return 1 + touched.read.entries() + touched.written.entries() + touched.strong.entries();
}

std::optional<StreamRaces::Race> StreamRaces::compare(const Record& before, const Record& now) const {
    enum Access { Reads, Writes, Changes };
    const auto of = [](const Record& record, Access access) -> const ByteRanges& {
        const TouchedBytes& its = record.touched;
        return access == Reads ? its.read : access == Writes ? its.written : its.strong;
    };
    const auto verb = [](const Record& record, Access access) {
        return access == Reads          ? "reads"
               : access == Changes      ? "changes by atomics"
               : record.deed->frees     ? "frees"
               : record.deed->allocates ? "allocates"
                                        : "writes";
    };
    for (const auto& [a, b] : {std::pair{Writes, Writes},
                               {Writes, Reads},
                               {Reads, Writes},
                               {Writes, Changes},
                               {Changes, Writes},
                               {Changes, Reads},
                               {Reads, Changes}}) {
        const auto bytes = ByteRanges::common(of(before, a), of(now, b));
        if (!bytes) continue;
        Race race{*before.deed, *now.deed, verb(before, a), verb(now, b), now.touched.buffer, *bytes};
        if (before.number > now.number) {
            std::swap(race.first, race.second);
            std::swap(race.does_first, race.does_second);
        }
        return race;
    }
    return {};
}

std::optional<StreamRaces::Race> StreamRaces::add(const Point& piece, Deed deed, std::vector<TouchedBytes> touched) {
    const auto shared = std::make_shared<const Deed>(std::move(deed));
    std::optional<Race> race;
    for (TouchedBytes& each : touched) {
        Record now{piece.number, shared, std::move(each)};
        auto& streams = buffers_[now.touched.buffer];
        for (const auto& [stream, records] : streams) {
            if (stream == piece.stream) continue;
            for (auto before = records.rbegin(); before != records.rend() && !race; ++before) {
                if (piece.known.covers(stream, before->number)) break;
                race = compare(*before, now);
            }
        }
        add(streams[piece.stream], std::move(now));
    }
    if (size_ > max_size) {
        std::uint64_t oldest = piece.number;
        for (const auto& [buffer, streams] : buffers_)
            for (const auto& [stream, records] : streams) oldest = std::min(oldest, records.front().number);
        const std::uint64_t middle = oldest + (piece.number - oldest) / 2;
        erase_first([&](StreamId, std::uint64_t number) { return number <= middle; });
    }
    return race;
}

/// Of pieces of one stream that touch the same, whatever races with an earlier one has been compared with it, or races
/// with the last one, too.
void StreamRaces::add(Records& to, Record record) {
    constexpr std::ptrdiff_t looked_at = 8;
    const auto is_same = [&](const Record& other) {
        const TouchedBytes &a = record.touched, &b = other.touched;
        return a.read == b.read && a.written == b.written && a.strong == b.strong;
    };
    const auto begin = to.end() - std::min(looked_at, std::ssize(to));
    if (const auto same = std::find_if(begin, to.end(), is_same); same != to.end()) {
        size_ -= same->size();
        to.erase(same);
    }
    size_ += record.size();
    to.push_back(std::move(record));
}

template <class Condition>
void StreamRaces::erase_first(Condition is_over) {
    for (auto buffer = buffers_.begin(); buffer != buffers_.end();) {
        auto& streams = buffer->second;
        for (auto each = streams.begin(); each != streams.end();) {
            Records& records = each->second;
            while (!records.empty() && is_over(each->first, records.front().number)) {
                size_ -= records.front().size();
                records.pop_front();
            }
            each = records.empty() ? streams.erase(each) : std::next(each);
        }
        buffer = streams.empty() ? buffers_.erase(buffer) : std::next(buffer);
    }
}

void StreamRaces::forget(const StreamClock& known) {
    if (size_ > 0) erase_first([&](StreamId stream, std::uint64_t number) { return known.covers(stream, number); });
}

}  // namespace ikat::emulator
