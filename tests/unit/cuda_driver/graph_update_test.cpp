// SPDX-License-Identifier: Apache-2.0
// What of an executable graph can be changed, and what of its memory.
#include <atomic>
#include <thread>

#include "tests/unit/cuda_driver/graphs.hpp"

namespace ikat::tests {
namespace {
namespace graph_updates {

TEST_CASE("graph updates: another graph of the same shape gives its parameters") {
    const Words words;
    const CUfunction kernel = appending_kernel(), other_kernel = appending_kernel();
    TestGraph graph, same;
    const CUgraphNode a = graph.append(kernel, words.at, 1);
    graph.append(kernel, words.at, 2, {a});
    const TestExec exec(graph);
    const CUgraphNode last = same.append(other_kernel, words.at, 4);  // in another order
    const CUgraphNode first = same.append(other_kernel, words.at, 3);
    WORKS(call("cuGraphAddDependencies", same.handle, &first, &last, std::size_t{1}));
    CUgraphExecUpdateResultInfo info{};
    WORKS(call("cuGraphExecUpdate_v2", exec.handle, same.handle, &info));
    CHECK((info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS && info.errorNode == nullptr));
    const TestStream stream;
    WORKS(exec.launch(stream));
    CHECK(words.value() == 34);
    void* parameters[2];
    CUdeviceptr address = words.at;
    unsigned digit = 9;
    parameters[0] = &address, parameters[1] = &digit;
    const CUDA_KERNEL_NODE_PARAMS params = appending(kernel, parameters);
    WORKS(call("cuGraphExecKernelNodeSetParams_v2", exec.handle, a, &params));  // nodes are still the first graph's
    CHECK(call("cuGraphExecKernelNodeSetParams_v2", exec.handle, first, &params) == CUDA_ERROR_INVALID_VALUE);
    WORKS(exec.launch(stream));
    CHECK(words.value() == 3494);
}

TEST_CASE("graph updates: what differs too much is refused, and changes nothing") {
    const Words words;
    const CUfunction kernel = appending_kernel();
    TestGraph graph;
    const CUgraphNode a = graph.append(kernel, words.at, 1), b = graph.append(kernel, words.at, 2, {a});
    graph.fill(words.word(1), 5, {b});
    const TestExec exec(graph);
    const auto refused = [&](TestGraph& from, CUgraphExecUpdateResult expected, CUgraphNode node) {
        CUgraphExecUpdateResultInfo info{};
        CHECK(call("cuGraphExecUpdate_v2", exec.handle, from.handle, &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
        CHECK(info.result == expected);
        if (node) CHECK(info.errorNode == node);
    };
    {
        TestGraph fewer;
        fewer.append(kernel, words.at, 7);
        refused(fewer, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr);
    }
    {
        TestGraph edges;
        const CUgraphNode c = edges.append(kernel, words.at, 7), d = edges.append(kernel, words.at, 7);
        const CUgraphNode e = edges.fill(words.word(1), 5, {c, d});
        refused(edges, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, e);
    }
    {
        TestGraph type;
        const CUgraphNode c = type.append(kernel, words.at, 7), d = type.empty({c});
        type.fill(words.word(1), 5, {d});
        refused(type, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, d);
    }
    {
        TestGraph shape;
        const CUgraphNode c = shape.append(kernel, words.at, 7), d = shape.append(kernel, words.at, 7, {c});
        CUgraphNode e = nullptr;
        const CUDA_MEMSET_NODE_PARAMS rows{words.at, 8, 1, 4, 1, 2};
        WORKS(call("cuGraphAddMemsetNode", &e, shape.handle, &d, std::size_t{1}, &rows, words.context.handle));
        refused(shape, CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, e);
    }
    CUgraphNode at_fault = nullptr;
    CUgraphExecUpdateResult result{};
    TestGraph none;
    CHECK(call("cuGraphExecUpdate", exec.handle, none.handle, &at_fault, &result) ==
          CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    CHECK(result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    WORKS(exec.launch(TestStream()));
    CHECK(words.value() == 12);
}

TEST_CASE("graph updates: single nodes take other parameters") {
    const Words words;
    const TestStream stream;
    const TestEvent event;
    TestGraph graph, child, other_child, wrong_child;
    unsigned in[2] = {5, 6};
    const auto no_nodes = static_cast<CUgraphNode*>(nullptr);
    CUgraphNode copy = nullptr, inner = nullptr, record = nullptr;
    CUDA_MEMCPY3D up = row(nullptr, words.word(1), &in[0], 0, 4);
    WORKS(call("cuGraphAddMemcpyNode", &copy, graph.handle, no_nodes, std::size_t{0}, &up, words.context.handle));
    const CUgraphNode fill = graph.fill(words.word(2), 1);
    const CUfunction kernel = appending_kernel();
    child.append(kernel, words.at, 1);
    other_child.append(kernel, words.at, 2);
    wrong_child.empty();
    WORKS(call("cuGraphAddChildGraphNode", &inner, graph.handle, no_nodes, std::size_t{0}, child.handle));
    WORKS(call("cuGraphAddEventRecordNode", &record, graph.handle, no_nodes, std::size_t{0}, event.handle));
    int calls[2] = {};
    const CUhostFn count = [](void* data) { ++*static_cast<int*>(data); };
    const CUgraphNode host = graph.host(count, &calls[0]);
    const TestExec exec(graph);
    up.srcHost = &in[1];
    WORKS(call("cuGraphExecMemcpyNodeSetParams", exec.handle, copy, &up, words.context.handle));
    up.Height = 2, up.srcPitch = up.dstPitch = 4;
    CHECK(call("cuGraphExecMemcpyNodeSetParams", exec.handle, copy, &up, words.context.handle) ==
          CUDA_ERROR_INVALID_VALUE);
    const CUDA_MEMSET_NODE_PARAMS filled{words.word(3), 0, 9, 4, 1, 1};
    WORKS(call("cuGraphExecMemsetNodeSetParams", exec.handle, fill, &filled, words.context.handle));
    WORKS(call("cuGraphExecChildGraphNodeSetParams", exec.handle, inner, other_child.handle));
    CHECK(call("cuGraphExecChildGraphNodeSetParams", exec.handle, inner, wrong_child.handle) ==
          CUDA_ERROR_INVALID_VALUE);
    const CUDA_HOST_NODE_PARAMS called{count, &calls[1]};
    WORKS(call("cuGraphExecHostNodeSetParams", exec.handle, host, &called));
    const TestEvent other;
    WORKS(call("cuGraphExecEventRecordNodeSetEvent", exec.handle, record, other.handle));
    CHECK(call("cuGraphExecEventWaitNodeSetEvent", exec.handle, record, other.handle) == CUDA_ERROR_INVALID_VALUE);
    WORKS(exec.launch(stream));
    WORKS(call("cuStreamSynchronize", stream.handle));
    CHECK((words.value(0) == 2 && words.value(1) == 6 && words.value(2) == 0 && words.value(3) == 9));
    CHECK((calls[0] == 0 && calls[1] == 1));
    float milliseconds = 0;
    CHECK(call("cuEventElapsedTime", &milliseconds, event.handle, other.handle) == CUDA_ERROR_INVALID_HANDLE);
    WORKS(call("cuEventElapsedTime", &milliseconds, other.handle, other.handle));
    std::uint64_t flags = 5;
    WORKS(call("cuGraphExecGetFlags", exec.handle, &flags));
    CHECK(flags == 0);
}

TEST_CASE("graph updates: a launch that is not done yet keeps what it was given") {
    const Words words;
    const CUfunction kernel = appending_kernel();
    const TestStream stream;
    std::atomic<bool> go = false;
    TestGraph graph;
    const CUgraphNode waits = graph.host(
        [](void* data) {
            while (!*static_cast<std::atomic<bool>*>(data)) std::this_thread::yield();
        },
        &go);
    const CUgraphNode node = graph.append(kernel, words.at, 1, {waits});
    const TestExec exec(graph);
    WORKS(exec.launch(stream));
    CUdeviceptr address = words.at;
    unsigned digit = 2;
    void* parameters[] = {&address, &digit};
    const CUDA_KERNEL_NODE_PARAMS params = appending(kernel, parameters);
    WORKS(call("cuGraphExecKernelNodeSetParams_v2", exec.handle, node, &params));
    go = true;
    WORKS(exec.launch(stream));
    CHECK(words.value() == 12);
}

TEST_CASE("graph updates: threads capture and launch graphs of their own") {
    const Words words(8);
    const CUfunction kernel = appending_kernel();
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (unsigned t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            const auto check = [&](CUresult result) { wrong += result != CUDA_SUCCESS; };
            check(call("cuCtxSetCurrent", words.context.handle));
            CUstream stream = nullptr;
            check(call("cuStreamCreate", &stream, 1u));
            for (int round = 0; round < 20; ++round) {
                CUgraph graph = nullptr;
                CUgraphExec exec = nullptr;
                check(call("cuStreamBeginCapture_v2", stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
                check(call("cuMemsetD32Async", words.word(t), 1u, std::size_t{1}, stream));
                check(append(kernel, words.word(t), t, stream));
                check(call("cuStreamEndCapture", stream, &graph));
                check(call("cuGraphInstantiateWithFlags", &exec, graph, 0ull));
                check(call("cuGraphDestroy", graph));
                check(call("cuGraphLaunch", exec, stream));
                check(call("cuGraphExecDestroy", exec));
                check(call("cuStreamSynchronize", stream));
            }
            check(call("cuStreamDestroy_v2", stream));
        });
    for (std::thread& each : threads) each.join();
    CHECK(wrong == 0);
    for (unsigned t = 0; t < 4; ++t) CHECK(words.value(t) == 10 + t);
}

TEST_CASE("graph updates: nodes are disabled and enabled") {
    const Words words;
    const CUfunction kernel = appending_kernel();
    TestGraph graph;
    const CUgraphNode a = graph.append(kernel, words.at, 1), b = graph.append(kernel, words.at, 2, {a}),
                      c = graph.empty({b});
    const TestExec exec(graph);
    const TestStream stream;
    unsigned is_enabled = 0;
    WORKS(call("cuGraphNodeGetEnabled", exec.handle, b, &is_enabled));
    CHECK(is_enabled == 1);
    WORKS(call("cuGraphNodeSetEnabled", exec.handle, a, 0u));
    WORKS(exec.launch(stream));
    WORKS(call("cuGraphNodeSetEnabled", exec.handle, a, 1u));
    WORKS(exec.launch(stream));
    CHECK(words.value() == 212);
    CHECK(call("cuGraphNodeSetEnabled", exec.handle, c, 0u) == CUDA_ERROR_INVALID_VALUE);
}

std::uint64_t graph_memory(CUgraphMem_attribute which) {
    std::uint64_t out = 0;
    WORKS(call("cuDeviceGetGraphMemAttribute", CUdevice(0), which, static_cast<void*>(&out)));
    return out;
}

TEST_CASE("graph memory: it comes and goes with each launch, at one address") {
    const Words words;
    const CUfunction kernel = appending_kernel();
    const TestStream stream;
    TestGraph graph;
    CUdeviceptr address = 0;
    const CUgraphNode made = graph.allocate(1024, &address);
    const CUgraphNode zero = graph.fill(address, 3, {made}), change = graph.append(kernel, address, 4, {zero});
    CUgraphNode copy = nullptr;
    const CUDA_MEMCPY3D over = row(nullptr, words.at, nullptr, address, 4);
    WORKS(call("cuGraphAddMemcpyNode", &copy, graph.handle, &change, std::size_t{1}, &over, words.context.handle));
    graph.free(address, {copy});
    CUgraphNode again = nullptr;
    CHECK(call("cuGraphAddMemFreeNode", &again, graph.handle, &copy, std::size_t{1}, address) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuGraphAddMemFreeNode", &again, graph.handle, &copy, std::size_t{1}, words.at) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuGraphClone", &graph.handle, graph.handle) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(call("cuGraphDestroyNode", zero) == CUDA_ERROR_INVALID_VALUE);
    const TestExec exec(graph);
    CUgraphExec second = nullptr;
    CHECK(call("cuGraphInstantiateWithFlags", &second, graph.handle, 0ull) == CUDA_ERROR_INVALID_VALUE);
    for (int i = 0; i < 2; ++i) {
        CHECK(said([&] { WORKS(exec.launch(stream)); }) == "");
        CHECK(words.value() == 34);
        CHECK(call("cuMemsetD32_v2", address, 0u, std::size_t{1}) == CUDA_ERROR_INVALID_VALUE);  // it is gone
        CHECK(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 0);
    }
    CHECK(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) >= 1024);
    std::uint64_t zero_bytes = 0;
    WORKS(call("cuDeviceGraphMemTrim", CUdevice(0)));
    for (const auto mark : {CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH}) {
        WORKS(call("cuDeviceSetGraphMemAttribute", CUdevice(0), mark, static_cast<void*>(&zero_bytes)));
        CHECK(graph_memory(mark) == 0);
    }
}

TEST_CASE("graph memory: what stays after a launch is freed once, by whom it may be") {
    const Words words;
    const TestStream stream;
    for (const bool by_graph : {false, true}) {
        TestGraph graph, frees;
        CUdeviceptr address = 0;
        const CUgraphNode made = graph.allocate(64, &address);
        graph.fill(address, 3, {made});
        if (by_graph) frees.free(address);
        const TestExec exec(graph), freeing(frees);
        if (by_graph) CHECK(freeing.launch(stream) == CUDA_ERROR_INVALID_VALUE);  // it is not there yet
        WORKS(exec.launch(stream));
        CHECK(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 64);
        WORKS(call("cuMemcpyDtoDAsync_v2", words.at, address, std::size_t{4}, stream.handle));
        CHECK(words.value() == 3);
        CHECK(exec.launch(stream) == CUDA_ERROR_INVALID_VALUE);  // not freed yet
        WORKS(by_graph ? freeing.launch(stream) : call("cuMemFreeAsync", address, stream.handle));
        CHECK(call("cuMemFreeAsync", address, stream.handle) == CUDA_ERROR_INVALID_VALUE);
        CHECK(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 0);
        WORKS(exec.launch(stream));
        WORKS(call("cuMemFree_v2", address));
    }
    TestGraph graph;
    CUdeviceptr address = 0;
    graph.allocate(64, &address);
    const TestExec exec(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    WORKS(exec.launch(stream));
    WORKS(exec.launch(stream));  // frees what is left
    WORKS(call("cuMemFreeAsync", address, stream.handle));
}

TEST_CASE("graph memory: work that its edges do not order with the nodes of memory is found") {
    for (const bool is_right : {false, true}) {
        const Words words;
        const TestStream stream;
        TestGraph graph;
        CUdeviceptr address = 0;
        const CUgraphNode made = graph.allocate(64, &address), filled = graph.fill(address, 1, {made});
        graph.free(address, {is_right ? filled : made});
        const TestExec exec(graph);
        const std::string text = said([&] { exec.launch(stream); });
        if (is_right)
            CHECK(text == "");
        else
            CHECK((text.find("nothing orders the two") != text.npos || text.find("released") != text.npos));
    }
    const Words words;
    const TestStream stream;
    std::string name;
    TestGraph graph;
    CUdeviceptr address = 0;
    const CUgraphNode made = graph.allocate(64, &address);
    const CUgraphNode freed = graph.free(address, {made});
    graph.append(appending_kernel(&name), address, 1, {freed});
    const TestExec exec(graph);
    const std::string text = said([&] { exec.launch(stream); });
    CHECK_THAT(text, contains("released") && contains(name));
    CHECK(call("cuCtxSynchronize") == CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("graph memory: asynchronous allocations of a captured stream become nodes") {
    const Words words;
    const TestStream stream;
    CUdeviceptr address = 0;
    WORKS(call("cuStreamBeginCapture", stream.handle));
    WORKS(call("cuMemAllocAsync", &address, std::size_t{256}, stream.handle));
    WORKS(call("cuMemsetD32Async", address, 7u, std::size_t{64}, stream.handle));
    WORKS(call("cuMemcpyDtoDAsync_v2", words.at, address, std::size_t{4}, stream.handle));
    WORKS(call("cuMemFreeAsync", address, stream.handle));
    CUgraph captured = nullptr;
    WORKS(call("cuStreamEndCapture", stream.handle, &captured));
    const TestGraph graph(captured);
    CHECK(graph.nodes() == 4);
    const TestExec exec(graph);
    WORKS(exec.launch(stream));
    CHECK(words.value() == 7);
    WORKS(call("cuStreamBeginCapture", stream.handle));
    CHECK(call("cuMemFreeAsync", words.at, stream.handle) == CUDA_ERROR_INVALID_VALUE);  // not of a graph
    CHECK(call("cuStreamEndCapture", stream.handle, &captured) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

}  // namespace graph_updates
}  // namespace
}  // namespace ikat::tests
