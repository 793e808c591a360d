// SPDX-License-Identifier: Apache-2.0
// Random operations on pools of memory. The bookkeeping is compared with a list of intervals, in which everything is
// done by walking over all of them; a pool on a device that the test plays, with who has which bytes.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "runtime/pool/pool_object.hpp"
#include "tests/catch.hpp"
#include "tests/fuzz/choices.hpp"
#include "tests/fuzz/seeds.hpp"
#include "tests/unit/runtime/pool_backend.hpp"

namespace ikat::test {
namespace {
namespace pools {

using namespace runtime;
using pool::BlockId;
using pool::Blocks;
using pool::everybody;
using pool::QueueId;
using pool::Ticket;
using State = PoolReport::State;

constexpr std::uint32_t operations = 1000;  // for each seed
constexpr std::uint64_t segment = pool::segment_step;

/// Mostly small, sometimes of several segments, and often sizes that occur again.
std::uint64_t any_bytes(Choices& choose) {
    if (choose.one_in(3)) return 256 * (1 + choose.pick(4));
    if (choose.one_in(40)) return choose.pick(5 << 20);
    if (choose.one_in(40)) return segment * (1 + choose.pick(2));
    return choose.pick(1u << (4 + choose.pick(16)));
}

/// What the bookkeeping does, as simply as it can be said.
struct Model {
    struct Interval {
        std::uint64_t bytes = 0;
        bool is_used = false;
        QueueId queue = everybody;
        Ticket ticket{};
    };
    struct Segment {
        std::uint64_t bytes = 0;
        std::map<std::uint64_t, Interval> intervals{};  // by offset
    };
    std::map<std::uint64_t, Segment> segments{};  // by address; addresses grow
    std::map<std::uint64_t, std::uint64_t> numbers{};
    std::uint64_t peak = 0;

    static bool may_have(const Interval& interval, QueueId queue) {
        return !interval.is_used && (interval.queue == everybody || interval.queue == queue);
    }
    std::uint64_t largest(QueueId queue) const {
        std::uint64_t out = 0;
        for (const auto& [address, its] : segments)
            for (const auto& [offset, interval] : its.intervals)
                if (may_have(interval, queue)) out = std::max(out, interval.bytes);
        return out;
    }
    /// The interval that an address is in, and where that begins.
    std::pair<Segment*, std::uint64_t> find(std::uint64_t address) {
        const auto its = std::prev(segments.upper_bound(address));
        const auto at = std::prev(its->second.intervals.upper_bound(address - its->first));
        return {&its->second, at->first};
    }
    /// False if these bytes are not the queue's to take.
    bool take(std::uint64_t address, std::uint64_t bytes, QueueId queue) {
        const auto [its, offset] = find(address);
        const std::uint64_t begin = address - std::prev(segments.upper_bound(address))->first;
        Interval interval = its->intervals.at(offset);
        if (begin != offset || !may_have(interval, queue) || interval.bytes < bytes) return false;
        Interval rest = interval;
        rest.bytes -= bytes, interval.bytes = bytes, interval.is_used = true;
        its->intervals[offset] = interval;
        if (rest.bytes) its->intervals[offset + bytes] = rest;
        peak = std::max(peak, used());
        return true;
    }
    void give(std::uint64_t address, QueueId queue, Ticket ticket) {
        const auto [its, offset] = find(address);
        Interval& interval = its->intervals.at(offset);
        interval.is_used = false, interval.queue = queue, interval.ticket = ticket;
        join();
    }
    void reached(std::optional<QueueId> queue, Ticket ticket) {
        for (auto& [address, its] : segments)
            for (auto& [offset, interval] : its.intervals)
                if (!interval.is_used && (!queue || interval.queue == *queue) && interval.ticket <= ticket)
                    interval.queue = everybody;
        join();
    }
    void join() {
        for (auto& [address, its] : segments)
            for (auto at = its.intervals.begin(); std::next(at) != its.intervals.end();) {
                const auto next = std::next(at);
                Interval &a = at->second, &b = next->second;
                if (a.is_used || b.is_used || a.queue != b.queue) {
                    ++at;
                    continue;
                }
                a.bytes += b.bytes, a.ticket = std::max(a.ticket, b.ticket);
                its.intervals.erase(next);
            }
    }
    std::vector<std::uint64_t> trim() {
        std::vector<std::uint64_t> out;
        for (const auto& [address, its] : segments) {
            const Interval& first = its.intervals.begin()->second;
            if (its.intervals.size() == 1 && may_have(first, everybody)) out.push_back(address);
        }
        for (const std::uint64_t address : out) segments.erase(address);
        return out;
    }
    std::uint64_t used() const {
        std::uint64_t out = 0;
        for (const auto& [address, its] : segments)
            for (const auto& [offset, interval] : its.intervals) out += interval.is_used ? interval.bytes : 0;
        return out;
    }
    PoolReport report() const {
        PoolReport out{.used = used(), .peak_used = peak};
        std::map<std::uint64_t, PoolReport::SizeClass> classes;
        for (const auto& [address, its] : segments) {
            out.reserved += its.bytes;
            out.segments.push_back({numbers.at(address), its.bytes, {}});
            for (const auto& [offset, interval] : its.intervals) {
                const State state = interval.is_used              ? State::Used
                                    : interval.queue != everybody ? State::Waiting
                                                                  : State::Free;
                out.segments.back().blocks.push_back({offset, interval.bytes, state});
                std::uint64_t power = 256;
                while (power * 2 <= interval.bytes) power *= 2;
                ++(interval.is_used ? classes[power].used : classes[power].free);
                if (!interval.is_used) out.largest_free = std::max(out.largest_free, interval.bytes);
            }
        }
        for (const auto& [bytes, its] : classes) out.classes.push_back({bytes, its.used, its.free});
        return out;
    }
};

struct BlocksRun {
    Choices choose;
    Blocks blocks{};
    Model model{};
    std::vector<QueueId> queues{everybody};
    std::vector<BlockId> used{};
    std::uint64_t next_address = 1 << 30;

