// SPDX-License-Identifier: Apache-2.0
// Threads of a program that share a device.
#include <ikat/ikat.hpp>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/runtime/emulator.hpp"

namespace ikat::tests {
namespace {
namespace threads_test {

using namespace runtime;

constexpr std::uint32_t threads = 8, size = 64;

const auto add = kernel("add", params("x", "n", "by"), [](InOut<std::uint32_t> x, u32 n, u32 by) {
    const u32 i = global_id().x;
    return_if(i >= n);
    x[i] += by;
});

/// Runs a function on eight threads, whose number it gets.
void on_threads(const std::function<void(std::uint32_t)>& run) {
    std::vector<std::jthread> all;
    for (std::uint32_t i = 0; i < threads; ++i) all.emplace_back([&run, i] { run(i); });
}

TEST_CASE("threads: each with a stream, memory and events of its own, which others wait for") {
    const Device device = emulator();
    std::mutex mutex;
    std::vector<std::optional<Event>> last(threads);
    std::atomic<int> calls = 0, right = 0;
    on_threads([&](std::uint32_t number) {
        const Stream stream = device.stream();
        auto x = device.upload(std::vector<std::uint32_t>(size, 1000 * number), "x");
        auto host = device.host_buffer<std::uint32_t>(size, "host");
        for (std::uint32_t i = 0; i < 10; ++i) {
            stream.launch(add, grid(size, 32), x, size, 1u);
            const Event event = stream.record();
            {
                const std::lock_guard lock(mutex);
                const std::optional<Event>& other = last[(number + i) % threads];
                if (other) stream.wait(*other);
                last[number] = event;
            }
            auto between = Queue(stream).buffer<std::uint32_t>(size, "between");
            stream.copy(between, x);
            stream.call([&] { ++calls; });
            if (i % 4 == 0) event.query();
            if (i % 5 == 0) stream.synchronize();
            stream.download_async(host, between);
        }
        stream.synchronize();
        right += std::ranges::count(host, 1000 * number + 10) == size;
        right += std::ranges::count(x.download(), 1000 * number + 10) == size;
    });
    CHECK(calls == 10 * threads);
    CHECK(right == 2 * threads);
    CHECK_NOTHROW(device.synchronize());
}

TEST_CASE("threads: launches and copies that wait, of one kernel that all of them compile") {
    const Device device = emulator();
    const auto own = kernel("own", params("x"), [](InOut<std::uint32_t> x) { x[global_id().x] *= 3u; });
    std::atomic<int> right = 0;
    on_threads([&](std::uint32_t number) {
        auto x = device.upload(std::vector<std::uint32_t>(size, number), "x");
        for (int i = 0; i < 3; ++i) device.launch(own, Grid{{2}, {32}}, x);
        x.rename("renamed");
        right += x.download() == std::vector<std::uint32_t>(size, 27 * number);
    });
    CHECK(right == threads);
}

TEST_CASE("threads: findings come to the thread that waits for its stream") {
    const Device device = emulator();
    std::vector<Buffer<std::uint32_t>> buffers;  // an upload would wait for all streams, and get their findings
    for (std::uint32_t i = 0; i < threads; ++i) buffers.push_back(device.upload(std::vector<std::uint32_t>(size), "x"));
    std::atomic<int> found = 0;
    on_threads([&](std::uint32_t number) {
        const Stream stream = device.stream();
        stream.launch(add, grid(size + 32, 32), buffers[number], number % 2 ? size : size + 1, 1u);
        try {
            stream.synchronize();
        } catch (const KernelError&) { ++found; }
    });
    CHECK(found == threads / 2);
}

}  // namespace threads_test
}  // namespace
}  // namespace ikat::tests
