// SPDX-License-Identifier: Apache-2.0
// Bodies of graphs, which conditions decide about: what is done, how often, what is found, and what is refused.
#include <ikat/graph.hpp>
#include <ikat/stdlib.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/environment.hpp"
#include "tests/message.hpp"

namespace ikat::tests {
namespace {
namespace graph_conditions {

using namespace runtime;

constexpr std::uint32_t size = 64;

const auto increment = kernel("increment", params("x"), [](InOut<float> x) { x[global_id().x] += 1.0f; });
const auto add_number = kernel("add_number", params("x", "number"), [](InOut<float> x, In<std::uint32_t> number) {
    x[global_id().x] += cast<float>(number[0u]);
});
/// One less; the condition is whether anything is left.
const auto count_down = kernel("count_down", params("left", "more"), [](InOut<std::uint32_t> left, Condition more) {
    const u32 now = left[0u] - 1u;
    left[0u] = now;
    set_condition(more, now > 0u);
});
const auto set_to = kernel("set_to", params("condition", "value"),
                           [](Condition condition, u32 value) { set_condition(condition, value); });
const auto write_past = kernel("write_past", params("x"), [](InOut<float> x) { x[global_id().x + 1u] = 0.0f; });

struct Scene {
    Device device;
    Stream stream = device.stream(), other = device.stream();
    Buffer<float> x = device.upload(std::vector<float>(size), "x"), y = device.upload(std::vector<float>(size), "y");
    Buffer<std::uint32_t> left = device.upload(std::vector<std::uint32_t>{5}, "left");
    Grid all = grid(size, 32), one{{1}, {1}};

