// SPDX-License-Identifier: Apache-2.0
// Ranges of bytes, and how they are collected, against sets of numbers.
#include "runtime/emulator/tools/touched/touched.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <set>

using namespace ikat::emulator;

namespace {

using Numbers = std::set<std::uint64_t>;

std::optional<std::uint64_t> first_common(const Numbers& a, const Numbers& b) {
    const auto found = std::ranges::find_if(a, [&](std::uint64_t number) { return b.contains(number); });
    return found == a.end() ? std::nullopt : std::optional(*found);
}

}  // namespace

TEST_CASE("byte ranges: rows of equal length and distance are one entry") {
    ByteRanges rows;
    for (std::uint64_t i = 0; i < 1000; ++i) rows.add(100 * i, 100 * i + 40);
    CHECK(rows.entries() == 1);
    CHECK(rows.whole() == ByteRanges::Range{0, 99940});
    ByteRanges other;
    other.add(40, 100);  // between two rows
    CHECK(!ByteRanges::common(rows, other));
    other.add(99939, 99950);
    CHECK(ByteRanges::common(rows, other) == ByteRanges::Range{99939, 99940});
    CHECK(ByteRanges::common(other, rows) == ByteRanges::Range{99939, 99940});
    ByteRanges dense;
    for (std::uint64_t i = 0; i < 100; ++i) dense.add(8 * i, 8 * i + 8);
    CHECK(dense.entries() == 1);
    CHECK(dense.whole() == ByteRanges::Range{0, 800});
    rows.add(99940, 99941);  // the last row becomes longer
    CHECK(rows.entries() == 2);
    other = {};
    other.add(99940, 99942);
    CHECK(ByteRanges::common(rows, other) == ByteRanges::Range{99940, 99941});
}

TEST_CASE("byte ranges: boxes whose rows interleave or overlap") {
    const ByteRanges box = ByteRanges::of_box(10, 4, 3, 16, 2, 8);
    ByteRanges by_hand;
    for (const std::uint64_t begin : {10, 18, 26, 34, 42, 50}) by_hand.add(begin, begin + 4);
    CHECK(box == by_hand);
    CHECK(ByteRanges::of_box(0, 10, 3, 5, 1, 0).whole() == ByteRanges::Range{0, 20});
    CHECK(ByteRanges::of_box(0, 10, 3, 5, 1, 0).entries() == 1);
    CHECK(ByteRanges::of_box(7, 0, 3, 5, 1, 0).empty());
    CHECK(ByteRanges::of_box(7, 5, 0, 5, 1, 0).empty());
}

TEST_CASE("byte ranges: what is collected, in any order, is what was added") {
    constexpr std::uint64_t cell = 1 << 24, base = 7 * cell;
    for (unsigned seed = 1; seed <= 60; ++seed) {
        std::minstd_rand random(seed);
        Numbers sets[2];
        ByteRanges ranges[2];
        for (int set = 0; set < 2; ++set) {
            RangeCollector collector;
            for (unsigned i = 0; i < 30; ++i) {
                const std::uint64_t first = base + random() % 3 * cell + random() % 5000,
                                    length = 1 + random() % (random() % 2 ? 8 : 200), pitch = length + random() % 100;
                for (std::uint64_t row = 0, rows = 1 + random() % 20; row < rows; ++row) {
                    const std::uint64_t begin = first + row * pitch;
                    collector.add(begin, begin + length);
                    for (std::uint64_t at = begin; at < begin + length; ++at) sets[set].insert(at);
                }
            }
            std::uint64_t end = 0, bytes = 0;
            for (const ByteRanges::Range& range : collector.take()) {
                REQUIRE(range.begin > end);
                end = range.end, bytes += range.end - range.begin;
                ranges[set].add(range.begin, range.end);
                for (std::uint64_t at = range.begin; at < range.end; ++at) REQUIRE(sets[set].contains(at));
            }
            CHECK(bytes == sets[set].size());
            CHECK(collector.take().empty());
        }
        const auto found = ByteRanges::common(ranges[0], ranges[1]);
        const auto wanted = first_common(sets[0], sets[1]);
        INFO(seed);
        REQUIRE(found.has_value() == wanted.has_value());
        if (found) CHECK(found->begin == *wanted);
    }
    RangeCollector many;
    for (std::uint64_t i = 0; i < 20000; ++i) many.add(8 * (i * 7919 % 10000), 8 * (i * 7919 % 10000) + 4);
    CHECK(many.take().size() == 10000);
}