    explicit BlocksRun(std::uint32_t seed) : choose(seed) {
        for (int i = 0; i < 3; ++i) queues.push_back(blocks.add_queue());
    }

    void take() {
        const std::uint64_t bytes = any_bytes(choose), size = pool::block_bytes(bytes);
        const QueueId queue = choose.any_of(queues);
        std::optional<BlockId> block = blocks.take(bytes, queue);
        REQUIRE(block.has_value() == (model.largest(queue) >= size));
        if (!block) {
            const std::uint64_t added = pool::segment_bytes(bytes);
            blocks.add_segment(next_address, added);
            model.segments[next_address] = {added, {{0, {.bytes = added}}}};
            model.numbers.emplace(next_address, model.numbers.size());
            next_address += added;  // the next begins where this ends: they stay two
            block = blocks.take(bytes, queue);
            REQUIRE(block);
        }
        REQUIRE(blocks.bytes(*block) == size);
        REQUIRE(model.take(blocks.address(*block), size, queue));
        used.push_back(*block);
    }
    void give() {
        if (used.empty()) return;
        std::swap(used[choose.pick(std::uint32_t(used.size()))], used.back());
        const QueueId queue = choose.any_of(queues);
        const std::uint64_t address = blocks.address(used.back());
        model.give(address, queue, blocks.give(used.back(), queue));
        used.pop_back();
    }
    void reach() {
        const Ticket ticket = Ticket(std::uint64_t(blocks.last_ticket()) -
                                     std::min<std::uint64_t>(std::uint64_t(blocks.last_ticket()), choose.pick(20)));
        if (choose.one_in(4)) return blocks.reached(ticket), model.reached({}, ticket);
        const QueueId queue = choose.any_of(queues);
        blocks.reached(queue, ticket), model.reached(queue, ticket);
    }
    /// One ends, whose memory is for everybody by and by, and another begins.
    void exchange_queue() {
        QueueId& queue = queues[1 + choose.pick(3)];
        blocks.end_queue(queue);
        const QueueId ended = std::exchange(queue, blocks.add_queue());
        if (ended != queue) blocks.reached(ended, blocks.last_ticket()), model.reached(ended, blocks.last_ticket());
    }
    /// Takes more than it gives for a while, then less.
    void step(std::uint32_t i) {
        const std::uint32_t what = choose.pick(100);
        if (what < (i / 100 % 2 ? 30 : 55)) return take();
        if (what < 85) return give();
        if (what < 95) return reach();
        if (what < 98) {
            std::vector<std::uint64_t> gone = blocks.trim();
            std::ranges::sort(gone);
            REQUIRE(gone == model.trim());
            return;
        }
        exchange_queue();
    }
    void compare() const {
        const PoolReport is = blocks.report(), wanted = model.report();
        REQUIRE(is.segments == wanted.segments);
        REQUIRE(is.classes == wanted.classes);
        REQUIRE(is.used == wanted.used);
        REQUIRE(is.reserved == wanted.reserved);
        REQUIRE(is.peak_used == wanted.peak_used);
        REQUIRE(is.largest_free == wanted.largest_free);
        REQUIRE(is.used == blocks.used());
        REQUIRE(is.reserved == blocks.reserved());
    }
    void end() {
        while (!used.empty()) give();
        blocks.reached(blocks.last_ticket()), model.reached({}, blocks.last_ticket());
        compare();
        REQUIRE(blocks.trim().size() == model.trim().size());
        REQUIRE(blocks.reserved() == 0);
    }
};

TEST_CASE("the bookkeeping of a pool does what a list of intervals does") {
    const std::uint32_t first = first_seed();
    for (std::uint32_t seed = first; seed < first + seed_count(100); ++seed) {
        INFO("seed " << seed);
        BlocksRun run(seed), again(seed);
        for (std::uint32_t i = 0; i < operations; ++i) {
            run.step(i);
            if (i % 8 == 0) run.compare();
        }
        if (seed == first) {  // it is the same in every run
            for (std::uint32_t i = 0; i < operations; ++i) again.step(i);
            REQUIRE(again.blocks.report().segments == run.blocks.report().segments);
        }
        run.end();
    }
}

/// A pool of a device whose streams get ahead as the test says.
struct PoolRun {
    Choices choose;
    Reference<tests::PoolBackend> device = make_reference<tests::PoolBackend>();
    Reference<PoolObject> memory = make_reference<PoolObject>(device, PoolKind::Own);
    struct Has {
        PoolObject::Grant grant;
        StreamHandle stream;
    };
    std::vector<Has> used{};
    struct Left {
        std::uint64_t end = 0;
        StreamHandle stream{};
        std::uint64_t time = 0;
    };
    std::map<std::uint64_t, Left> left{};  // what was released and not taken since, by address: never overlapping
    std::uint64_t used_bytes = 0, peak = 0, limit = no_limit;

