// SPDX-License-Identifier: Apache-2.0
// A pool on a device that the test plays: streams, events, limits, what is done when memory runs out, threads.
#include "runtime/pool/pool_object.hpp"

#include <atomic>
#include <thread>

#include "tests/catch.hpp"
#include "tests/environment.hpp"
#include "tests/message.hpp"
#include "tests/unit/runtime/pool_backend.hpp"

namespace ikat::tests {
namespace {
namespace pool_object {

using namespace runtime;
using Grant = PoolObject::Grant;

constexpr std::uint64_t segment = pool::segment_step;
constexpr StreamHandle one = StreamHandle(1), other = StreamHandle(2);

struct Played {
    explicit Played(PoolKind kind = PoolKind::Own, DeviceKind device = DeviceKind::Cuda)
        : backend(make_reference<PoolBackend>(device)), pool(make_reference<PoolObject>(backend, kind)) {}
    Grant get(std::uint64_t bytes, StreamHandle stream) const { return pool->allocate(bytes, "x", stream); }
    std::string refusal(std::uint64_t bytes, StreamHandle stream = one) const {
        return message_of([&] { static_cast<void>(get(bytes, stream)); });
    }

    Reference<PoolBackend> backend;
    Reference<PoolObject> pool;
};

TEST_CASE("pool: the stream that gives memory back has it again at once, others when the work before that is done") {
    Played its;
    const Grant a = its.get(segment, one);
    its.pool->release(a, one);
    CHECK(its.get(segment, one).address == a.address);
    its.pool->release(a, one);
    const Grant b = its.get(segment, other);
    CHECK(b.address != a.address);
    CHECK(its.backend->allocations == 2);
    its.backend->done[one] = its.backend->time - 1;  // the first release, not the second
    its.pool->release(b, other);
    const Grant c = its.get(2 * segment, other);  // neither fits
    CHECK(its.get(256, other).address == b.address);
    CHECK(its.get(segment, other).address != a.address);
    its.backend->done[one] = its.backend->time;
    CHECK(its.get(segment, other).address == a.address);
    static_cast<void>(c);
}

TEST_CASE("pool: a wait of the program for a stream or the device needs no event") {
    for (const StreamHandle waits_for : {one, default_stream}) {
        Played its;
        const Grant a = its.get(segment, one);
        its.pool->release(a, one);
        its.pool->synchronize(waits_for);
        const std::uint64_t queries = its.backend->queries;
        CHECK(its.get(segment, other).address == a.address);
        CHECK(its.backend->queries == queries);
    }
    Played its;
    const Grant a = its.get(segment, one);
    its.pool->release(a, one);
    CHECK(its.pool->query(one));
    its.backend->done.clear();
    CHECK(its.get(segment, other).address == a.address);
}

TEST_CASE("pool: memory of the device's queue is for all when the device has done its work") {
    Played its;
    const Grant a = its.get(segment, default_stream);
    its.pool->release(a, default_stream);
    CHECK(its.get(segment, one).address != a.address);
    CHECK(its.get(segment, default_stream).address != a.address);
    its.backend->done[default_stream] = its.backend->time;
    CHECK(its.get(segment, default_stream).address == a.address);
}

TEST_CASE("pool: a release without a stream waits, and if that fails nobody gets the memory") {
    Played its;
    const Grant a = its.get(segment, one);
    its.pool->release(a);
    CHECK(its.backend->waits == 1);
    CHECK(its.get(segment, other).address == a.address);
    its.backend->has_failed = true;
    its.pool->release(a);
    its.backend->has_failed = false;
    CHECK(its.get(segment, other).address != a.address);
    its.pool->synchronize(default_stream);
    CHECK(its.get(segment, other).address == a.address);
}

TEST_CASE("pool: a stream that has ended leaves its memory to its event; another stream may have its handle") {
    Played its;
    const Grant a = its.get(segment, one);
    its.pool->release(a, one);
    its.pool->end(one);
    CHECK(its.get(segment, one).address != a.address);
    its.backend->done[one] = its.backend->time;
    CHECK(its.get(segment, one).address == a.address);
}

TEST_CASE("pool: events are few, are used again and end with the pool") {
    Played its;
    for (int i = 0; i < 1000; ++i) its.pool->release(its.get(256, one), one);
    CHECK(its.backend->events.size() == 64);
    its.backend->done[one] = its.backend->time;
    static_cast<void>(its.pool->trim());
    for (int i = 0; i < 50; ++i) its.pool->release(its.get(256, other), other);
    CHECK(its.backend->events.size() == 64);
    its.pool = {};
    CHECK(its.backend->events.empty());
    CHECK(its.backend->memory.empty());
}

TEST_CASE("pool: an event that is recorded again is for the later releases") {
    Played its;
    std::vector<Grant> all;
    for (int i = 0; i < 128; ++i) all.push_back(its.get(256, one));
    static_cast<void>(its.get(segment - 128 * 256, one));
    for (const Grant& each : all) its.pool->release(each, one);
    its.backend->done[one] = its.backend->time - 1;
    CHECK(its.get(256, other).address >= all.front().address + segment);
    its.backend->done[one] = its.backend->time;
    CHECK(its.get(128 * 256, default_stream).address == all.front().address);
}

TEST_CASE("pool: without events memory waits for the program") {
    Played its;
    its.backend->refuses_events = true;
    const Grant a = its.get(segment, one);
    its.pool->release(a, one);
    CHECK(its.get(segment, other).address != a.address);
    its.pool->synchronize(one);
    CHECK(its.get(segment, other).address == a.address);
}

TEST_CASE("pool: a limit holds for segments") {
    Played its;
    its.pool->set_limit(3 * segment - 1);
    const Grant a = its.get(segment, one), b = its.get(256, one);
    CHECK_THAT(its.refusal(segment),
               contains("no memory for the 2097152 bytes of buffer 'x': the pool uses 2097408 of 4194304 bytes, its "
                        "largest free block has 2096896, and it may have 6291455") &&
                   contains("raise the limit"));
    // What another stream has released is waited for, and segments of which nothing is used make room.
    its.pool->release(a, other);
    const Grant c = its.get(2 * segment - 256 - segment, one);
    CHECK(c.address == b.address + 256);
    CHECK(its.get(segment, one).address == a.address);
    CHECK(its.backend->waits > 0);
    its.pool->set_limit(4 * segment);
    static_cast<void>(its.get(2 * segment, one));
    CHECK(its.pool->report().reserved == 4 * segment);
    CHECK(its.pool->report().limit == 4 * segment);
}

TEST_CASE("pool: segments without used blocks go to the device before it is asked in vain") {
    Played its;
    its.backend->most_memory = 3 * segment;
    for (int i = 0; i < 2; ++i) {
        const Grant a = its.get(segment, one), b = its.get(segment, one);
        its.pool->release(a, one), its.pool->release(b, one);
    }
    CHECK(its.backend->allocations == 2);
    static_cast<void>(its.get(3 * segment, one));
    CHECK(its.backend->releases == 2);
    CHECK(its.pool->report().reserved == 3 * segment);
    CHECK_THAT(its.refusal(1 << 30), contains("the device is full") && contains("on_out_of_memory"));
}

TEST_CASE("pool: the program is asked for memory as long as it says that it has freed some") {
    Played its;
    its.pool->set_limit(3 * segment);
    std::vector<Grant> cache{its.get(segment, one), its.get(segment, one), its.get(segment, one)};
    std::vector<std::uint64_t> asked;
    Pool(its.pool).on_out_of_memory([&](std::uint64_t bytes) {
        asked.push_back(bytes);
        if (cache.empty()) return false;
        its.pool->release(cache.back(), one);
        cache.pop_back();
        return true;
    });
    const Grant a = its.get(2 * segment, one);
    CHECK(asked == std::vector<std::uint64_t>(2, 2 * segment));
    CHECK(cache.size() == 1);
    CHECK_THAT(its.refusal(3 * segment), contains("no memory for the 6291456 bytes"));
    CHECK(asked.size() == 4);
    CHECK(cache.empty());
    its.pool->release(a, one);
    Pool(its.pool).on_out_of_memory([](std::uint64_t) -> bool { throw Error("from the program", {}); });
    CHECK_THAT(its.refusal(4 * segment), contains("from the program"));
}

TEST_CASE("pool: a request that no segment can have") {
    Played its;
    CHECK_THAT(its.refusal(~std::uint64_t{0}), contains("no memory for the 18446744073709551615 bytes"));
    CHECK(its.pool->report().reserved == 0);
}

TEST_CASE("pool: trim gives back what is free for everybody") {
    Played its;
    const Grant a = its.get(segment, one), b = its.get(segment, one), c = its.get(segment, other);
    its.pool->release(a), its.pool->release(b, one);
    CHECK(its.pool->trim() == segment);
    CHECK(its.pool->trim() == 0);
    its.backend->done[one] = its.backend->time;
    CHECK(its.pool->trim() == segment);
    CHECK(its.backend->memory == std::map<std::uint64_t, std::uint64_t>{{c.address, segment}});
}

TEST_CASE("pool: on an emulator it only counts, and each allocation is one of the device") {
    Played its(PoolKind::Own, DeviceKind::Emulator);
    its.pool->set_limit(segment);
    const Grant a = its.get(100, one), b = its.get(segment - 256, one);
    CHECK(its.backend->memory == std::map<std::uint64_t, std::uint64_t>{{a.address, 100}, {b.address, segment - 256}});
    CHECK(its.pool->report().used == segment);
    CHECK_THAT(its.refusal(1), contains("the pool uses 2097152 of 2097152 bytes"));
    its.pool->release(a, other);
    CHECK(its.backend->memory.size() == 1);
    CHECK(its.get(1, one).address != a.address);  // as after a wait for `other`
    CHECK(its.backend->waits == 0);
    CHECK(its.backend->events.empty());
    its.pool->release(b, one);
    its.backend->most_memory = 1000;
    CHECK_THAT(its.refusal(5000), contains("the device is full"));
    CHECK(its.pool->report().used == 256);
}

TEST_CASE("pool: the driver's, or none") {
    for (const PoolKind kind : {PoolKind::Driver, PoolKind::Off}) {
        Played its(kind);
        its.pool->set_limit(1000);
        const Grant a = its.get(100, one), b = its.get(900, other);
        CHECK(its.backend->memory == std::map<std::uint64_t, std::uint64_t>{{a.address, 100}, {b.address, 900}});
        CHECK(its.pool->report().used == 1000);
        CHECK(its.pool->report().reserved == 1000);
        CHECK(its.pool->report().fragmentation() == 0);
        CHECK_THAT(its.refusal(1), contains("the pool uses 1000 of 1000 bytes"));
        its.pool->release(a, one);
        its.pool->release(b);
        CHECK(its.backend->memory.empty());
        CHECK(its.pool->report().used == 0);
        CHECK(its.pool->report().peak_used == 1000);
        CHECK(its.pool->report().kind == pool_kind_names[std::size_t(kind)]);
        its.backend->most_memory = 10;
        CHECK_THAT(its.refusal(11), contains("the device is full"));
        CHECK(its.pool->report().used == 0);
    }
}

TEST_CASE("pool: a name that is none") {
    CHECK(pool_kind("driver") == PoolKind::Driver);
    CHECK(pool_kind("off") == PoolKind::Off);
    CHECK_THAT(message_of([] { static_cast<void>(pool_kind("mine")); }), contains("there is no pool 'mine'"));
    const Environment wrong("IKAT_POOL", "on");
    CHECK_THAT(message_of([] { static_cast<void>(pool_kind({})); }),
               contains("there is no pool 'on' (from IKAT_POOL)"));
    CHECK(pool_kind("own") == PoolKind::Own);
}

TEST_CASE("pool: several threads of the host, each with a stream") {
    Played its;
    constexpr std::size_t threads = 4, rounds = 3000, kept = 8;
    std::atomic<bool> is_wrong = false;
    std::vector<std::uint8_t> owner(1 << 24);  // of each 256 bytes, by address
    {
        std::vector<std::jthread> all;
        for (std::size_t t = 0; t < threads; ++t)
            all.emplace_back([&, t] {
                const StreamHandle stream = StreamHandle(t + 1);
                const auto id = std::uint8_t(t + 1);
                std::vector<Grant> has;
                const auto mark = [&](const Grant& grant, std::uint8_t from, std::uint8_t to) {
                    if ((grant.address + grant.bytes) / 256 >= owner.size()) return void(is_wrong = true);
                    for (std::uint64_t at = grant.address; at < grant.address + grant.bytes; at += 256)
                        if (std::exchange(owner[at / 256], to) != from) is_wrong = true;
                };
                for (std::size_t i = 0; i < rounds; ++i) {
                    has.push_back(its.get(256 * (1 + (i * 7 + t) % 40), stream));
                    mark(has.back(), 0, id);
                    if (has.size() < kept) continue;
                    const std::size_t chosen = (i * 5) % kept;
                    mark(has[chosen], id, 0);
                    its.pool->release(has[chosen], stream);
                    has.erase(has.begin() + std::ptrdiff_t(chosen));
                    if (i % 100 == 0) static_cast<void>(its.pool->trim());
                }
                for (const Grant& grant : has) its.pool->release(grant, stream);
            });
    }
    CHECK_FALSE(is_wrong);
    CHECK(its.pool->report().used == 0);
    its.pool->synchronize(default_stream);
    static_cast<void>(its.pool->trim());
    CHECK(its.pool->report().reserved == 0);
    CHECK(its.backend->memory.empty());
}

}  // namespace pool_object
}  // namespace
}  // namespace ikat::tests
