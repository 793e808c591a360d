// SPDX-License-Identifier: Apache-2.0
// The memory of queues on the emulator: each buffer is one to all checks, with ikat's pool as without, and the pool
// counts it.
#include <algorithm>
#include <optional>

#include "ikat/ikat.hpp"
#include "runtime/exec/recorder.hpp"
#include "tests/catch.hpp"
#include "tests/environment.hpp"
#include "tests/message.hpp"
#include "tests/unit/runtime/emulator.hpp"

namespace ikat::tests {
namespace {
namespace pool_memory {

using namespace runtime;

constexpr std::string_view own = "own";
constexpr std::size_t segment = 2 << 20;
const Grid warp{{1}, {32}};

Device opened(std::string_view pool) {
    return Device::open({.device = "emulator", .pool = pool, .threads = 1, .schedule = "0"});
}

const auto adds = kernel("adds", params("x", "y", "at"),
                         [](In<float> x, InOut<float> y, u32 at) { y[global_id().x] += x[global_id().x + at]; });

/// A mistake with buffers of a queue, and a part of what is found.
struct Mistake {
    const char* what;
    const char* finding;
    void (*make)(const Device& device);
};

const Mistake mistakes[] = {
    {"an access behind a buffer, where the pool has another", "right past the end of buffer 'x' (256 bytes)",
     [](const Device& device) {
         const Stream stream = device.stream();
         const Queue queue(stream);
         auto x = queue.buffer<float>(64, "x"), y = queue.buffer<float>(64, "y");
         queue.fill(x, 1.0f), queue.fill(y, 1.0f);
         queue.launch(adds, warp, x, y, 48);
         stream.synchronize();
     }},
    {"a read of memory that nothing has written since it was allocated",
     "undefined value was loaded at offset 124 of buffer 'x'",
     [](const Device& device) {
         const Stream stream = device.stream();
         const Queue queue(stream);
         auto y = queue.buffer<float>(64, "y");
         queue.fill(y, 1.0f);
         {
             auto earlier = queue.buffer<float>(64, "earlier");
             queue.fill(earlier, 1.0f);
         }
         auto x = queue.buffer<float>(64, "x");  // the same bytes of the pool
         queue.launch(adds, warp, x, y, 0);
         stream.synchronize();
     }},
    {"a use of memory after it has been freed", "of buffer 'earlier' (256 bytes), which has been released",
     [](const Device& device) {
         const Stream stream = device.stream();
         const Queue queue(stream);
         auto y = queue.buffer<float>(64, "y");
         queue.fill(y, 1.0f);
         auto addresses = queue.buffer<std::uint64_t>(1, "addresses");
         {
             auto earlier = queue.buffer<float>(64, "earlier");
             queue.fill(earlier, 1.0f);
             queue.fill(addresses, earlier.address());
         }
         auto x = queue.buffer<float>(64, "x");
         queue.fill(x, 1.0f);
         const Module module = device.load(R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry reads(.param .u64 p) {
    .reg .b64 %rd<3>;
    .reg .f32 %f<2>;
    ld.param.u64 %rd1, [p];
    ld.global.u64 %rd2, [%rd1];
    ld.global.f32 %f1, [%rd2];
    st.global.f32 [%rd1], %f1;
    ret;
})",
                                           "reads.ptx");
         const std::uint64_t address = addresses.address();
         stream.launch(module, "reads", Grid{{1}, {1}}, std::as_bytes(std::span(&address, 1)));
         stream.synchronize();
     }},
    {"work on another stream that nothing orders", "nothing orders",
     [](const Device& device) {
         const Stream stream = device.stream(), other = device.stream();
         auto x = Queue(stream).buffer<float>(64, "x");
         Queue(stream).fill(x, 1.0f);
         Queue(other).fill(x, 2.0f);
         device.synchronize();
     }},
    {"memory that ends before the work of another stream on it", "nothing orders",
     [](const Device& device) {
         const Stream stream = device.stream(), other = device.stream();
         {
             auto x = Queue(stream).buffer<float>(64, "x");
             Queue(stream).fill(x, 1.0f);
             other.wait(stream.record());
             Queue(other).fill(x, 2.0f);
         }
         device.synchronize();
     }},
    {"a slice of a buffer that has ended", "freed",
     [](const Device& device) {
         const Stream stream = device.stream();
         std::optional<Buffer<float>> x = Queue(stream).buffer<float>(64, "x");
         const BufferSlice<float> slice = x->slice(0, 32);
         x.reset();
         Queue(stream).fill(slice, 1.0f);
     }},
};

TEST_CASE("pool memory: the emulator finds the same mistakes with the pool as without it") {
    for (const Mistake& mistake : mistakes) {
        INFO(mistake.what);
        std::string found[2];
        for (const std::string_view pool : {"own", "off"})
            found[pool == own] = message_of([&] { mistake.make(opened(pool)); });
        CHECK_THAT(found[0], contains(mistake.finding));
        CHECK(found[1] == found[0]);
    }
}

TEST_CASE("pool memory: buffers of a queue are counted, those of the device are not") {
    const Device device = opened(own);
    const Stream stream = device.stream();
    const auto of_device = device.buffer<float>(1000, "x");
    CHECK(device.pool().report().reserved == 0);
    {
        const auto a = Queue(stream).buffer<float>(100, "a");
        const auto b = Queue(stream).buffer<float>(segment / 4, "b");
        CHECK(device.pool().report().used == 512 + segment);
        CHECK(device.pool().report().reserved == 2 * segment);
    }
    CHECK(device.pool().report().used == 0);
    CHECK(device.pool().report().peak_used == 512 + segment);
    CHECK(device.pool().report().segments[1].blocks[0].state == PoolReport::State::Waiting);
    CHECK(device.pool().trim() == 0);
    stream.synchronize();
    CHECK(device.pool().trim() == 2 * segment);
}

TEST_CASE("pool memory: a download waits for the device, and so does a launch on it") {
    const Device device = opened(own);
    const Stream stream = device.stream();
    auto x = device.upload(std::vector<float>(64, 1)), y = device.upload(std::vector<float>(64, 1));
    const auto is_free = [&] {
        const PoolReport report = device.pool().report();
        return report.segments.at(0).blocks == std::vector<PoolReport::Block>{{0, segment, PoolReport::State::Free}};
    };
    Queue(stream).buffer<float>(64, "a");
    CHECK_FALSE(is_free());
    CHECK(x.download()[0] == 1);
    CHECK(is_free());
    Queue(stream).buffer<float>(64, "a");
    device.launch(adds, warp, x, y, 0);
    CHECK(is_free());
    Queue(stream).buffer<float>(64, "a");
    while (!stream.query()) {}
    CHECK(is_free());
}

TEST_CASE("pool memory: a limit holds on the emulator, too") {
    const Device device = opened(own);
    const Stream stream = device.stream();
    Pool pool = device.pool();
    pool.set_limit(segment);
    std::optional<Buffer<float>> a = Queue(stream).buffer<float>(segment / 8, "a");
    const auto b = Queue(stream).buffer<float>(segment / 8, "b");
    CHECK_THAT(message_of([&] { Queue(stream).buffer<float>(1, "c"); }),
               contains("no memory for the 4 bytes of buffer 'c': the pool uses 2097152 of 2097152 bytes"));
    pool.on_out_of_memory([&](std::uint64_t) { return std::exchange(a, std::nullopt).has_value(); });
    const auto c = Queue(stream).buffer<float>(1, "c");
    CHECK_FALSE(a);
    CHECK(pool.report().used == segment / 2 + 256);
}

TEST_CASE("pool memory: what a recorder keeps does not go back before it ends") {
    const Device device = opened(own);
    std::optional<Recorder> recorder(std::in_place, device, Recorder::Runs::No);
    Queue(*recorder).fill(Queue(*recorder).buffer<float>(64, "x").slice(0, 64), 1.0f);
    for (int i = 0; i < 2; ++i)
        for (const Node& node : recorder->nodes()) Queue(device).submit(node);
    CHECK(device.pool().report().used == 256);
    recorder.reset();
    CHECK(device.pool().report().used == 0);
}

TEST_CASE("pool memory: a choice that there is none of") {
    CHECK_THAT(message_of([] { opened("other"); }), contains("there is no pool 'other'"));
    const Environment wrong("IKAT_POOL", "0");
    CHECK_THAT(message_of([] { emulator(); }), contains("there is no pool '0' (from IKAT_POOL)"));
}

TEST_CASE("pool memory: a pool that was moved from") {
    Pool pool = opened(own).pool();
    const Pool kept = std::move(pool);
    CHECK_THAT(message_of([&] { static_cast<void>(pool.report()); }), contains("moved from"));
    CHECK(kept.report().used == 0);
}

}  // namespace pool_memory
}  // namespace
}  // namespace ikat::tests
