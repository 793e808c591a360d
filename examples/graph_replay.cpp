// SPDX-License-Identifier: Apache-2.0
// A step of a decoder as a graph: it is recorded once, with two branches, and launched for each token. The position is
// a number on the device, which each launch can have anew; the scale is a number of the host, for which the step is
// recorded again. The same step, launched kernel by kernel, gives the same numbers.
#include <ikat/graph.hpp>
#include <ikat/stdlib.hpp>

#include <cstdio>
#include <vector>

using namespace ikat;

constexpr std::uint32_t width = 64;

/// Stands for what depends on the token's position.
const auto fade =
    kernel("fade", params("y", "x", "position"), [](Out<float> y, In<float> x, In<std::uint32_t> position) {
        const u32 i = global_id().x;
        y[i] = x[i] / (1.0f + cast<f32>(position[0u]) * 0.1f);
    });
const auto join =
    kernel("join", params("x", "a", "b", "scale"), [](InOut<float> x, In<float> a, In<float> b, f32 scale) {
        const u32 i = global_id().x;
        x[i] = (x[i] + a[i] * b[i]) * scale;
    });

struct Decoder {
    Device device = Device::open();
    Stream side = device.stream();
    Buffer<float> x = device.upload(std::vector<float>(width, 1.0f), "x"),
                  gamma = device.upload(std::vector<float>(width, 1.0f), "gamma"),
                  wa = device.upload(std::vector<float>(width * width, 0.02f), "wa"),
                  wb = device.upload(std::vector<float>(width * width, 0.03f), "wb");

    void step(const Queue& q, const BufferSlice<const std::uint32_t>& position, float scale) {
        auto normed = q.buffer<float>(width, "normed"), a = q.buffer<float>(width, "a"),
             b = q.buffer<float>(width, "b");
        stdlib::rmsnorm(q, x.view(1, width), gamma, normed.view(1, width), 1e-5f);
        side.wait(q.record());  // from here on the stream is a branch of the step
        stdlib::gemv(side, wa.view(width, width), normed, a);
        q.launch(fade, grid(width, width), b, normed, position);
        q.wait(side.record());
        q.launch(join, grid(width, width), x, a, b, scale);
    }
};

int main() try {
    Decoder one, other;
    const Graph graph = Graph::record(one.device, [&](const Queue& q, GraphParameters& its) {
        one.step(q, its.device_number("position", 0u), its.number("scale", 0.9f));
    });
    const GraphExec exec = graph.instantiate();
    const Stream stream = one.device.stream(), its = other.device.stream();
    auto position = other.device.buffer<std::uint32_t>(1, "position");
    for (std::uint32_t token = 0; token < 6; ++token) {
        const float scale = token < 4 ? 0.9f : 0.8f;
        exec.set("position", token);
        exec.set("scale", scale);
        exec.launch(stream);
        its.fill(position, token);
        other.step(its, position, scale);
    }
    stream.synchronize();
    const std::vector<float> replayed = one.x.download(), launched = other.x.download();
    std::printf("a step has %zu nodes; after 6 tokens x[0] is %g by the graph, %g by launches\n", graph.nodes(),
                replayed[0], launched[0]);
    std::printf("%s", graph.dot().c_str());
    return replayed == launched ? 0 : 1;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
