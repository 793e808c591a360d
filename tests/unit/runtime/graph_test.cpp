// SPDX-License-Identifier: Apache-2.0
// Graphs: what is recorded runs as it would on a stream, any number of times, and what changes is given anew.
#include <ikat/graph.hpp>
#include <ikat/ikat.hpp>
#include <ikat/work.hpp>

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/message.hpp"
#include "tests/unit/runtime/graph_scene.hpp"

namespace ikat::tests::graphs {
namespace {

TEST_CASE("graphs: nothing runs while it is recorded, and all of it at each launch") {
    Scene its;
    const Graph graph = Graph::record(its.device, [&](const Queue& q) {
        q.launch(increment, its.all, its.x, size);
        q.launch(scale, its.all, its.y, its.x, 2.0f, size);
    });
    CHECK(graph.nodes() == 2);
    CHECK(graph.edges() == 1);
    CHECK(its.x.download() == Floats(size, 1.0f));
    const GraphExec exec = graph.instantiate();
    exec.launch(its.device);
    CHECK(its.y.download() == Floats(size, 4.0f));
    exec.launch(its.stream);
    exec.launch(its.stream);
    its.stream.synchronize();
    CHECK(its.x.download() == Floats(size, 4.0f));
    CHECK(its.y.download() == Floats(size, 8.0f));
}

TEST_CASE("graphs: copies, fills and functions of the program are nodes in their order") {
    Scene its;
    HostBuffer<float> in = its.device.host_buffer<float>(size), out = its.device.host_buffer<float>(size);
    int calls = 0;
    const GraphExec exec =
        Graph::record(its.device, [&](const Queue& q) {
            q.upload_async(its.x.view(1, size), in);
            q.fill(its.y.slice(0, 8), 3.0f);
            q.copy(its.y.slice(8, size - 8).view(1, size - 8), its.x.slice(8, size - 8).view(1, size - 8));
            q.launch(increment, its.all, its.y, size);
            q.download_async(out, its.y.view(1, size));
            q.call([&] { ++calls; });
        }).instantiate();
    for (int round = 1; round <= 3; ++round) {
        std::ranges::fill(in, float(round));
        exec.launch(its.stream);
        its.stream.synchronize();
        CHECK(calls == round);
        CHECK(out[7] == 4.0f);
        CHECK(out[8] == float(round) + 1);
        CHECK(out[size - 1] == float(round) + 1);
    }
}

TEST_CASE("graphs: words of 8 bytes are filled") {
    Scene its;
    Buffer<std::uint64_t> words = its.device.upload(std::vector<std::uint64_t>(9), "words");
    const GraphExec exec = Graph::record(its.device, [&](const Queue& q) {
                               q.fill(words.slice(1, 7), 0x123456789abcdef0u);
                           }).instantiate();
    exec.launch(its.device);
    std::vector<std::uint64_t> expected(9, 0x123456789abcdef0u);
    expected.front() = expected.back() = 0;
    CHECK(words.download() == expected);
}

TEST_CASE("graphs: memory of a graph is undefined at each launch") {
    Scene its;
    const GraphExec exec = Graph::record(its.device, [&](const Queue& q) {
                               Buffer<float> between = q.buffer<float>(size, "between");
                               q.launch(scale, its.all, its.y, between, 1.0f, size);
                               q.launch(scale, its.all, between, its.x, 1.0f, size);
                           }).instantiate();
    for (int i = 0; i < 2; ++i) {  // the second time it has been written by the first
        exec.launch(its.stream);
        const std::string message = message_of([&] { its.stream.synchronize(); });
        CHECK_THAT(message, Catch::Contains("between") && Catch::Contains("undefined"));
        CHECK_THAT(message, Catch::Contains("graph was launched here, on stream 1"));
    }
}

TEST_CASE("graphs: kernels and memory exist as long as the graph") {
    Scene its;
    std::optional<GraphExec> exec;
    std::optional<Buffer<float>> slice;
    {
        Buffer<float> factor = its.device.upload(Floats(size, 5.0f), "factor");
        const auto own = kernel("own", params("y", "x"),
                                [](Out<float> y, In<float> x) { y[global_id().x] = x[global_id().x] + 0.5f; });
        exec = Graph::record(its.device, [&](const Queue& q) { q.launch(own, its.all, its.y, factor); }).instantiate();
    }
    exec->launch(its.stream);
    its.stream.synchronize();
    CHECK(its.y.download() == Floats(size, 5.5f));
    exec->launch(its.stream);
    exec.reset();  // while it has not run
    its.stream.synchronize();
}

TEST_CASE("graphs: other streams take part between two events") {
    Scene its;
    const Graph graph = Graph::record(its.device, [&](const Queue& q) {
        q.launch(increment, its.all, its.x, size);
        its.other.wait(q.record());
        its.other.launch(increment, its.all, its.y, size);
        q.launch(increment, its.all, its.x, size);
        q.wait(its.other.record());
        q.launch(scale, its.all, its.y, its.x, 2.0f, size);
    });
    CHECK(graph.nodes() == 4);
    CHECK(graph.edges() == 4);
    graph.instantiate().launch(its.device);
    CHECK(its.y.download() == Floats(size, 6.0f));
    its.other.launch(increment, its.all, its.y, size);  // which is a stream again
    its.other.synchronize();
    CHECK(its.y.download() == Floats(size, 7.0f));
}

TEST_CASE("graphs: branches are done in an order that the seed chooses") {
    const auto order = [](std::string_view schedule) {
        Scene its(schedule, "no-streams");
        Buffer<std::uint32_t> list = its.device.upload(std::vector<std::uint32_t>(40), "list");
        Graph::record(its.device,
                      [&](const Queue& q) {
                          its.other.wait(q.record());
                          for (std::uint32_t i = 0; i < 3; ++i) {
                              q.launch(append, Grid{{1}, {1}}, list, i);
                              its.other.launch(append, Grid{{1}, {1}}, list, 10 + i);
                          }
                          q.wait(its.other.record());
                          q.launch(append, Grid{{1}, {1}}, list, 99u);
                      })
            .instantiate()
            .launch(its.device);
        const auto all = list.download();
        return std::vector(all.begin() + 1, all.begin() + 1 + all[0]);
    };
    CHECK(order("0") == std::vector<std::uint32_t>{0, 10, 1, 11, 2, 12, 99});
    std::set<std::vector<std::uint32_t>> seen;
    for (int seed = 1; seed <= 8; ++seed) {
        const auto numbers = order(std::to_string(seed));
        CHECK(numbers == order(std::to_string(seed)));
        CHECK(numbers.size() == 7);
        CHECK(numbers.back() == 99);
        seen.insert(numbers);
        for (const std::uint32_t first : {0u, 10u}) {
            std::vector<std::uint32_t> own;
            for (const std::uint32_t number : numbers)
                if (number >= first && number < first + 3) own.push_back(number);
            CHECK(own == std::vector<std::uint32_t>{first, first + 1, first + 2});
        }
    }
    CHECK(seen.size() > 3);
}

TEST_CASE("graphs: a stream is captured, with others that wait for it") {
    Scene its;
    const Graph graph = its.stream.capture([&] {
        its.stream.launch(increment, its.all, its.x, size);
        its.other.wait(its.stream.record());
        its.other.launch(scale, its.all, its.y, its.x, 3.0f, size);
        its.stream.wait(its.other.record());
    });
    CHECK(graph.nodes() == 2);
    its.stream.synchronize();
    CHECK(its.x.download() == Floats(size, 1.0f));
    graph.instantiate().launch(its.stream);
    its.stream.synchronize();
    CHECK(its.y.download() == Floats(size, 6.0f));
}

TEST_CASE("graphs: one is part of another that launches it") {
    Scene its;
    const GraphExec inner = Graph::record(its.device, [&](const Queue& q) {
                                q.launch(increment, its.all, its.x, size);
                                q.launch(increment, its.all, its.x, size);
                            }).instantiate();
    const Graph outer = Graph::record(its.device, [&](const Queue& q) {
        inner.launch(q);
        q.launch(scale, its.all, its.y, its.x, 2.0f, size);
        inner.launch(q);
    });
    CHECK(outer.nodes() == 5);
    CHECK(outer.edges() == 4);
    outer.instantiate().launch(its.device);
    CHECK(its.x.download() == Floats(size, 5.0f));
    CHECK(its.y.download() == Floats(size, 6.0f));
    inner.launch(its.device);
    CHECK(its.x.download() == Floats(size, 7.0f));
}

TEST_CASE("graphs: those of one recording take turns with its memory") {
    Scene its;
    const Graph graph = Graph::record(its.device, [&](const Queue& q, GraphParameters& parameters) {
        Buffer<float> between = q.buffer<float>(size, "between");
        q.launch(scale, its.all, between, its.x, 1.0f, size);
        q.launch(add_number, its.all, between, parameters.device_number("number", 0u));
        q.launch(scale, its.all, its.y, between, 1.0f, size);
    });
    const GraphExec first = graph.instantiate(), second = graph.instantiate();
    first.set("number", 1u);
    second.set("number", 2u);
    for (const auto& [exec, expected] : {std::pair(&first, 2.0f), {&second, 3.0f}, {&first, 2.0f}}) {
        exec->launch(expected == 3.0f ? its.other : its.stream);
        its.device.synchronize();
        CHECK(its.y.download() == Floats(size, expected));
    }
    first.launch(its.stream);
    second.launch(its.other);  // after the first, on another stream
    its.device.synchronize();
    CHECK(its.y.download() == Floats(size, 3.0f));
}

TEST_CASE("graphs: what a recorder or another graph is given does not count as done") {
    Scene its;
    const GraphExec exec = Graph::record(its.device, [&](const Queue& q, GraphParameters& parameters) {
                               q.launch(add_number, its.all, its.x, parameters.device_number("number", 3u));
                           }).instantiate();
    const Recorder recorder(its.device, Recorder::Runs::No);
    exec.launch(recorder);
    exec.launch(its.device);
    CHECK(its.x.download() == Floats(size, 4.0f));
    const GraphExec outer = Graph::record(its.device, [&](const Queue& q) { exec.launch(q); }).instantiate();
    exec.set("number", 5u);
    exec.launch(its.stream);
    outer.launch(its.stream);
    exec.launch(its.stream);
    its.stream.synchronize();
    CHECK(its.x.download() == Floats(size, 4.0f + 5 + 3 + 5));
}

TEST_CASE("graphs: a function of the program may wait for the program, and end what it holds") {
    Scene its;
    std::atomic<bool> goes_on = false, called = false;
    {
        const auto host = std::make_shared<HostBuffer<float>>(its.device.host_buffer<float>(size));
        const GraphExec exec = Graph::record(its.device, [&](const Queue& q) {
                                   q.launch(increment, its.all, its.x, size);
                                   q.download_async(*host, its.x.view(1, size));
                                   q.call([&goes_on, &called, host] {
                                       while (!goes_on) std::this_thread::yield();
                                       called = (*host)[0] == 2.0f;
                                   });
                               }).instantiate();
        exec.launch(its.stream);
    }
    its.other.launch(increment, its.all, its.y, size);
    its.other.synchronize();  // does not wait for the function
    goes_on = true;
    its.stream.synchronize();
    CHECK(called);

    const GraphExec fails = Graph::record(its.device, [&](const Queue& q) {
                                q.call([] { throw Error("the function failed", "it does"); });
                                q.launch(increment, its.all, its.x, size);
                            }).instantiate();
    fails.launch(its.stream);
    CHECK_THAT(message_of([&] { its.stream.synchronize(); }), Catch::Contains("the function failed"));
    CHECK(its.x.download() == Floats(size, 3.0f));
}

TEST_CASE("graphs: a buffer of a branch may end after the branch is joined") {
    Scene its;
    const GraphExec exec = Graph::record(its.device, [&](const Queue& q) {
                               its.other.wait(q.record());
                               Buffer<float> between = Queue(its.other).buffer<float>(size, "between");
                               its.other.launch(scale, its.all, between, its.x, 2.0f, size);
                               its.other.launch(scale, its.all, its.y, between, 2.0f, size);
                               q.wait(its.other.record());
                           }).instantiate();
    exec.launch(its.device);
    CHECK(its.y.download() == Floats(size, 4.0f));
}

TEST_CASE("graphs: memory that a graph allocates stays when it is recorded again") {
    Scene its;
    const GraphExec exec = Graph::record(its.device, [&](const Queue& q, GraphParameters& parameters) {
                               Buffer<float> between = q.buffer<float>(size, "between");
                               q.launch(scale, its.all, between, its.x, parameters.number("by", 2.0f), size);
                               q.launch(scale, its.all, its.y, between, 1.0f, size);
                           }).instantiate();
    exec.launch(its.device);
    exec.set("by", 4.0f);
    exec.launch(its.device);
    CHECK(its.y.download() == Floats(size, 4.0f));
}

TEST_CASE("graphs: a finding names where it was recorded and where the graph was launched") {
    Scene its;
    const GraphExec exec = Graph::record(its.device, [&](const Queue& q) {
                               q.launch(increment, its.all, its.x, size);
                               q.launch(increment, its.all, its.x.slice(0, 32), size);
                               q.launch(increment, its.all, its.y, size);
                           }).instantiate();
    exec.launch(its.stream);
    const std::string message = message_of([&] { its.stream.synchronize(); });
    CHECK_THAT(message, Catch::Contains("a slice of 32 elements") && Catch::Contains("recorded here") &&
                            Catch::Contains("its graph was launched here, on stream 1"));
    CHECK(its.y.download() == Floats(size, 1.0f));  // what follows is done, as on a stream
}

TEST_CASE("graphs: text and pictures") {
    Scene its;
    const Graph graph = Graph::record(its.device, [&](const Queue& q) {
        q.fill(its.x, 1.0f);
        its.other.wait(q.record());
        its.other.launch(increment, its.all, its.y, size);
        q.launch(increment, its.all, its.x, size);
        q.wait(its.other.record());
        q.call([] {});
    });
    CHECK(graph.dot() == R"(digraph ikat {
    node [shape=box, style=filled];
    n0 [label="fill x\n256 bytes", fillcolor="#f4ecc8"];
    n1 [label="kernel increment\n2 blocks of 32", fillcolor="#cfe3f7"];
    n0 -> n1;
    n2 [label="kernel increment\n2 blocks of 32", fillcolor="#cfe3f7"];
    n0 -> n2;
    n3 [label="host call of the program\n", fillcolor="#f3d6d6"];
    n1 -> n3;
    n2 -> n3;
}
)");
    CHECK_THAT(graph.json(), Catch::Contains(R"({"id":2,"kind":"kernel","name":"increment",)"
                                             R"("detail":"2 blocks of 32","after":[0],"recorded at":")"));
    const std::string picture = graph.svg();
    CHECK_THAT(picture, Catch::StartsWith("<svg xmlns=") && Catch::EndsWith("</svg>\n"));
    CHECK(std::ranges::count(picture, '\n') == 1 + 1 + 4 + 4 * 3 + 1);
}

}  // namespace
}  // namespace ikat::tests::graphs
