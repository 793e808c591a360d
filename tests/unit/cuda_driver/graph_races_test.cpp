// SPDX-License-Identifier: Apache-2.0
// Programs with graphs that order too little, each beside the right one: the first is warned of or fails, the other
// is not accused.
#include <functional>
#include <thread>

#include "tests/unit/cuda_driver/graphs.hpp"

namespace ikat::tests {
namespace {
namespace graph_races {

/// Two kernels whose work on the first word has to be ordered.
struct Scene : Words {
    std::string first_name, second_name;
    CUfunction first = appending_kernel(&first_name), second = appending_kernel(&second_name);
    TestStream a, b;
    TestEvent event;

    void record(CUstream on) { WORKS(call("cuEventRecord", event.handle, on)); }
    void wait(CUstream on) { WORKS(call("cuStreamWaitEvent", on, event.handle, 0u)); }
    void run(CUfunction kernel, CUstream on) { WORKS(append(kernel, at, 1, on)); }
};

/// Whether the program says that nothing orders the two kernels.
void check(bool is_right, const std::function<void(Scene&, bool is_right)>& program) {
    Scene its;
    const std::string text = said([&] {
        program(its, is_right);
        WORKS(call("cuCtxSynchronize"));
    });
    if (is_right)
        CHECK(text == "");
    else
        CHECK_THAT(text, contains("and nothing orders the two") && contains(its.first_name));
    CHECK(its.value() == 11);
}
void check(const std::function<void(Scene&, bool is_right)>& program) {
    for (const bool is_right : {false, true}) check(is_right, program);
}

TEST_CASE("graph races: two branches that touch the same bytes") {
    check([](Scene& its, bool is_right) {
        TestGraph graph;
        const CUgraphNode root = graph.empty(), one = graph.append(its.first, its.at, 1, {root});
        graph.append(its.second, its.at, 1, is_right ? Nodes{root, one} : Nodes{root});
        WORKS(TestExec(graph).launch(its.a));
    });
}

TEST_CASE("graph races: two roots that touch the same bytes") {
    check([](Scene& its, bool is_right) {
        TestGraph graph;
        const CUgraphNode one = graph.append(its.first, its.at, 1);
        graph.append(its.second, its.at, 1, is_right ? Nodes{one} : Nodes{});
        WORKS(TestExec(graph).launch(its.a));
    });
}

TEST_CASE("graph races: a node that is joined to the wrong branch") {
    check([](Scene& its, bool is_right) {
        TestGraph graph;
        const CUgraphNode root = graph.empty(), one = graph.append(its.first, its.at, 1, {root});
        const CUgraphNode other = graph.fill(its.word(1), 5, {root});
        graph.append(its.second, its.at, 1, {is_right ? one : other});
        WORKS(TestExec(graph).launch(its.a));
    });
}

TEST_CASE("graph races: a kernel of a child and one beside it") {
    check([](Scene& its, bool is_right) {
        TestGraph graph, child;
        const CUgraphNode inner = child.append(its.first, its.at, 1);
        child.fill(its.word(2), 5, {inner});
        CUgraphNode node = nullptr;
        WORKS(call("cuGraphAddChildGraphNode", &node, graph.handle, static_cast<CUgraphNode*>(nullptr), std::size_t{0},
                   child.handle));
        graph.append(its.second, its.at, 1, is_right ? Nodes{node} : Nodes{});
        WORKS(TestExec(graph).launch(its.a));
    });
}

TEST_CASE("graph races: work of another stream after the launch") {
    check([](Scene& its, bool is_right) {
        TestGraph graph;
        graph.append(its.first, its.at, 1);
        const TestExec exec(graph);
        WORKS(exec.launch(its.a));
        its.record(its.a);
        if (is_right) its.wait(its.b);
        its.run(its.second, its.b);
    });
}

TEST_CASE("graph races: a launch after work of another stream") {
    check([](Scene& its, bool is_right) {
        TestGraph graph;
        graph.append(its.second, its.at, 1);
        const TestExec exec(graph);
        its.run(its.first, its.b);
        its.record(its.b);
        if (is_right) its.wait(its.a);
        WORKS(exec.launch(its.a));
    });
}

TEST_CASE("graph races: an event that is recorded before the launch orders nothing of it") {
    check([](Scene& its, bool is_right) {
        TestGraph graph;
        graph.append(its.first, its.at, 1);
        const TestExec exec(graph);
        if (!is_right) its.record(its.a);
        WORKS(exec.launch(its.a));
        if (is_right) its.record(its.a);
        its.wait(its.b);
        its.run(its.second, its.b);
    });
}

TEST_CASE("graph races: two graphs on two streams") {
    check([](Scene& its, bool is_right) {
        TestGraph one, other;
        one.append(its.first, its.at, 1);
        other.append(its.second, its.at, 1);
        const TestExec first(one), second(other);
        WORKS(first.launch(its.a));
        WORKS(second.launch(is_right ? its.a : its.b));
    });
}

TEST_CASE("graph races: one executable graph is launched twice and waits for itself, two of one graph do not") {
    for (const bool is_right : {false, true}) {
        Scene its;
        TestGraph graph;
        const CUgraphNode one = graph.append(its.first, its.at, 1);
        graph.fill(its.word(1), 5, {one});
        graph.append(its.second, its.at, 2, {one});  // a branch of its own
        const TestExec exec(graph), other(graph);
        const std::string text = said([&] {
            WORKS(exec.launch(its.a));
            WORKS((is_right ? exec : other).launch(its.b));
        });
        if (is_right)
            CHECK(text == "");
        else
            CHECK_THAT(text, contains("and nothing orders the two"));
        CHECK(its.value() == 1212);
    }
}

TEST_CASE("graph races: a node of an event before the work that it is to follow") {
    check([](Scene& its, bool is_right) {
        TestGraph graph;
        CUgraphNode node = nullptr;
        const CUgraphNode one = graph.append(its.first, its.at, 1);
        WORKS(call("cuGraphAddEventRecordNode", &node, graph.handle, &one, std::size_t{is_right}, its.event.handle));
        WORKS(TestExec(graph).launch(its.a));
        its.wait(its.b);
        its.run(its.second, its.b);
    });
}

TEST_CASE("graph races: a capture whose fork waits for too little") {
    check([](Scene& its, bool is_right) {
        const TestEvent joined;
        WORKS(call("cuStreamBeginCapture", its.a.handle));
        if (!is_right) its.record(its.a);
        its.run(its.first, its.a);
        if (is_right) its.record(its.a);
        its.wait(its.b);
        its.run(its.second, its.b);
        WORKS(call("cuEventRecord", joined.handle, its.b.handle));
        WORKS(call("cuStreamWaitEvent", its.a.handle, joined.handle, 0u));
        CUgraph captured = nullptr;
        WORKS(call("cuStreamEndCapture", its.a.handle, &captured));
        const TestGraph graph(captured);
        WORKS(TestExec(graph).launch(its.a));
    });
}

TEST_CASE("graph races: a node that is disabled orders as an empty one") {
    check([](Scene& its, bool is_right) {
        TestGraph graph;
        const CUgraphNode one = graph.append(its.first, its.at, 1);
        const CUgraphNode middle = graph.fill(its.word(1), 4, is_right ? Nodes{one} : Nodes{});
        graph.append(its.second, its.at, 1, {middle});
        const TestExec exec(graph);
        WORKS(call("cuGraphNodeSetEnabled", exec.handle, middle, 0u));
        WORKS(exec.launch(its.a));
        CHECK(its.value(1) == 0);
    });
}

TEST_CASE("graph races: the default stream and those that wait for it") {
    for (const unsigned flags : {0u, 1u}) {
        Scene its;
        const TestStream stream(flags);
        TestGraph graph;
        graph.append(its.first, its.at, 1);
        const TestExec exec(graph);
        const std::string text = said([&] {
            WORKS(exec.launch(stream));
            its.run(its.second, nullptr);
        });
        CHECK((text == "") == (flags == 0));
    }
}

TEST_CASE("graph races: memory of the host that a graph writes and another stream reads") {
    for (const bool is_right : {false, true}) {
        Scene its;
        void* memory = nullptr;
        WORKS(call("cuMemHostAlloc", &memory, std::size_t{4}, 0u));
        TestGraph graph;
        CUgraphNode node = nullptr;
        const CUDA_MEMCPY3D down = row(memory, 0, nullptr, its.at, 4);
        WORKS(call("cuGraphAddMemcpyNode", &node, graph.handle, static_cast<CUgraphNode*>(nullptr), std::size_t{0},
                   &down, its.context.handle));
        const TestExec exec(graph);
        const std::string text = said([&] {
            WORKS(exec.launch(its.a));
            if (is_right) WORKS(call("cuStreamSynchronize", its.a.handle));
            WORKS(call("cuMemcpyHtoDAsync_v2", its.word(1), static_cast<const void*>(memory), std::size_t{4},
                       its.b.handle));
        });
        WORKS(call("cuCtxSynchronize"));
        WORKS(call("cuMemFreeHost", memory));
        CHECK((text == "") == is_right);
    }
}

TEST_CASE("graph races: memory that is freed before the launch") {
    for (const bool is_right : {false, true}) {
        Scene its;
        CUdeviceptr other = 0;
        WORKS(call("cuMemAlloc_v2", &other, std::size_t{4}));
        WORKS(call("cuMemsetD32_v2", other, 0u, std::size_t{1}));
        WORKS(call("cuCtxSynchronize"));
        TestGraph graph;
        graph.append(its.first, other, 1);
        const TestExec exec(graph);
        const std::string text = said([&] {
            if (!is_right) WORKS(call("cuMemFree_v2", other));
            WORKS(exec.launch(its.a));  // reported by what comes after
        });
        CHECK(call("cuStreamSynchronize", its.a.handle) == (is_right ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS));
        if (is_right)
            CHECK(text == "");
        else
            CHECK_THAT(text,
                       contains("cuGraphLaunch") && contains("which has been released") && contains(its.first_name));
    }
}

TEST_CASE("graph races: a copy whose memory is freed before the launch") {
    Scene its;
    CUdeviceptr other = 0;
    WORKS(call("cuMemAlloc_v2", &other, std::size_t{4}));
    TestGraph graph;
    graph.fill(other, 1);
    const TestExec exec(graph);
    WORKS(call("cuMemFree_v2", other));
    CHECK(exec.launch(its.a) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("graph races: the order of branches is the seed's, and what is wrong is found in each") {
    // Both orders of two branches that nothing orders give other digits.
    Scene its;
    TestGraph graph;
    graph.append(its.first, its.at, 1);
    graph.append(its.second, its.at, 2);
    const TestExec exec(graph);
    WORKS(exec.launch(its.a));
    const unsigned value = its.value();
    CHECK((value == 12 || value == 21));
}

}  // namespace graph_races
}  // namespace
}  // namespace ikat::tests