    explicit PoolRun(std::uint32_t seed) : choose(seed) {}
    StreamHandle any_stream() { return StreamHandle(choose.pick(4)); }

    /// Whether work of the stream may use these bytes: all that released some of them is done, or the stream's own.
    bool may_have(std::uint64_t begin, std::uint64_t end, StreamHandle stream) {
        auto at = left.upper_bound(begin);
        if (at != left.begin()) --at;
        for (; at != left.end() && at->first < end; ++at) {
            const Left& its = at->second;
            if (its.end <= begin) continue;
            const bool is_own = its.stream == stream && stream != default_stream;
            if (!is_own && !device->is_done({its.stream, its.time})) return false;
        }
        return true;
    }
    /// Takes the bytes out of what is left.
    void forget(std::uint64_t begin, std::uint64_t end) {
        auto at = left.upper_bound(begin);
        if (at != left.begin()) --at;
        while (at != left.end() && at->first < end) {
            const auto [first, its] = *at;
            if (its.end <= begin) {
                ++at;
                continue;
            }
            at = left.erase(at);
            if (first < begin) left[first] = {begin, its.stream, its.time};
            if (its.end > end) at = left.insert_or_assign(end, its).first;
        }
    }
    void take() {
        const std::uint64_t bytes = any_bytes(choose), size = pool::block_bytes(bytes);
        const StreamHandle stream = any_stream();
        std::optional<PoolObject::Grant> grant;
        const std::uint64_t allocations = device->allocations;
        try {
            grant = memory->allocate(bytes, "x", stream);
        } catch (const Error&) {
            // All has been waited for, and neither a block nor a new segment is possible.
            const PoolReport has = memory->report();
            REQUIRE(has.largest_free < size);
            REQUIRE(has.reserved + pool::segment_bytes(bytes) > limit);
            return;
        }
        if (device->allocations != allocations) REQUIRE(memory->report().reserved <= limit);
        const std::uint64_t begin = grant->address, end = begin + size;
        REQUIRE(begin % 256 == 0);
        const auto home = std::prev(device->memory.upper_bound(begin));
        REQUIRE(end <= home->first + home->second);
        for (const Has& other : used) {
            const std::uint64_t its = other.grant.address, its_end = its + pool::block_bytes(other.grant.bytes);
            REQUIRE((its_end <= begin || end <= its));
        }
        REQUIRE(may_have(begin, end, stream));
        forget(begin, end);
        used.push_back({*grant, stream});
        used_bytes += size, peak = std::max(peak, used_bytes);
    }
    void give() {
        if (used.empty()) return;
        std::swap(used[choose.pick(std::uint32_t(used.size()))], used.back());
        const auto [grant, stream] = used.back();
        used.pop_back();
        const std::uint64_t size = pool::block_bytes(grant.bytes);
        used_bytes -= size;
        if (choose.one_in(30)) return memory->release(grant);  // waits
        memory->release(grant, stream);
        left[grant.address] = {grant.address + size, stream, device->time};
    }
    void step(std::uint32_t i) {
        const std::uint32_t what = choose.pick(100);
        if (what < (i / 100 % 2 ? 30 : 58)) return take();
        if (what < 88) return give();
        const StreamHandle stream = any_stream();
        if (what < 94) {  // gets ahead
            std::uint64_t& done = device->done[stream];
            done = std::max(done, device->time - std::min<std::uint64_t>(device->time, choose.pick(10)));
        } else if (what < 96) {
            memory->synchronize(stream);
        } else if (what < 98) {
            const std::uint64_t before = device->memory.size(), reserved = memory->report().reserved;
            const std::uint64_t bytes = memory->trim();
            REQUIRE(memory->report().reserved == reserved - bytes);
            REQUIRE((bytes == 0) == (device->memory.size() == before));
        } else {
            limit = choose.one_in(3) ? no_limit : segment * (4 + choose.pick(20));
            memory->set_limit(limit);
        }
    }
    void compare() const {
        const PoolReport has = memory->report();
        std::uint64_t reserved = 0;
        for (const auto& [address, bytes] : device->memory) reserved += bytes;
        REQUIRE(has.reserved == reserved);
        REQUIRE(has.used == used_bytes);
        REQUIRE(has.peak_used == peak);
        REQUIRE(has.segments.size() == device->memory.size());
        std::uint64_t blocks = 0, free = 0;
        for (const PoolReport::Segment& its : has.segments)
            for (const PoolReport::Block& block : its.blocks)
                ++blocks, free += block.state == State::Used ? 0 : block.bytes;
        REQUIRE(has.free() == free);
        std::uint64_t counted = 0, counted_used = 0;
        for (const PoolReport::SizeClass& each : has.classes)
            counted += each.used + each.free, counted_used += each.used;
        REQUIRE(counted == blocks);
        REQUIRE(counted_used == used.size());
    }
    void end() {
        for (const Has& each : used) memory->release(each.grant, each.stream);
        memory->synchronize(default_stream);
        static_cast<void>(memory->trim());
        REQUIRE(memory->report().reserved == 0);
        REQUIRE(device->memory.empty());
        memory = {};
        REQUIRE(device->events.empty());
    }
};

TEST_CASE("a pool gives no bytes to two, nor to a stream before their last work is done, and loses none") {
    const std::uint32_t first = first_seed();
    for (std::uint32_t seed = first; seed < first + seed_count(100); ++seed) {
        INFO("seed " << seed);
        PoolRun run(seed);
        for (std::uint32_t i = 0; i < operations; ++i) {
            run.step(i);
            if (i % 8 == 0) run.compare();
        }
        run.end();
    }
}

}  // namespace pools
}  // namespace
}  // namespace ikat::test
