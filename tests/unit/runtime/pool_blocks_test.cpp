// SPDX-License-Identifier: Apache-2.0
// The bookkeeping of a pool, without a device: which block a request gets, what is joined, what is given back.
#include "runtime/pool/blocks.hpp"

#include "tests/catch.hpp"

namespace ikat::tests {
namespace {
namespace pool_blocks {

using namespace runtime;
using pool::BlockId;
using pool::Blocks;
using pool::everybody;
using pool::QueueId;
using pool::Ticket;
using State = PoolReport::State;
using Layout = std::vector<PoolReport::Block>;

constexpr std::uint64_t segment = pool::segment_step, first_address = 1 << 20, second_address = 8 << 20;

/// With one segment.
struct OneSegment : Blocks {
    OneSegment() { add_segment(first_address, segment); }
    BlockId get(std::uint64_t bytes, QueueId queue = everybody) { return take(bytes, queue).value(); }
    std::uint64_t offset(BlockId block) const { return address(block) - first_address; }
    Layout layout() const { return report().segments.at(0).blocks; }
};

TEST_CASE("pool blocks: sizes of blocks and segments") {
    CHECK(pool::block_bytes(0) == 256);
    CHECK(pool::block_bytes(256) == 256);
    CHECK(pool::block_bytes(257) == 512);
    CHECK(pool::segment_bytes(1) == segment);
    CHECK(pool::segment_bytes(segment) == segment);
    CHECK(pool::segment_bytes(segment + 1) == 2 * segment);
}

TEST_CASE("pool blocks: requests share a segment without gaps") {
    OneSegment blocks;
    const BlockId a = blocks.get(100), b = blocks.get(300), c = blocks.get(0);
    CHECK(blocks.offset(a) == 0);
    CHECK(blocks.offset(b) == 256);
    CHECK(blocks.bytes(b) == 512);
    CHECK(blocks.offset(c) == 768);
    CHECK(blocks.used() == 1024);
    CHECK(blocks.layout() == Layout{{0, 256, State::Used},
                                    {256, 512, State::Used},
                                    {768, 256, State::Used},
                                    {1024, segment - 1024, State::Free}});
    CHECK_FALSE(blocks.take(segment, everybody));
    CHECK_FALSE(blocks.take(~std::uint64_t{0}, everybody));
    CHECK(blocks.take(segment - 1024, everybody));
    CHECK_FALSE(blocks.take(1, everybody));
}

TEST_CASE("pool blocks: neighbours that are free become one block, on both sides") {
    OneSegment blocks;
    const BlockId a = blocks.get(256), b = blocks.get(256), c = blocks.get(256), d = blocks.get(256);
    blocks.give(a, everybody);
    blocks.give(c, everybody);
    CHECK(blocks.report().largest_free == segment - 1024);
    blocks.give(b, everybody);
    CHECK(blocks.layout() ==
          Layout{{0, 768, State::Free}, {768, 256, State::Used}, {1024, segment - 1024, State::Free}});
    blocks.give(d, everybody);
    CHECK(blocks.layout() == Layout{{0, segment, State::Free}});
    CHECK(blocks.report().peak_used == 1024);
    CHECK(blocks.used() == 0);
}

TEST_CASE("pool blocks: the smallest class that fits, and within a class the first that is large enough") {
    OneSegment blocks;
    const BlockId large = blocks.get(64 << 10), wall = blocks.get(256), small = blocks.get(1024), end = blocks.get(256);
    const std::uint64_t at_small = blocks.offset(small), at_large = blocks.offset(large);
    blocks.give(large, everybody);
    blocks.give(small, everybody);
    const BlockId first = blocks.get(1000), second = blocks.get(1000);
    CHECK(blocks.offset(first) == at_small);
    CHECK(blocks.offset(second) == at_large);
    // 1280 and 1536 bytes are of one class; only the second fits.
    OneSegment others;
    const BlockId longer = others.get(1536), between = others.get(256), shorter = others.get(1280),
                  last = others.get(256);
    others.give(longer, everybody);
    others.give(shorter, everybody);  // the first of the list
    CHECK(others.offset(others.get(1500)) == 0);
    static_cast<void>(wall), static_cast<void>(end), static_cast<void>(between), static_cast<void>(last);
}

TEST_CASE("pool blocks: what a queue has given back is its own until its work is done") {
    OneSegment blocks;
    const QueueId one = blocks.add_queue(), other = blocks.add_queue();
    const BlockId block = blocks.get(segment, one);
    const Ticket ticket = blocks.give(block, one);
    CHECK(blocks.has_waiting());
    CHECK(blocks.layout() == Layout{{0, segment, State::Waiting}});
    CHECK_FALSE(blocks.take(256, other));
    CHECK_FALSE(blocks.take(256, everybody));
    CHECK(blocks.offset(blocks.get(256, one)) == 0);
    blocks.reached(other, ticket);
    CHECK_FALSE(blocks.take(256, other));
    blocks.reached(one, ticket);
    CHECK_FALSE(blocks.has_waiting());
    CHECK(blocks.offset(blocks.get(256, other)) == 256);
}

TEST_CASE("pool blocks: joined blocks wait for the later of their releases, and only with their own kind") {
    OneSegment blocks;
    const QueueId one = blocks.add_queue(), other = blocks.add_queue();
    const BlockId a = blocks.get(256, one), b = blocks.get(256, one), c = blocks.get(256, other);
    const Ticket first = blocks.give(a, one), second = blocks.give(b, one), third = blocks.give(c, other);
    CHECK(blocks.layout() ==
          Layout{{0, 512, State::Waiting}, {512, 256, State::Waiting}, {768, segment - 768, State::Free}});
    blocks.reached(one, first);
    CHECK(blocks.layout().front() == PoolReport::Block{0, 512, State::Waiting});
    blocks.reached(one, second);
    CHECK(blocks.layout() ==
          Layout{{0, 512, State::Free}, {512, 256, State::Waiting}, {768, segment - 768, State::Free}});
    blocks.reached(third);  // of all queues
    CHECK(blocks.layout() == Layout{{0, segment, State::Free}});
}

TEST_CASE("pool blocks: segments of which nothing is used go") {
    OneSegment blocks;
    blocks.add_segment(second_address, 2 * segment);
    const QueueId queue = blocks.add_queue();
    const BlockId large = blocks.get(2 * segment, queue), small = blocks.get(256, queue);
    CHECK(blocks.address(large) == second_address);
    CHECK(blocks.trim().empty());
    const Ticket ticket = blocks.give(large, queue);
    CHECK(blocks.trim().empty());
    blocks.reached(queue, ticket);
    CHECK(blocks.segments() == std::vector<std::uint64_t>{first_address, second_address});
    CHECK(blocks.trim() == std::vector<std::uint64_t>{second_address});
    CHECK(blocks.reserved() == segment);
    blocks.give(small, everybody);
    CHECK(blocks.trim() == std::vector<std::uint64_t>{first_address});
    CHECK(blocks.reserved() == 0);
    blocks.add_segment(3 << 20, segment);
    CHECK(blocks.report().segments.at(0).number == 2);
}

TEST_CASE("pool blocks: the number of a queue that has ended is used again when nothing waits for it") {
    OneSegment blocks;
    const QueueId one = blocks.add_queue();
    const Ticket ticket = blocks.give(blocks.get(256, one), one);
    blocks.end_queue(one);
    const QueueId other = blocks.add_queue();
    CHECK(other != one);
    CHECK(blocks.offset(blocks.get(256, other)) == 256);
    blocks.reached(one, ticket);
    CHECK(blocks.add_queue() == one);
    CHECK(blocks.offset(blocks.get(256, one)) == 0);
}

TEST_CASE("pool blocks: the numbers of the report") {
    OneSegment blocks;
    const BlockId a = blocks.get(256), b = blocks.get(700), c = blocks.get(900);
    blocks.give(b, everybody);
    const PoolReport report = blocks.report();
    CHECK(report.used == 256 + 1024);
    CHECK(report.reserved == segment);
    CHECK(report.peak_used == 256 + 768 + 1024);
    CHECK(report.free() == segment - 1280);
    CHECK(report.largest_free == segment - 2048);
    CHECK(report.fragmentation() == Approx(768.0 / (segment - 1280)));
    CHECK(report.classes ==
          std::vector<PoolReport::SizeClass>{{256, 1, 0}, {512, 0, 1}, {1024, 1, 0}, {1 << 20, 0, 1}});
    CHECK(PoolReport{}.fragmentation() == 0);
    static_cast<void>(a), static_cast<void>(c);
}

}  // namespace pool_blocks
}  // namespace
}  // namespace ikat::tests
