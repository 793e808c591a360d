// SPDX-License-Identifier: Apache-2.0
// What pieces of work know of each other, against the definition: all paths of what is enqueued.
#include "runtime/emulator/host/stream_order.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <vector>

#include "runtime/emulator/host/work_queue.hpp"

using namespace ikat::emulator;

namespace {

constexpr StreamId streams[] = {default_stream, StreamId(1), StreamId(2), StreamId(3)};
constexpr bool waits(StreamId stream) { return stream != StreamId(3); }

/// Each piece and all those before it, kept as sets.
struct Model {
    struct Each {
        StreamId stream{};
        std::set<std::uint64_t> before{};
        KnownWork known{};
    };
    std::vector<Each> pieces{{}};  // by number, from 1 on
    std::set<std::uint64_t> program;
    std::set<std::uint64_t> recorded[2];
    StreamOrder order;

    std::set<std::uint64_t> with_before(std::uint64_t number) const {
        std::set<std::uint64_t> out = pieces[number].before;
        out.insert(number);
        return out;
    }
    void add(StreamId stream, Work work) {
        Each next{.stream = stream, .before = program};
        for (std::uint64_t i = 1; i < pieces.size(); ++i) {
            const StreamId other = pieces[i].stream;
            const bool by_default =
                (stream == default_stream && waits(other)) || (other == default_stream && waits(stream));
            if (other == stream || by_default) next.before.merge(with_before(i));
        }
        if (const auto* const wait = std::get_if<work::Wait>(&work))
            next.before.insert(recorded[int(wait->event)].begin(), recorded[int(wait->event)].end());
        const std::uint64_t number = pieces.size();
        const Piece piece{.number = number, .stream = stream, .work = work};
        next.known = order.add(piece, waits(stream));
        pieces.push_back(next);
        if (const auto* const record = std::get_if<work::Record>(&work))
            recorded[int(record->event)] = with_before(number);
    }
    void wait(StreamId stream) {
        order.wait(stream);
        for (std::uint64_t i = 1; i < pieces.size(); ++i)
            if (pieces[i].stream == stream) program.merge(with_before(i));
    }
    void wait(EventId event) {
        order.wait(event);
        program.insert(recorded[int(event)].begin(), recorded[int(event)].end());
    }
    void wait() {
        order.wait();
        for (std::uint64_t i = 1; i < pieces.size(); ++i) program.insert(i);
    }
};

}  // namespace

TEST_CASE("stream order: what is known is what paths of streams, events and waits lead to") {
    for (unsigned seed = 0; seed < 300; ++seed) {
        std::minstd_rand random(seed + 1);
        const auto pick = [&](std::size_t count) { return std::size_t(random() >> 8) % count; };
        Model model;
        for (int step = 0; step < 40; ++step) {
            const StreamId stream = streams[pick(4) == 0 ? pick(4) : 1 + pick(3)];
            const auto event = EventId(pick(2));
            switch (pick(10)) {
                case 0:
                case 1: model.add(stream, work::Record{event}); break;
                case 2:
                case 3: model.add(stream, work::Wait{event}); break;
                case 4:
                    if (pick(3) == 0) model.wait(stream == default_stream ? StreamId(1) : stream);
                    break;
                case 5:
                    if (pick(3) == 0) model.wait(event);
                    break;
                case 6:
                    if (pick(8) == 0) model.wait();
                    break;
                default: model.add(stream, work::Fill{}); break;
            }
        }
        INFO(seed);
        for (std::uint64_t i = 1; i < model.pieces.size(); ++i)
            for (std::uint64_t j = 1; j < i; ++j) {
                const bool is_own = model.pieces[i].stream == model.pieces[j].stream;  // which needs no clock
                REQUIRE((is_own || model.pieces[i].known->covers(model.pieces[j].stream, j)) ==
                        model.pieces[i].before.contains(j));
            }
    }
}

TEST_CASE("stream order: streams that have come and gone have no entries") {
    StreamOrder order;
    std::uint64_t number = 0;
    const auto add = [&](StreamId stream, Work work = work::Fill{}) {
        return order.add({.number = ++number, .stream = stream, .work = std::move(work)}, true);
    };
    for (std::uint64_t i = 1; i <= 1000; ++i) {  // each is waited for
        add(StreamId(i));
        order.wait(StreamId(i));
        CHECK(order.size() == 0);
    }
    const auto last = StreamId(5000);
    const std::uint64_t begin = number + 1;
    for (std::uint64_t i = 0; i < 100; ++i) add(last), add(StreamId(6000 + i));
    for (std::uint64_t i = 0; i < 99; ++i) order.wait(StreamId(6000 + i));
    CHECK_FALSE(order.program().covers(last, begin));
    CHECK(order.program().covers(StreamId(6098), number - 2));
    CHECK_FALSE(order.program().covers(StreamId(6099), number));
    order.wait(last);
    CHECK(order.program().covers(last, number - 1));
    CHECK(order.size() == 1);  // the stream that has not been waited for
}

TEST_CASE("stream order: of a program that never waits, the newest streams are known") {
    StreamOrder order;
    std::uint64_t number = 0;
    KnownWork known;
    for (std::uint64_t i = 1; i <= 10'000; ++i) {
        known = order.add({.number = ++number, .stream = StreamId(i), .work = work::Fill{}}, true);
        CHECK(order.size() <= StreamOrder::max_streams + 1);
    }
    CHECK(known->covers(StreamId(1), 1));
    CHECK_FALSE(known->covers(StreamId(9'999), 9'999));
    CHECK_FALSE(known->covers(StreamId(9'800), 9'800));
}
