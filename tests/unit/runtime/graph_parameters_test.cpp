// SPDX-License-Identifier: Apache-2.0
// Parameters of graphs: what changes from launch to launch, and what may not.
#include <ikat/graph.hpp>
#include <ikat/ikat.hpp>

#include "tests/catch.hpp"
#include "tests/message.hpp"
#include "tests/unit/runtime/graph_scene.hpp"

namespace ikat::tests::graphs {
namespace {

TEST_CASE("graphs: parameters by name: numbers, buffers, and numbers on the device") {
    Scene its;
    Buffer<float> z = its.device.upload(Floats(size), "z");
    int recordings = 0;
    const Graph graph = Graph::record(its.device, [&](const Queue& q, GraphParameters& parameters) {
        ++recordings;
        const auto out = parameters.buffer("out", its.y);
        q.launch(scale, its.all, out, its.x, parameters.number("by", 2.0f), size);
        q.launch(add_number, its.all, out, parameters.device_number("position", 7u));
    });
    const GraphExec exec = graph.instantiate();
    const auto run = [&] {
        exec.launch(its.stream);
        its.stream.synchronize();
    };
    run();
    CHECK(its.y.download() == Floats(size, 9.0f));
    exec.set("position", 9u);
    run();
    CHECK(its.y.download() == Floats(size, 11.0f));
    CHECK(recordings == 1);
    exec.set("by", 3.0f);
    exec.set("out", z);
    run();
    CHECK(recordings == 2);
    CHECK(its.y.download() == Floats(size, 11.0f));
    CHECK(z.download() == Floats(size, 12.0f));
    exec.set("by", 3);  // as it is
    run();
    CHECK(recordings == 2);

    const GraphExec second = graph.instantiate();  // with the values at first
    second.launch(its.stream);
    its.stream.synchronize();
    CHECK(its.y.download() == Floats(size, 9.0f));
}

TEST_CASE("graphs: work that was enqueued has the numbers of then") {
    Scene its;
    const GraphExec exec = Graph::record(its.device, [&](const Queue& q, GraphParameters& parameters) {
                               q.launch(multiply, its.all, its.x, parameters.number("by", 2.0f));
                               q.launch(add_number, its.all, its.x, parameters.device_number("more", 1u));
                           }).instantiate();
    exec.launch(its.stream);  // 3
    exec.set("by", 10.0f);
    exec.set("more", 2u);
    exec.launch(its.other);  // 32, after the launch on the other stream
    exec.set("by", 1.0f);
    exec.launch(its.stream);  // 34
    its.stream.synchronize();
    CHECK(its.x.download() == Floats(size, 34.0f));
}

TEST_CASE("graphs: numbers that choose kernels, grids or memory are refused, and the graph stays as it was") {
    Scene its;
    Buffer<float> many = its.device.upload(Floats(4096, 1.0f), "many");
    const GraphExec exec = Graph::record(its.device, [&](const Queue& q, GraphParameters& parameters) {
                               const auto n = parameters.number("n", 64u);
                               const auto which = parameters.number("which", 0);
                               Buffer<float> between = q.buffer<float>(parameters.number("memory", 8u));
                               q.fill(between, 0.0f);
                               if (which < 2) q.launch(increment, grid(n, 32), many, n);
                               if (which == 1) q.launch(increment, grid(n, 32), many, n);
                               if (which == 2) q.launch(multiply, grid(n, 32), many, 1.0f);
                           }).instantiate();
    const auto refused = [&](const char* name, unsigned value) {
        exec.set(name, value);
        return message_of([&] { exec.launch(its.device); });
    };
    CHECK_THAT(refused("n", 65), Catch::Contains("kernel 'increment' with 3 x 1 x 1 blocks instead of 2 x 1 x 1"));
    CHECK_THAT(refused("which", 1), Catch::Contains("5 nodes instead of 4"));
    CHECK_THAT(refused("which", 2), Catch::Contains("kernel 'multiply' instead of kernel 'increment'"));
    CHECK_THAT(refused("memory", 9), Catch::Contains("allocates other memory than before"));
    CHECK_THAT(refused("n", 5000), Catch::Contains("graph_parameters_test.cpp"));
    exec.launch(its.device);
    CHECK(many.download()[0] == 2.0f);
    exec.set("n", 40u);  // fewer numbers by the same grid
    exec.launch(its.device);
    const Floats now = many.download();
    CHECK(now[39] == 3.0f);
    CHECK(now[40] == 2.0f);
}

TEST_CASE("graphs: a parameter that is not there, or of another kind") {
    Scene its;
    const GraphExec exec =
        Graph::record(its.device, [&](const Queue& q, GraphParameters& parameters) {
            q.launch(scale, its.all, parameters.buffer("y", its.y), its.x, 1.0f, parameters.number("n", size));
        }).instantiate();
    CHECK_THAT(message_of([&] { exec.set("m", 3u); }),
               Catch::Contains("has no parameter 'm'") && Catch::Contains("n, y"));
    CHECK_THAT(message_of([&] { exec.set("n", -1); }), Catch::Contains("-1 does not fit parameter 'n'"));
    CHECK_THAT(message_of([&] { exec.set("n", its.y); }), Catch::Contains("is a number, not a buffer"));
    CHECK_THAT(message_of([&] { exec.set("y", 2.0f); }), Catch::Contains("is a buffer, not a number"));
    Buffer<std::uint32_t> words = its.device.buffer<std::uint32_t>(size);
    CHECK_THAT(message_of([&] { exec.set("y", words); }), Catch::Contains("elements of f32, not of u32"));
    CHECK_THAT(message_of([&] {
                   Graph::record(its.device, [&](const Queue&, GraphParameters& parameters) {
                       parameters.number("a", 1.0f);
                       parameters.number("a", 1);
                   });
               }),
               Catch::Contains("'a' as two things"));
    const GraphExec without = Graph::record(its.device, [](const Queue&) {}).instantiate();
    CHECK_THAT(message_of([&] { without.set("n", 1); }), Catch::Contains("recorded without any"));
    without.launch(its.device);
}

}  // namespace
}  // namespace ikat::tests::graphs
