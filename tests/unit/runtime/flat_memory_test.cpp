// SPDX-License-Identifier: Apache-2.0
// Programs that run for long: the memory of the process does not grow with the launches, streams, events, graphs,
// batches and futures that have come and gone.
#include <malloc.h>
#include <unistd.h>
#include <ikat/batch.hpp>
#include <ikat/graph.hpp>

#include <algorithm>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/fuzz/seeds.hpp"

namespace ikat::tests {
namespace {
namespace flat_memory {

constexpr std::uint32_t size = 64;

const auto increment = kernel("increment", params("x", "n"), [](InOut<float> x, u32 n) {
    const u32 i = global_id().x;
    return_if(i >= n);
    x[i] += 1.0f;
});

/// What the process has in memory, in bytes, when what it has freed has gone back.
std::size_t resident() {
    malloc_trim(0);
    std::size_t total = 0, pages = 0;
    std::ifstream("/proc/self/statm") >> total >> pages;
    return pages * std::size_t(sysconf(_SC_PAGESIZE));
}

struct Scene {
    Device device = Device::open({.device = "emulator", .threads = 1, .schedule = "1"});
    Stream stream = device.stream(), other = device.stream();
    Buffer<float> x = device.upload(std::vector<float>(size), "x"), y = device.upload(std::vector<float>(size), "y");

    void launch(const Stream& on, Buffer<float>& of) { on.launch(increment, grid(size, 64), of, size); }
};

struct Program {
    const char* name;
    std::uint32_t times;  // of 100000; graphs take longer than launches
    std::function<void(Scene&, std::uint32_t i)> step;
};

const Program programs[] = {
    {"launches on a stream", 100'000,
     [](Scene& its, std::uint32_t i) {
         its.launch(its.stream, its.x);
         if (i % 1000 == 0) its.stream.synchronize();
     }},
    {"launches that nobody waits for", 100'000, [](Scene& its, std::uint32_t) { its.launch(its.stream, its.x); }},
    {"launches on a device", 100'000,
     [](Scene& its, std::uint32_t) { its.device.launch(increment, grid(size, 64), its.x, size); }},
    {"streams, each of which is waited for, beside one that is not", 100'000,
     [](Scene& its, std::uint32_t i) {
         if (i % 100 == 0) its.launch(its.other, its.y);
         const Stream stream = its.device.stream();
         its.launch(stream, its.x);
         stream.synchronize();
     }},
    {"streams, of which none is waited for", 100'000,
     [](Scene& its, std::uint32_t) {
         const Stream stream = its.device.stream();
         stream.wait(its.stream.record());
         its.launch(stream, its.x);
         its.stream.wait(stream.record());
     }},
    {"streams that are given nothing", 100'000, [](Scene& its, std::uint32_t) { its.device.stream(); }},
    {"events that are recorded, waited for, and left", 100'000,
     [](Scene& its, std::uint32_t i) {
         const Event event = its.stream.record();
         its.other.wait(event);
         if (i % 3 == 0) event.synchronize();
     }},
    {"an event that is recorded again and again", 100'000,
     [](Scene& its, std::uint32_t) {
         static_cast<void>(its.stream.query());
         const Event event = its.stream.record();
         Queue(its.other).record(event);
     }},
    {"buffers of streams", 100'000,
     [](Scene& its, std::uint32_t i) {
         auto buffer = Queue(its.stream).buffer<float>(size + i % 7, "buffer");
         its.stream.fill(buffer, 1.0f);
         if (i % 500 == 0) its.stream.synchronize();
     }},
    {"graphs that are recorded, instantiated and launched", 10'000,
     [](Scene& its, std::uint32_t) {
         const Graph graph = Graph::record(its.device, [&](const Queue& q) {
             const auto between = q.buffer<float>(size, "between");
             q.launch(increment, grid(size, 64), its.x, size);
             q.fill(its.y, 0.0f);
         });
         graph.instantiate().launch(its.stream);
     }},
    {"a graph that is launched again and again", 100'000,
     [](Scene& its, std::uint32_t i) {
         static thread_local std::optional<GraphExec> exec;
         if (i == 0)
             exec = Graph::record(its.device, [&](const Queue& q) {
                        q.launch(increment, grid(size, 64), its.x, size);
                    }).instantiate();
         exec->launch(its.stream);
         if (i % 1000 == 0) its.stream.synchronize();
     }},
    {"batches", 20'000,
     [](Scene& its, std::uint32_t) {
         const Batch batch(its.stream);
         batch.residual_add(batch.relu(its.x), its.y);
         batch.execute();
     }},
    {"futures that nobody reads", 100'000,
     [](Scene& its, std::uint32_t i) {
         static_cast<void>(its.device.async().relu(its.x));
         if (i % 500 == 0) its.device.synchronize();  // memory of a stream waits for this in the pool
     }},
};

/// A run of this takes a few seconds of the processor for all programs; the whole takes minutes.
std::uint32_t count_of(const Program& program) {
    const std::uint32_t percent = std::min(test::seed_count(6), 100u);
    return std::uint64_t(program.times) * percent / 100;
}

/// The memory at the end may be larger than after the first tenth by 6 MiB, and a byte for each step: what the work
/// takes that is not done at the moment, what the allocator keeps in fragments, and what a list with room for more
/// takes when it grows for the last time.
constexpr std::size_t tolerated = 6 << 20;

/// The sanitizers keep for a while what has been freed.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_sanitized = true;
#else
constexpr bool is_sanitized = false;
#endif

TEST_CASE("flat memory: what has come and gone takes none") {
    for (const Program& program : programs) {
        const std::uint32_t count = count_of(program);
        Scene scene;
        std::size_t early = 0;
        for (std::uint32_t i = 0; i < count; ++i) {
            if (i == count / 10) early = resident();
            program.step(scene, i);
        }
        const std::size_t late = resident();
        INFO(program.name << ": " << count << " steps, " << early << " bytes after a tenth of them, " << late
                          << " at the end");
        if (!is_sanitized) CHECK(late <= early + tolerated + count);
        CHECK_NOTHROW(scene.device.synchronize());
    }
}

}  // namespace flat_memory
}  // namespace
}  // namespace ikat::tests
