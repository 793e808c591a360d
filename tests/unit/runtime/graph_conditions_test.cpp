// SPDX-License-Identifier: Apache-2.0
// Bodies of graphs, which conditions decide about: what is done, how often, what is found, and what is refused.
#include <ikat/graph.hpp>
#include <ikat/ikat.hpp>

#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/environment.hpp"
#include "tests/message.hpp"
#include "tests/unit/runtime/condition_scene.hpp"

namespace ikat::tests::graph_conditions {
namespace {

TEST_CASE("conditions: an if does its body when the condition is not 0 there") {
    for (const std::uint32_t value : {0u, 1u, 2u, 0x80000000u}) {
        Scene its;
        const GraphExec exec = its.exec([&](const Queue& q) {
            const GraphCondition condition = graph_condition(q, value == 1 ? 1 : 0);
            if (value > 1) q.launch(set_to, its.one, condition, value);
            graph_if(q, condition, [&](const Queue& body) { body.launch(increment, its.all, its.x); });
            q.launch(increment, its.all, its.y);
        });
        CHECK(its.sum_of_x(exec) == (value ? 1.0f : 0.0f));
        CHECK(its.sum_of_x(exec) == (value ? 2.0f : 0.0f));
        CHECK(its.y.download()[0] == 2.0f);
    }
}

TEST_CASE("conditions: a while does its body until a kernel of it says no, in each launch anew") {
    Scene its;
    const Graph graph = Graph::record(its.device, [&](const Queue& q) {
        const GraphCondition more = graph_condition(q, 1);
        q.fill(its.left, 5u);
        graph_while(q, more, [&](const Queue& body) {
            body.launch(increment, its.all, its.x);
            body.launch(count_down, its.one, its.left, more);
        });
    });
    CHECK(graph.nodes() == 5);
    CHECK(graph.edges() == 3);
    const GraphExec exec = graph.instantiate();
    CHECK(its.sum_of_x(exec) == 5.0f);
    CHECK(its.sum_of_x(exec) == 10.0f);
    exec.launch(its.device);
    CHECK(its.x.download()[0] == 15.0f);
}

TEST_CASE("conditions: a while is not done at all when its condition is 0 at first") {
    Scene its;
    CHECK(its.sum_of_x(its.exec([&](const Queue& q) {
        const GraphCondition more = graph_condition(q, 0);
        graph_while(q, more, [&](const Queue& body) { body.launch(increment, its.all, its.x); });
    })) == 0.0f);
}

TEST_CASE("conditions: bodies in bodies, with branches, memory and functions of the program") {
    for (const char* schedule : {"0", "1", "2", "3"}) {
        Scene its(schedule);
        Buffer<std::uint32_t> rounds = its.device.upload(std::vector<std::uint32_t>{0}, "rounds");
        Buffer<float> sum = its.device.upload(std::vector<float>(1), "sum");
        int calls = 0;
        const GraphExec exec = its.exec([&](const Queue& q) {
            const GraphCondition outer = graph_condition(q, 1);
            q.fill(rounds, 3u);
            graph_while(q, outer, [&](const Queue& body) {
                const GraphCondition inner = graph_condition(body, 1);  // 1 again in each round
                body.fill(its.left, 2u);
                graph_while(body, inner, [&](const Queue& deep) {
                    Buffer<float> between = deep.buffer<float>(size, "between");
                    deep.copy(between.view(1, size), its.x.view(1, size));
                    its.other.wait(deep.record());
                    its.other.launch(increment, its.all, its.y);
                    deep.launch(increment, its.all, between);
                    deep.copy(its.x.view(1, size), between.view(1, size));
                    deep.wait(its.other.record());
                    deep.launch(count_down, its.one, its.left, inner);
                });
                body.launch(add_up, its.one, sum, its.x);
                body.call([&] { ++calls; });
                body.launch(count_down, its.one, rounds, outer);
            });
            its.other.wait(q.record());  // which is a branch of the graph after one of a body
            its.other.launch(increment, its.all, its.y);
            q.wait(its.other.record());
        });
        for (int launch = 1; launch <= 2; ++launch) {
            CHECK(its.sum_of_x(exec) == float(6 * launch));
            CHECK(its.y.download()[0] == float(7 * launch));
            CHECK(sum.download()[0] == float(size * 6 * launch));
            CHECK(calls == 3 * launch);
        }
    }
}

TEST_CASE("conditions: a stream that is captured has bodies, too") {
    Scene its;
    const Graph graph = its.stream.capture([&] {
        const GraphCondition more = graph_condition(its.stream, 1);
        graph_while(its.stream, more, [&](const Queue&) {
            its.stream.launch(increment, its.all, its.x);
            its.stream.launch(count_down, its.one, its.left, more);
        });
        its.stream.launch(increment, its.all, its.x);
    });
    CHECK(its.sum_of_x(graph.instantiate()) == 6.0f);
}

TEST_CASE("conditions: a graph with bodies is part of another, in a body of that") {
    Scene its;
    const GraphExec inner = its.exec([&](const Queue& q) {
        const GraphCondition more = graph_condition(q, 1);
        graph_while(q, more, [&](const Queue& body) {
            body.launch(increment, its.all, its.x);
            body.launch(count_down, its.one, its.left, more);
        });
        q.fill(its.left, 2u);
    });
    const Graph outer = Graph::record(its.device, [&](const Queue& q) {
        const GraphCondition condition = graph_condition(q, 1);
        inner.launch(q);
        graph_if(q, condition, [&](const Queue& body) { inner.launch(body); });
    });
    CHECK(its.sum_of_x(outer.instantiate()) == 7.0f);
}

TEST_CASE("conditions: parameters by name within bodies") {
    Scene its;
    Buffer<float> z = its.device.upload(std::vector<float>(size), "z");
    const GraphExec exec =
        Graph::record(its.device, [&](const Queue& q, GraphParameters& parameters) {
            const GraphCondition more = graph_condition(q, 1), maybe = graph_condition(q, 1);
            q.fill(its.left, parameters.number("rounds", 3u));
            graph_while(q, more, [&](const Queue& body) {
                body.launch(add_number, its.all, parameters.buffer("x", its.x), parameters.device_number("number", 2u));
                graph_if(body, maybe,
                         [&](const Queue& deep) { deep.launch(increment, its.all, parameters.buffer("y", its.y)); });
                body.launch(count_down, its.one, its.left, more);
            });
        }).instantiate();
    CHECK(its.sum_of_x(exec) == 6.0f);
    exec.set("rounds", 2u);
    exec.set("number", 10u);
    exec.set("y", z);
    exec.launch(its.stream);
    exec.set("x", z);
    exec.update();  // what has been enqueued stays
    its.stream.synchronize();
    CHECK(its.x.download()[0] == 26.0f);
    CHECK(its.y.download()[0] == 3.0f);
    CHECK(z.download()[0] == 2.0f);
    exec.launch(its.stream);
    its.stream.synchronize();
    CHECK(its.x.download()[0] == 26.0f);
    CHECK(z.download()[0] == 24.0f);
}

TEST_CASE("conditions: an update that would lead to other bodies is refused") {
    Scene its;
    const auto changed = [&](bool other_condition, bool other_kind, bool other_body) {
        const GraphExec exec = Graph::record(its.device, [&, other_condition, other_kind, other_body](
                                                             const Queue& q, GraphParameters& ask) {
                                   const bool is_other = ask.number("other", 0u) != 0;
                                   const GraphCondition first = graph_condition(q, 0), second = graph_condition(q, 0);
                                   const auto body = [&](const Queue& on) {
                                       on.launch(increment, its.all, its.x);
                                       if (is_other && other_body) on.launch(increment, its.all, its.x);
                                   };
                                   const GraphCondition& decides = is_other && other_condition ? second : first;
                                   is_other&& other_kind ? graph_while(q, decides, body) : graph_if(q, decides, body);
                                   if (!is_other && other_body) q.launch(increment, its.all, its.x);
                               }).instantiate();
        exec.set("other", 1u);
        return message_of([&] { exec.update(); });
    };
    CHECK_THAT(changed(true, false, false), contains("node 2: a body that another condition decides about"));
    CHECK_THAT(changed(false, true, false), contains("node 2: a body that another condition decides about"));
    CHECK_THAT(changed(false, false, true), contains("node 2: the body has 2 nodes instead of 1"));
}

TEST_CASE("conditions: a kernel runs outside of a graph with a buffer of one number") {
    Scene its;
    Buffer<std::uint32_t> condition = its.device.upload(std::vector<std::uint32_t>{9}, "condition");
    its.device.launch(count_down, its.one, its.left, condition);
    CHECK(condition.download()[0] == 1);
    its.device.launch(set_to, its.one, arg("value", 7u), arg("condition", condition));
    CHECK(condition.download()[0] == 7);
}

TEST_CASE("conditions: a buffer that ends in a body ends after it") {
    Scene its;
    const GraphExec exec = its.exec([&](const Queue& q) {
        auto between = std::make_unique<Buffer<float>>(q.buffer<float>(size, "between"));
        q.fill(*between, 2.0f);
        graph_if(q, graph_condition(q, 1), [&](const Queue& body) {
            body.copy(its.x.view(1, size), between->view(1, size));
            between.reset();
        });
    });
    CHECK(its.sum_of_x(exec) == 2.0f);
    CHECK(its.sum_of_x(exec) == 2.0f);
}

TEST_CASE("conditions: pictures show bodies") {
    Scene its;
    const Graph graph = Graph::record(its.device, [&](const Queue& q) {
        const GraphCondition more = graph_condition(q, 1);
        graph_while(q, more, [&](const Queue& body) {
            body.launch(increment, its.all, its.x);
            body.launch(count_down, its.one, its.left, more);
        });
        q.launch(increment, its.all, its.y);
    });
    CHECK(graph.dot() == R"(digraph ikat {
    node [shape=box, style=filled];
    n0 [label="fill condition\n4 bytes", fillcolor="#f4ecc8"];
    n1 [label="while condition\na body of 2 nodes", fillcolor="#e6dcf2"];
    n0 -> n1;
    n1 -> n2 [style=dashed];
    subgraph cluster_1 {
        label="while condition";
        n2 [label="kernel increment\n2 blocks of 32", fillcolor="#cfe3f7"];
        n3 [label="kernel count_down\n1 blocks of 1", fillcolor="#cfe3f7"];
        n2 -> n3;
    }
    n4 [label="kernel increment\n2 blocks of 32", fillcolor="#cfe3f7"];
    n1 -> n4;
}
)");
    CHECK_THAT(graph.json(),
               contains(R"({"id":1,"kind":"while","name":"condition","detail":"a body of 2 nodes","after":[0])") &&
                   contains(R"("body":[
{"id":2,"kind":"kernel","name":"increment")") &&
                   contains(R"({"id":4,"kind":"kernel","name":"increment","detail":"2 blocks of 32","after":[1])"));
    const std::string picture = graph.svg();
    CHECK_THAT(picture, contains("width=\"296\" height=\"460\""));
    CHECK_THAT(picture, contains("<rect x=\"24\" y=\"116\" width=\"248\" height=\"228\" rx=\"4\" fill=\"#e6dcf2\""));
    CHECK_THAT(picture, contains("<rect x=\"48\" y=\"184\" width=\"200\" height=\"44\""));
}

}  // namespace
}  // namespace ikat::tests::graph_conditions
