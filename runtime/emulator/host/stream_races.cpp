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
    const auto side = [](const Record& record, Access access) {
        const std::string_view does = access == Reads          ? "reads"
                                      : access == Changes      ? "changes by atomics"
                                      : record.deed->frees     ? "frees"
                                      : record.deed->allocates ? "allocates"
                                                               : "writes";
        return Race::Side{record.deed, record.place, record.device, does};
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
        Race race{side(before, a), side(now, b), now.touched.buffer, *bytes};
        if (before.number > now.number) std::swap(race.first, race.second);
        return race;
    }
    return {};
}

std::optional<StreamRaces::Race> StreamRaces::add(const Point& piece, const std::shared_ptr<const Deed>& deed,
                                                  std::vector<TouchedBytes> touched) {
    std::optional<Race> race;
    for (TouchedBytes& each : touched) {
        Record now{piece.number, deed, piece.place, piece.device, std::move(each)};
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
        erase_first([&](StreamKey, std::uint64_t number) { return number <= middle; });
    }
    return race;
}

/// Of pieces of one stream that touch the same, whatever races with an earlier one has been compared with it, or races
/// with the last one, too.
void StreamRaces::add(Records& to, Record record) {
    constexpr std::size_t looked_at = 8;
    const TouchedBytes& its = record.touched;
    auto same = to.end();
    for (std::size_t i = std::min(looked_at, to.size()); i > 0; --i) {
        const TouchedBytes& other = (--same)->touched;
        if (its.read != other.read || its.written != other.written || its.strong != other.strong) continue;
        to.splice(to.end(), to, same);
        to.back() = std::move(record);
        return;
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
    if (size_ > 0) erase_first([&](StreamKey stream, std::uint64_t number) { return known.covers(stream, number); });
}

void StreamRaces::end(unsigned device) {
    if (size_ > 0) erase_first([&](StreamKey stream, std::uint64_t) { return stream.device == device; });
}

}  // namespace ikat::emulator
