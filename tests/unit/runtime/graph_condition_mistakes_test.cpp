// SPDX-License-Identifier: Apache-2.0
// Mistakes with conditions in graphs: what is found, and what is refused.
#include <ikat/graph.hpp>
#include <ikat/ikat.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/environment.hpp"
#include "tests/message.hpp"
#include "tests/unit/runtime/condition_scene.hpp"

namespace ikat::tests::graph_conditions {
namespace {

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
                            contains("graph_condition_mistakes_test.cpp:" + std::to_string(__LINE__ - 12)) &&
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
               contains("graph_condition_mistakes_test.cpp") && contains("where no graph is recorded"));
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

}  // namespace
}  // namespace ikat::tests::graph_conditions
