// SPDX-License-Identifier: Apache-2.0
// Graphs give the numbers that their work gives on a stream: on the emulator, by the nodes of the driver, on a GPU.
#include <ikat/graph.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "tests/catch.hpp"
#include "tests/device.hpp"

namespace ikat::test {
namespace {
namespace device_graphs {

using namespace runtime;
using Floats = std::vector<float>;

constexpr std::uint32_t size = 256;

const auto scale = kernel("scale", params("y", "x", "by"),
                          [](Out<float> y, In<float> x, f32 by) { y[global_id().x] = x[global_id().x] * by; });
const auto add_number = kernel("add_number", params("x", "number"), [](InOut<float> x, In<std::uint32_t> number) {
    x[global_id().x] += cast<f32>(number[0u]);
});
const auto add =
    kernel("add", params("x", "y"), [](InOut<float> x, In<float> y) { x[global_id().x] += y[global_id().x]; });

/// One less; the condition is whether anything is left.
const auto count_down = kernel("count_down", params("left", "more"), [](InOut<std::uint32_t> left, Condition more) {
    const u32 now = left[0u] - 1u;
    left[0u] = now;
    set_condition(more, now > 0u);
});
const auto add_after =
    kernel("add_after", params("x", "y", "number"), [](InOut<float> x, In<float> y, In<std::uint32_t> number) {
        const f32 more = cast<f32>(number[0u]);  // which no kernel before writes
        launch_next();
        grid_wait();
        x[global_id().x] += y[global_id().x] + more;
    });

struct Scene {
    Device device = open_device();
    Stream stream = device.stream(), side = device.stream();
    Buffer<float> x = device.upload(Floats(size, 1.0f), "x"), y = device.upload(Floats(size), "y"),
                  z = device.upload(Floats(size), "z");
    Grid all = grid(size, 64);
};

}  // namespace device_graphs

using namespace device_graphs;

TEST_CASE("graphs on a device: kernels, copies of rows, fills of each size, functions of the program") {
    Scene its;
    HostBuffer<float> in = its.device.host_buffer<float>(64), out = its.device.host_buffer<float>(size);
    Buffer<std::uint8_t> bytes = its.device.upload(std::vector<std::uint8_t>(16));
    Buffer<std::uint16_t> halves = its.device.upload(std::vector<std::uint16_t>(16));
    Buffer<std::uint64_t> words = its.device.upload(std::vector<std::uint64_t>(16));
    int calls = 0;
    const GraphExec exec = Graph::record(its.device, [&](const Queue& q) {
                               q.upload_async(its.x.slice(32, 128).view(4, 32).columns(2, 16), in);
                               q.launch(scale, its.all, its.y, its.x, 3.0f);
                               q.copy(its.z.view(2, 8, 16), its.y.view(2, 8, 16));
                               q.fill(its.z.slice(0, 5), 7.0f);
                               q.fill(bytes.slice(1, 14), std::uint8_t(0xab));
                               q.fill(halves.slice(1, 14), std::uint16_t(0xabcd));
                               q.fill(words.slice(1, 14), 0x123456789abcdef0u);
                               q.download_async(out, its.z.view(1, size));
                               q.call([&] { ++calls; });
                           }).instantiate();
    for (int round = 1; round <= 3; ++round) {
        std::ranges::fill(in, float(round));
        exec.launch(its.stream);
        its.stream.synchronize();
        CHECK(calls == round);
        CHECK(out[4] == 7.0f);
        CHECK(out[5] == 3.0f);
        CHECK(out[32 + 2] == 3.0f * float(round));
        CHECK(out[32 + 18] == 3.0f);
        CHECK(its.y.download()[4 * 32 + 17] == 3.0f * float(round));
    }
    const auto all_but_ends = [](auto list, auto value) {
        return list.front() == 0 && list.back() == 0 && std::count(list.begin(), list.end(), value) == 14;
    };
    CHECK(all_but_ends(bytes.download(), std::uint8_t(0xab)));
    CHECK(all_but_ends(halves.download(), std::uint16_t(0xabcd)));
    CHECK(all_but_ends(words.download(), std::uint64_t(0x123456789abcdef0u)));
}

TEST_CASE("graphs on a device: branches, memory of the queue, a graph in a graph") {
    Scene its;
    const GraphExec inner = Graph::record(its.device, [&](const Queue& q) {
                                Buffer<float> a = q.buffer<float>(size, "a"), b = q.buffer<float>(size, "b");
                                q.launch(scale, its.all, a, its.x, 2.0f);
                                its.side.wait(q.record());
                                its.side.launch(scale, its.all, b, a, 2.0f);
                                q.launch(scale, its.all, its.y, a, 1.0f);
                                q.wait(its.side.record());
                                q.launch(add, its.all, its.y, b);  // 6 x
                            }).instantiate();
    const GraphExec outer = Graph::record(its.device, [&](const Queue& q) {
                                inner.launch(q);
                                q.launch(add, its.all, its.x, its.y);  // 7 x
                            }).instantiate();
    for (int i = 0; i < 3; ++i) outer.launch(its.stream);
    its.stream.synchronize();
    CHECK(its.x.download() == Floats(size, 343.0f));
    inner.launch(its.device);
    CHECK(its.y.download() == Floats(size, 2058.0f));
}

TEST_CASE("graphs on a device: numbers and buffers are given anew") {
    Scene its;
    const GraphExec exec = Graph::record(its.device, [&](const Queue& q, GraphParameters& parameters) {
                               const auto out = parameters.buffer("out", its.y);
                               const float by = parameters.number("by", 2.0f);
                               q.launch(scale, its.all, out, its.x, by);
                               q.launch(add_number, its.all, out, parameters.device_number("position", 5u));
                               q.fill(out.slice(0, 4), by);
                               q.copy(its.z.slice(0, 8).view(1, 8), out.slice(2, 8).view(1, 8));
                           }).instantiate();
    exec.launch(its.stream);
    exec.set("by", 3.0f);
    exec.set("position", 6u);
    exec.launch(its.side);
    its.side.synchronize();
    CHECK(its.y.download()[4] == 9.0f);
    CHECK(its.y.download()[3] == 3.0f);
    CHECK(its.z.download()[2] == 9.0f);
    CHECK(its.z.download()[1] == 3.0f);
    Buffer<float> other = its.device.upload(Floats(size), "other");
    exec.set("out", other);
    exec.set("by", 4.0f);
    exec.launch(its.stream);
    its.stream.synchronize();
    CHECK(its.y.download()[4] == 9.0f);
    CHECK(other.download()[4] == 10.0f);
    CHECK(its.z.download()[1] == 4.0f);
    CHECK(its.z.download()[2] == 10.0f);
}

TEST_CASE("graphs on a device: a copy of other rows is given anew, of other planes it is not") {
    Scene its;
    const GraphExec exec = Graph::record(its.device, [&](const Queue& q, GraphParameters& parameters) {
                               const auto rows = parameters.number("rows", 4u),
                                          planes = parameters.number("planes", 2u);
                               q.copy(its.y.view(planes, rows, 8), its.x.view(planes, rows, 8));
                           }).instantiate();
    exec.launch(its.device);
    CHECK(std::ranges::count(its.y.download(), 1.0f) == 64);
    exec.set("rows", 8u);
    exec.launch(its.device);
    CHECK(std::ranges::count(its.y.download(), 1.0f) == 128);
    exec.set("planes", 3u);
    CHECK_THROWS_WITH(exec.launch(its.device), Catch::Contains("in other pieces"));
    exec.launch(its.device);
}

TEST_CASE("graphs on a device: bodies are done as kernels say, and given anew") {
    Scene its;
    Buffer<std::uint32_t> left = its.device.upload(std::vector<std::uint32_t>(1), "left");
    Buffer<float> other = its.device.upload(Floats(size), "other");
    const GraphExec exec =
        Graph::record(its.device, [&](const Queue& q, GraphParameters& parameters) {
            const GraphCondition more = graph_condition(q, 1), never = graph_condition(q, 0);
            q.fill(left, parameters.number("rounds", 3u));
            graph_while(q, more, [&](const Queue& body) {
                Buffer<float> between = body.buffer<float>(size, "between");
                body.launch(scale, its.all, between, its.x, 2.0f);
                its.side.wait(body.record());
                its.side.launch(add_number, its.all, parameters.buffer("y", its.y),
                                parameters.device_number("number", 1u));
                body.copy(its.x.view(2, 4, size / 8), between.view(2, 4, size / 8));
                body.wait(its.side.record());
                const GraphCondition yes = graph_condition(body, 1);
                graph_if(body, yes, [&](const Queue& deep) { deep.launch(add, its.all, its.z, its.x); });
                body.launch(count_down, Grid{{1}, {1}}, left, more);
            });
            graph_if(q, never, [&](const Queue& body) { body.fill(its.x, 0.0f); });
        }).instantiate();
    exec.launch(its.stream);
    its.stream.synchronize();
    CHECK(its.x.download() == Floats(size, 8.0f));
    CHECK(its.z.download() == Floats(size, 2.0f + 4.0f + 8.0f));
    CHECK(its.y.download() == Floats(size, 3.0f));
    exec.set("rounds", 2u);
    exec.set("number", 5u);
    exec.set("y", other);
    exec.launch(its.stream);
    exec.launch(its.stream);
    its.stream.synchronize();
    CHECK(its.x.download() == Floats(size, 128.0f));
    CHECK(its.y.download() == Floats(size, 3.0f));
    CHECK(other.download() == Floats(size, 20.0f));
}

TEST_CASE("graphs on a device: kernels that overlap give the numbers of one after the other") {
    Scene its;
    Buffer<std::uint32_t> number = its.device.upload(std::vector<std::uint32_t>{3}, "number");
    const GraphExec exec = Graph::record(its.device, [&](const Queue& q) {
                               for (int i = 0; i < 4; ++i) {
                                   q.launch(add_after, its.all, its.y, its.x, number);
                                   q.launch(add_after, its.all, its.x, its.y, number);
                               }
                               q.launch(scale, its.all, its.z, its.y, 1.0f);
                           }).instantiate();
    exec.launch(its.stream);
    its.stream.synchronize();
    float x = 1, y = 0;
    for (int i = 0; i < 4; ++i) {
        y += x + 3;
        x += y + 3;
    }
    CHECK(its.z.download() == Floats(size, y));
    CHECK(its.x.download() == Floats(size, x));
}

}  // namespace
}  // namespace ikat::test