    explicit Scene(std::string_view schedule = "0", std::uint64_t rounds = 0)
        : device(Device::open({.device = "emulator", .threads = 1, .graph_rounds = rounds, .schedule = schedule})) {}
    GraphExec exec(const std::function<void(const Queue&)>& f) const { return Graph::record(device, f).instantiate(); }
    float sum_of_x(const GraphExec& graph) {
        graph.launch(stream);
        stream.synchronize();
        return x.download()[size - 1];
    }
};

}  // namespace graph_conditions

using namespace graph_conditions;

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

TEST_CASE("conditions: bodies in bodies, with branches, memory, functions of the library and of the program") {
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
                stdlib::sum(body, its.x, sum);
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

TEST_CASE("conditions: a loop without end is found, and the graph goes on after it") {
    const Environment rounds("IKAT_GRAPH_ROUNDS", "50");
    Scene its;
    const auto exec = [&](std::uint32_t first) {
        return its.exec([&, first](const Queue& q) {
            const GraphCondition more = graph_condition(q, 1);
            q.fill(its.left, first);
            graph_while(q, more, [&](const Queue& body) {
                body.launch(increment, its.all, its.x);
                body.launch(count_down, its.one, its.left, more);
            });
            q.launch(increment, its.all, its.y);
        });
    };
    const GraphExec right = exec(50), endless = exec(51);
    CHECK(its.sum_of_x(right) == 50.0f);
    endless.launch(its.stream);
    const std::string message = message_of([&] { its.stream.synchronize(); });
    CHECK_THAT(message, contains("the loops of a graph have done 50 rounds, and this one goes on") &&
                            contains("graph_conditions_test.cpp:" + std::to_string(__LINE__ - 12)) &&
                            contains("set the condition to 0") && contains("IKAT_GRAPH_ROUNDS") &&
                            contains("its graph was launched here, on stream 1"));
    CHECK(its.x.download()[0] == 100.0f);
    CHECK(its.y.download()[0] == 2.0f);
    const Environment wrong("IKAT_GRAPH_ROUNDS", "many");
    CHECK_THAT(message_of([] { Scene(); }), contains("IKAT_GRAPH_ROUNDS is 'many'"));
}

TEST_CASE("conditions: loops in loops share the budget of a launch") {
    const Environment rounds("IKAT_GRAPH_ROUNDS", "5");  // for those that do not say it
    Scene its("0", 12);
    Buffer<std::uint32_t> again = its.device.upload(std::vector<std::uint32_t>(1), "again");
    const auto message = [&](std::uint32_t outer, std::uint32_t inner) {
        const GraphExec exec = its.exec([&](const Queue& q) {
            const GraphCondition more = graph_condition(q, 1);
            q.fill(again, outer);
            graph_while(q, more, [&](const Queue& body) {
                const GraphCondition most = graph_condition(body, 1);
                body.fill(its.left, inner);
                graph_while(body, most, [&](const Queue& deep) { deep.launch(count_down, its.one, its.left, most); });
                body.launch(count_down, its.one, again, more);
            });
        });
        exec.launch(its.stream);
        return message_of([&] { its.stream.synchronize(); });
    };
    CHECK(message(3, 3) == "");
    CHECK_THAT(message(3, 4), contains("have done 12 rounds") && contains("in round 3 of this loop"));
}

TEST_CASE("conditions: a mistake in a body ends its loop, and says in which round") {
    Scene its;
    const GraphExec exec = its.exec([&](const Queue& q) {
        const GraphCondition more = graph_condition(q, 1), past = graph_condition(q, 0);
        graph_while(q, more, [&](const Queue& body) {
            body.launch(count_down, its.one, its.left, more);
            graph_if(body, past, [&](const Queue& deep) { deep.launch(write_past, its.all, its.x); });
            body.launch(set_to, its.one, past, 1u);
        });
        q.launch(increment, its.all, its.y);
    });
    exec.launch(its.stream);
    const std::string message = message_of([&] { its.stream.synchronize(); });
    CHECK_THAT(message, contains("buffer 'x'"));
    CHECK_THAT(message, contains("recorded here") && contains("in the body of this node") &&
                            contains("in round 2 of this loop") && contains("its graph was launched here"));
    CHECK(its.left.download()[0] == 3);
    CHECK(its.y.download()[0] == 1.0f);
}

TEST_CASE("conditions: work of a body races with branches of the graph and with other streams") {
    const auto found = [](bool in_graph, bool is_ordered, const char* schedule) {
        Scene its(schedule);
        const GraphExec exec = its.exec([&](const Queue& q) {
            const GraphCondition more = graph_condition(q, 1);
            if (in_graph) {
                its.other.wait(q.record());
                its.other.launch(increment, its.all, is_ordered ? its.y : its.x);
            }
            graph_while(q, more, [&](const Queue& body) {
                body.launch(increment, its.all, its.x);
                body.launch(count_down, its.one, its.left, more);
            });
            if (in_graph) q.wait(its.other.record());
        });
        exec.launch(its.stream);
        if (!in_graph) {
            if (is_ordered) its.other.wait(its.stream.record());
            its.other.launch(increment, its.all, its.x);
        }
        return message_of([&] { its.device.synchronize(); });
    };
    for (const char* schedule : {"0", "1", "2"}) {
        CHECK(found(true, true, schedule) == "");
        CHECK(found(false, true, schedule) == "");
        const std::string branches = found(true, false, schedule), streams = found(false, false, schedule);
        CHECK_THAT(branches, contains("kernel 'increment' in branch") && contains("nothing orders the two"));
        CHECK_THAT(streams, contains("kernel 'increment' on stream") && contains("nothing orders the two"));
    }
}

TEST_CASE("conditions: branches of a body race, and so does what sets a condition beside its node") {
    const auto found = [](bool is_right, bool of_condition, const char* schedule) {
        Scene its(schedule);
        its.exec([&](const Queue& q) {
               const GraphCondition condition = graph_condition(q, 1);
               const auto fork = [&](const Queue& on, const auto& beside, const auto& its_own) {
                   its.other.wait(on.record());
                   beside();
                   if (is_right) on.wait(its.other.record());
                   its_own();
                   if (!is_right) on.wait(its.other.record());
               };
               if (of_condition)
                   fork(
                       q, [&] { its.other.launch(set_to, its.one, condition, 1u); },
                       [&] {
                           graph_if(q, condition, [&](const Queue& body) { body.launch(increment, its.all, its.x); });
                       });
               else
                   graph_if(q, condition, [&](const Queue& body) {
                       fork(
                           body, [&] { its.other.launch(increment, its.all, its.x); },
                           [&] { body.launch(increment, its.all, its.x); });
                   });
           })
            .launch(its.stream);
        return message_of([&] { its.stream.synchronize(); });
    };
    for (const char* schedule : {"0", "1", "2"})
        for (const bool of_condition : {true, false}) {
            CHECK(found(true, of_condition, schedule) == "");
            CHECK_THAT(found(false, of_condition, schedule), contains("nothing orders the two"));
        }
    CHECK_THAT(found(false, true, "0"), contains("a conditional node") && contains("buffer 'condition'"));
}

TEST_CASE("conditions: memory of a body is undefined in each round") {
    Scene its;
    const GraphExec exec = its.exec([&](const Queue& q) {
        const GraphCondition more = graph_condition(q, 1), written = graph_condition(q, 1);
        graph_while(q, more, [&](const Queue& body) {
            Buffer<float> between = body.buffer<float>(size, "between");
            graph_if(body, written, [&](const Queue& deep) { deep.fill(between, 1.0f); });
            body.launch(increment, its.all, between);
            body.launch(set_to, its.one, written, 0u);
            body.launch(count_down, its.one, its.left, more);
        });
    });
    exec.launch(its.stream);
    CHECK_THAT(message_of([&] { its.stream.synchronize(); }),
               contains("between") && contains("undefined") && contains("in round 2 of this loop"));
}

TEST_CASE("conditions: a host buffer that a body copies must not change before that") {
    Scene its;
    HostBuffer<float> in = its.device.host_buffer<float>(size);
    std::ranges::fill(in, 3.0f);
    const GraphExec exec = its.exec([&](const Queue& q) {
        q.fill(its.y, 1.0f);
        const GraphCondition yes = graph_condition(q, 1);
        graph_if(q, yes, [&](const Queue& body) {
            body.fill(its.y, 2.0f);
            body.upload_async(its.x.view(1, size), in);
        });
    });
    CHECK(its.sum_of_x(exec) == 3.0f);
    exec.launch(its.stream);
    in[5] = 4.0f;
    CHECK_THAT(message_of([&] { its.stream.synchronize(); }), contains("has changed the memory of the host"));
}

TEST_CASE("conditions: what cannot be recorded is refused with its line") {
    Scene its;
    const auto message = [&](const auto& record) {
        return message_of([&] { Graph::record(its.device, [&](const Queue& q) { record(q); }); });
    };
    const auto nothing = [](const Queue&) {};
    CHECK_THAT(message_of([&] { graph_condition(its.stream, 1); }),
               contains("graph_conditions_test.cpp") && contains("where no graph is recorded"));
    std::vector<GraphCondition> kept;
    Graph::record(its.device, [&](const Queue& q) { kept.push_back(graph_condition(q, 1)); });
    CHECK_THAT(message([&](const Queue& q) { graph_if(q, kept[0], nothing); }),
               contains("a condition of another graph"));
    CHECK_THAT(message([&](const Queue& q) {
                   graph_if(q, graph_condition(q, 1), [&](const Queue&) { q.launch(increment, its.all, its.x); });
               }),
               contains("while a body of its graph is recorded") && contains("give it to the queue of the body"));
    CHECK_THAT(message([&](const Queue& q) {
                   const GraphCondition condition = graph_condition(q, 1);
                   graph_if(q, condition, [&](const Queue&) { graph_if(q, condition, nothing); });
               }),
               contains("while another body of its graph is recorded"));
    CHECK_THAT(message([&](const Queue& q) {
                   const Event before = q.record();
                   graph_if(q, graph_condition(q, 1), [&](const Queue& body) { body.wait(before); });
               }),
               contains("waits for an event from outside of it") && contains("before the body"));
    CHECK_THAT(message([&](const Queue& q) {
                   graph_if(q, graph_condition(q, 1), [&](const Queue& body) {
                       its.other.wait(body.record());
                       its.other.launch(increment, its.all, its.x);
                   });
               }),
               contains("does not wait for") && contains("body.wait(stream.record())"));
    CHECK_THAT(
        message([&](const Queue& q) { graph_if(q, graph_condition(q, 1), [&](const Queue&) { its.x.download(); }); }),
        contains("while a graph is recorded"));
    CHECK_THAT(message([&](const Queue& q) {
                   std::optional<Queue> body;
                   graph_if(q, graph_condition(q, 1), [&](const Queue& of) { body.emplace(of); });
                   body->launch(increment, its.all, its.x);
               }),
               contains("is given work after it has ended"));
    // A recording that was given up leaves nothing behind.
    CHECK(its.sum_of_x(its.exec([&](const Queue& q) { q.launch(increment, its.all, its.x); })) == 1.0f);
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
}  // namespace ikat::tests
