// SPDX-License-Identifier: Apache-2.0
// Work that is compared with what other streams have touched.
#include "runtime/emulator/host/stream_races.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>

using namespace ikat::emulator;

namespace {

/// Pieces of two streams that know nothing of each other.
struct TwoStreams {
    StreamRaces races;
    std::uint64_t number = 0;

    std::optional<StreamRaces::Race> write(StreamId stream, std::uint64_t begin, std::uint64_t end) {
        const Piece piece{
            .number = ++number, .stream = stream, .work = work::Fill{}, .known = std::make_shared<StreamClock>()};
        TouchedBytes touched{.buffer = 1};
        touched.written.add(begin, end);
        return races.add({piece.number, piece.stream, *piece.known},
                         std::make_shared<const Deed>(Deed{.what = "a fill"}), {touched});
    }
};

}  // namespace

TEST_CASE("stream races: of a program that never waits, the older half is forgotten") {
    TwoStreams its;
    std::size_t most = 0;
    for (std::uint64_t i = 1; i <= 300000; ++i) {
        its.write(StreamId(1), 8 * i, 8 * i + 4);
        most = std::max(most, its.races.size());
    }
    CHECK(most <= StreamRaces::max_size);
    CHECK(its.races.size() >= StreamRaces::max_size / 2 - 4);
    CHECK(its.write(StreamId(2), 8 * 300000, 8 * 300000 + 1).has_value());
    CHECK(its.write(StreamId(2), 8 * 260000, 8 * 260000 + 1).has_value());
    CHECK_FALSE(its.write(StreamId(2), 8 * 10, 8 * 10 + 1).has_value());
    StreamClock all;
    all.learn(its.number);
    its.races.forget(all);
    CHECK(its.races.size() == 0);
    CHECK_FALSE(its.write(StreamId(2), 8 * 300000, 8 * 300000 + 1).has_value());
}

TEST_CASE("stream races: what is the same again takes no more memory") {
    TwoStreams its;
    for (int i = 0; i < 100; ++i)
        for (std::uint64_t part = 0; part < 5; ++part) its.write(StreamId(1), 100 * part, 100 * part + 50);
    CHECK(its.races.size() == 10);
    const auto race = its.write(StreamId(2), 140, 160);
    REQUIRE(race);
    CHECK(race->bytes == ByteRanges::Range{140, 150});
}
