// SPDX-License-Identifier: Apache-2.0
// What the decode step of a language model costs the host, as 430 launches on a stream and as one graph: 28 layers of
// 15 kernels and 10 more, on rows so short that kernels take little. CPU time per step of the emulator, kernels
// included, the best of several rounds.
//
//     build/release/bench/bench_graph
//     valgrind --tool=callgrind build/release/bench/bench_graph launches 10
//     valgrind --tool=callgrind build/release/bench/bench_graph replays 10
// Callgrind tells what emulator::run, which runs a kernel, has of it; the rest is the host's.
#include <ikat/graph.hpp>
#include <ikat/stdlib.hpp>

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace {

using namespace ikat;

constexpr std::uint32_t width = 32;

/// Stands for attention: it reads the position, which changes with each step.
const auto attend =
    kernel("attend", params("y", "x", "position"), [](Out<float> y, In<float> x, In<std::uint32_t> position) {
        const u32 i = global_id().x;
        y[i] = x[i] + cast<f32>(position[0u]) * 1e-6f;
    });

struct Model {
    Device device = Device::open({.device = "emulator", .threads = 1});
    Buffer<float> x = device.upload(std::vector<float>(width, 1.0f), "x"),
                  normed = device.upload(std::vector<float>(width), "normed"),
                  h = device.upload(std::vector<float>(width), "h"),
                  weights = device.upload(std::vector<float>(width * width, 0.01f), "weights"),
                  gamma = device.upload(std::vector<float>(width, 1.0f), "gamma");
    int launches = 0;

    void gemv(const Queue& q, const Buffer<float>& from, Buffer<float>& to) {
        stdlib::gemv(q, weights.view(width, width), from, to);
        ++launches;
    }
    void norm(const Queue& q) {
        stdlib::rmsnorm(q, x.view(1, width), gamma, normed.view(1, width), 1e-5f);
        ++launches;
    }
    void add(const Queue& q) {
        stdlib::residual_add(q, h, x);
        ++launches;
    }
    void attend_to(const Queue& q, const BufferSlice<const std::uint32_t>& position) {
        q.launch(attend, grid(width, width), h, normed, position);
        ++launches;
    }
    void layer(const Queue& q, const BufferSlice<const std::uint32_t>& position) {
        norm(q);
        for (int i = 0; i < 3; ++i) gemv(q, normed, h);
        for (int i = 0; i < 3; ++i) attend_to(q, position);
        gemv(q, normed, h);
        add(q);
        norm(q);
        for (int i = 0; i < 4; ++i) gemv(q, normed, h);
        add(q);
    }
    void step(const Queue& q, const BufferSlice<const std::uint32_t>& position) {
        launches = 0;
        for (int i = 0; i < 28; ++i) layer(q, position);
        for (int i = 0; i < 9; ++i) gemv(q, normed, h);
        norm(q);
    }
};

double now() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return double(time.tv_sec) * 1e6 + double(time.tv_nsec) * 1e-3;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view wanted = argc > 1 ? argv[1] : "";
    const int count = argc > 2 ? std::atoi(argv[2]) : 10, rounds = argc > 2 ? 1 : 7;
    Model model;
    const Stream stream = model.device.stream();
    Buffer<std::uint32_t> position = model.device.upload(std::vector<std::uint32_t>(1), "position");
    const GraphExec exec = Graph::record(model.device, [&](const Queue& q, GraphParameters& its) {
                               model.step(q, its.device_number("position", 0u));
                           }).instantiate();
    const auto measure = [&](std::string_view name, auto&& step) {
        if (!wanted.empty() && wanted != name) return;
        step(0u);
        double best = 1e30;
        for (int round = 0; round < rounds; ++round) {
            const double start = now();
            for (int i = 0; i < count; ++i) step(std::uint32_t(i));
            best = std::min(best, (now() - start) / count);
        }
        fmt::print("{:<9}{:10.1f} us a step of {} kernels\n", name, best, model.launches);
    };
    measure("launches", [&](std::uint32_t at) {
        stream.fill(position, at);
        model.step(stream, position);
        stream.synchronize();
    });
    measure("replays", [&](std::uint32_t at) {
        exec.set("position", at);
        exec.launch(stream);
        stream.synchronize();
    });
}
