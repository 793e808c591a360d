// SPDX-License-Identifier: Apache-2.0
// Graphs that are made node by node.
#include <atomic>
#include <cstring>
#include <fstream>
#include <thread>

#include "tests/unit/cuda_driver/graphs.hpp"

namespace ikat::tests {
namespace {
namespace graphs {

TEST_CASE("graphs: nodes are done in the order of their edges, in each launch") {
    const Words words;
    const CUfunction kernel = appending_kernel();
    TestGraph graph;
    const CUgraphNode last = graph.append(kernel, words.at, 3);
    const CUgraphNode first = graph.append(kernel, words.at, 1);
    const CUgraphNode middle = graph.append(kernel, words.at, 2, {first});
    WORKS(call("cuGraphAddDependencies_v2", graph.handle, &middle, &last, static_cast<CUgraphEdgeData*>(nullptr),
               std::size_t{1}));
    const TestExec exec(graph);
    CHECK(words.value() == 0);  // nothing has been done yet
    const TestStream stream;
    WORKS(exec.launch(stream));
    CHECK(words.value() == 123);
    WORKS(call("cuMemsetD32_v2", words.at, 0u, std::size_t{1}));
    WORKS(call("cuCtxSynchronize"));
    WORKS(exec.launch(stream));
    WORKS(exec.launch(stream));
    CHECK(words.value() == 123123);
}

TEST_CASE("graphs: a node takes its parameters when it is added") {
    const Words words;
    const CUfunction kernel = appending_kernel();
    TestGraph graph;
    CUdeviceptr address = words.at;
    unsigned digit = 4;
    void* parameters[] = {&address, &digit};
    CUDA_KERNEL_NODE_PARAMS params = appending(kernel, parameters);
    CUgraphNode node = nullptr;
    WORKS(call("cuGraphAddKernelNode_v2", &node, graph.handle, static_cast<CUgraphNode*>(nullptr), std::size_t{0},
               &params));
    digit = 9, address = 0, parameters[0] = nullptr;
    CUDA_KERNEL_NODE_PARAMS found{};
    WORKS(call("cuGraphKernelNodeGetParams_v2", node, &found));
    CHECK(*static_cast<unsigned*>(found.kernelParams[1]) == 4);
    CHECK((found.func == kernel && found.gridDimX == 1 && found.extra == nullptr));
    const TestExec before(graph);
    digit = 5, address = words.at, parameters[0] = &address;
    WORKS(call("cuGraphKernelNodeSetParams_v2", node, &params));
    const TestExec after(graph);
    const TestStream stream;
    WORKS(before.launch(stream));  // made before the change
    WORKS(after.launch(stream));
    CHECK(words.value() == 45);
    std::size_t bytes = 12;
    struct {
        CUdeviceptr address;
        unsigned digit;
    } packed{words.at, 6};
    void* extra[] = {reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_POINTER), &packed,
                     reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_SIZE), &bytes,
                     reinterpret_cast<void*>(CU_LAUNCH_PARAM_END)};
    params.kernelParams = nullptr, params.extra = extra;
    WORKS(call("cuGraphExecKernelNodeSetParams_v2", after.handle, node, &params));
    WORKS(after.launch(stream));
    CHECK(words.value() == 456);
}

TEST_CASE("graphs: copies, fills, functions of the host, events and children") {
    const Words words;
    const CUfunction kernel = appending_kernel();
    TestGraph graph, child;
    unsigned in = 7, out = 0;
    CUgraphNode copy_in = nullptr, copy_out = nullptr, record = nullptr, wait = nullptr, inner = nullptr;
    const CUgraphNode zero = graph.fill(words.at, 1);
    const CUDA_MEMCPY3D up = row(nullptr, words.word(1), &in, 0, 4), down = row(&out, 0, nullptr, words.at, 4);
    WORKS(call("cuGraphAddMemcpyNode", &copy_in, graph.handle, &zero, std::size_t{1}, &up, words.context.handle));
    const CUgraphNode a = child.append(kernel, words.at, 2);
    child.append(kernel, words.at, 3, {a});
    WORKS(call("cuGraphAddChildGraphNode", &inner, graph.handle, &copy_in, std::size_t{1}, child.handle));
    child.append(kernel, words.at, 9);  // the node has a copy
    const TestEvent event;
    WORKS(call("cuGraphAddEventRecordNode", &record, graph.handle, &inner, std::size_t{1}, event.handle));
    WORKS(call("cuGraphAddEventWaitNode", &wait, graph.handle, &record, std::size_t{1}, event.handle));
    WORKS(call("cuGraphAddMemcpyNode", &copy_out, graph.handle, &wait, std::size_t{1}, &down, words.context.handle));
    std::atomic<unsigned> seen = 0;
    struct Seen {
        std::atomic<unsigned>& to;
        unsigned& from;
        std::thread::id thread{};
    } data{seen, out};
    graph.host(
        [](void* its) {
            auto& both = *static_cast<Seen*>(its);
            both.to = both.from, both.thread = std::this_thread::get_id();
        },
        &data, {copy_out});
    CUgraph embedded = nullptr;
    WORKS(call("cuGraphChildGraphNodeGetGraph", inner, &embedded));
    std::size_t count = 0;
    WORKS(call("cuGraphGetNodes", embedded, static_cast<CUgraphNode*>(nullptr), &count));
    CHECK(count == 2);
    CHECK(call("cuGraphDestroy", embedded) == CUDA_ERROR_INVALID_VALUE);  // it is the node's
    const TestExec exec(graph);
    const TestStream stream(0);
    in = 8;  // read by the launch
    WORKS(exec.launch(stream));
    CHECK(words.value(1) == 8);  // the default stream waits for what the other was given, functions of the host, too
    CHECK(seen == 123);
    CHECK(data.thread != std::this_thread::get_id());
    WORKS(call("cuEventSynchronize", event.handle));
    CUevent its_event = nullptr;
    WORKS(call("cuGraphEventRecordNodeGetEvent", record, &its_event));
    CHECK(its_event == event.handle);
    CUgraphNodeType type{};
    for (const auto& [node, expected] : {std::pair{copy_in, CU_GRAPH_NODE_TYPE_MEMCPY},
                                         {zero, CU_GRAPH_NODE_TYPE_MEMSET},
                                         {record, CU_GRAPH_NODE_TYPE_EVENT_RECORD},
                                         {wait, CU_GRAPH_NODE_TYPE_WAIT_EVENT},
                                         {inner, CU_GRAPH_NODE_TYPE_GRAPH},
                                         {a, CU_GRAPH_NODE_TYPE_KERNEL}}) {
        WORKS(call("cuGraphNodeGetType", node, &type));
        CHECK(type == expected);
    }
}

TEST_CASE("graphs: a function of the host may wait for what the program does after the launch") {
    const Words words;
    TestGraph graph;
    std::atomic<bool> go = false;
    const CUgraphNode waits = graph.host(
        [](void* data) {
            while (!*static_cast<std::atomic<bool>*>(data)) std::this_thread::yield();
        },
        &go);
    graph.append(appending_kernel(), words.at, 6, {waits});
    const TestStream stream;
    {
        const TestExec exec(graph);
        WORKS(exec.launch(stream));
    }  // destroyed before it is done
    CHECK(call("cuStreamQuery", stream.handle) == CUDA_ERROR_NOT_READY);
    go = true;
    WORKS(call("cuStreamSynchronize", stream.handle));
    WORKS(call("cuStreamQuery", stream.handle));
    CHECK(words.value() == 6);
}

TEST_CASE("graphs: what a graph has lives until its last launch is done") {
    const Words words;
    const TestStream stream;
    struct Gate {
        std::atomic<bool> go = false, is_over = false;
    } gate;
    CUuserObject object = nullptr;
    const CUhostFn end = [](void* data) { static_cast<Gate*>(data)->is_over = true; };
    WORKS(call("cuUserObjectCreate", &object, static_cast<void*>(&gate), end, 1u, 1u));
    {
        TestGraph graph;
        CUdeviceptr address = 0;
        const CUgraphNode waits = graph.host(
            [](void* data) {
                Gate& its = *static_cast<Gate*>(data);
                while (!its.go) std::this_thread::yield();
                CHECK(!its.is_over);
            },
            &gate);
        const CUgraphNode made = graph.allocate(64, &address, {waits}), filled = graph.fill(address, 8, {made});
        const CUgraphNode appended = graph.append(appending_kernel(), address, 1, {filled});
        graph.free(address, {appended});
        WORKS(call("cuGraphRetainUserObject", graph.handle, object, 1u, CU_GRAPH_USER_OBJECT_MOVE));
        const TestExec exec(graph);
        WORKS(exec.launch(stream));
    }
    gate.go = true;
    CHECK(said([&] { WORKS(call("cuStreamSynchronize", stream.handle)); }) == "");
    WORKS(call("cuCtxSynchronize"));
    while (!gate.is_over) std::this_thread::yield();
}

TEST_CASE("graphs: edges and nodes are listed, changed and removed") {
    const Words words;
    TestGraph graph;
    const CUgraphNode a = graph.empty(), b = graph.empty({a}), c = graph.empty({a, b});
    CUgraphNode found[4] = {a, a, a, a}, ends[4] = {};
    std::size_t count = 4;
    WORKS(call("cuGraphNodeGetDependencies", c, &found[0], &count));
    CHECK((count == 2 && found[0] == a && found[1] == b && found[2] == nullptr));
    count = 4;
    WORKS(call("cuGraphNodeGetDependentNodes", a, &found[0], &count));
    CHECK((count == 2 && found[0] == b && found[1] == c));
    WORKS(call("cuGraphGetEdges", graph.handle, static_cast<CUgraphNode*>(nullptr), static_cast<CUgraphNode*>(nullptr),
               &count));
    CHECK(count == 3);
    WORKS(call("cuGraphGetEdges", graph.handle, &found[0], &ends[0], &count));
    CHECK((found[0] == a && ends[0] == b && found[2] == b && ends[2] == c));
    count = 4;
    WORKS(call("cuGraphGetRootNodes", graph.handle, &found[0], &count));
    CHECK((count == 1 && found[0] == a));
    CHECK(call("cuGraphAddDependencies", graph.handle, &a, &b, std::size_t{1}) == CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuGraphAddDependencies", graph.handle, &a, &a, std::size_t{1}) == CUDA_ERROR_INVALID_VALUE);
    WORKS(call("cuGraphRemoveDependencies", graph.handle, &b, &c, std::size_t{1}));
    CHECK(call("cuGraphRemoveDependencies", graph.handle, &b, &c, std::size_t{1}) == CUDA_ERROR_INVALID_VALUE);
    WORKS(call("cuGraphDestroyNode", a));
    WORKS(call("cuGraphNodeGetDependencies", c, static_cast<CUgraphNode*>(nullptr), &count));
    CHECK((count == 0 && graph.nodes() == 2));
    CHECK(call("cuGraphDestroyNode", a) == CUDA_ERROR_INVALID_VALUE);
    CUgraphNode twice[] = {b, b}, out = nullptr;
    CHECK(call("cuGraphAddEmptyNode", &out, graph.handle, &twice[0], std::size_t{2}) == CUDA_ERROR_INVALID_VALUE);
    TestGraph other;
    CHECK(call("cuGraphAddEmptyNode", &out, other.handle, &b, std::size_t{1}) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("graphs: edges between kernels may be programmatic, and are not lost") {
    const Words words;
    const CUfunction kernel = appending_kernel();
    TestGraph graph;
    const CUgraphNode a = graph.append(kernel, words.at, 1), b = graph.append(kernel, words.at, 2), e = graph.empty();
    CUgraphEdgeData early{};
    early.from_port = 1, early.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    WORKS(call("cuGraphAddDependencies_v2", graph.handle, &a, &b, &early, std::size_t{1}));
    CHECK(call("cuGraphAddDependencies_v2", graph.handle, &a, &e, &early, std::size_t{1}) == CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuGraphAddDependencies_v2", graph.handle, &e, &b, &early, std::size_t{1}) == CUDA_ERROR_INVALID_VALUE);
    CUgraphNode found = nullptr;
    CUgraphEdgeData data{};
    std::size_t count = 1;
    CHECK(call("cuGraphNodeGetDependencies", b, &found, &count) == CUDA_ERROR_LOSSY_QUERY);
    WORKS(call("cuGraphNodeGetDependencies_v2", b, &found, &data, &count));
    CHECK((found == a && data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC && data.from_port == 1));
}

TEST_CASE("graphs: copies of them find their nodes") {
    const Words words;
    TestGraph graph;
    const CUgraphNode a = graph.append(appending_kernel(), words.at, 1), b = graph.empty({a});
    CUgraph copy = nullptr;
    WORKS(call("cuGraphClone", &copy, graph.handle));
    CUgraphNode there = nullptr, before = nullptr;
    WORKS(call("cuGraphNodeFindInClone", &there, b, copy));
    std::size_t count = 1;
    WORKS(call("cuGraphNodeGetDependencies", there, &before, &count));
    CHECK((count == 1 && before != a && there != b));
    WORKS(call("cuGraphDestroyNode", there));
    CHECK(call("cuGraphNodeFindInClone", &there, b, copy) == CUDA_ERROR_INVALID_VALUE);
    CHECK(graph.nodes() == 2);
    WORKS(call("cuGraphDestroy", copy));
    CHECK(call("cuGraphClone", &copy, copy) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("graphs: those whose nodes wait for each other in a circle are not made executable") {
    const Words words;
    TestGraph graph;
    const CUgraphNode a = graph.empty(), b = graph.empty({a});
    WORKS(call("cuGraphAddDependencies", graph.handle, &b, &a, std::size_t{1}));
    CUgraphExec exec = nullptr;
    CUDA_GRAPH_INSTANTIATE_PARAMS params{};
    CUresult result = CUDA_SUCCESS;
    const std::string text = said([&] { result = call("cuGraphInstantiateWithParams", &exec, graph.handle, &params); });
    CHECK(result == CUDA_ERROR_INVALID_VALUE);
    CHECK((params.result_out == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE && params.hErrNode_out != nullptr));
    CHECK_THAT(text, contains("in a circle"));
    params.flags = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
    CHECK(call("cuGraphInstantiateWithParams", &exec, graph.handle, &params) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(params.result_out == CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED);
}

TEST_CASE("graphs: generic nodes, and those that are refused") {
    const Words words;
    TestGraph graph;
    CUgraphNode node = nullptr;
    const auto add = [&](CUgraphNodeParams& params) {
        return call("cuGraphAddNode_v2", &node, graph.handle, static_cast<CUgraphNode*>(nullptr),
                    static_cast<CUgraphEdgeData*>(nullptr), std::size_t{0}, &params);
    };
    CUdeviceptr address = words.at;
    unsigned digit = 4;
    void* parameters[] = {&address, &digit};
    CUgraphNodeParams kernel{};
    kernel.type = CU_GRAPH_NODE_TYPE_KERNEL;
    kernel.kernel = appending(appending_kernel(), parameters);
    WORKS(add(kernel));
    digit = 5;
    WORKS(call("cuGraphNodeSetParams", node, &kernel));
    const TestExec exec(graph);
    digit = 6;
    WORKS(call("cuGraphExecNodeSetParams", exec.handle, node, &kernel));
    WORKS(exec.launch(TestStream()));
    CHECK(words.value() == 6);
    CUgraphNodeParams conditional{};
    conditional.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    CHECK(add(conditional) == CUDA_ERROR_INVALID_VALUE);  // it names no handle
    CHECK(call("cuGraphNodeSetParams", node, &conditional) == CUDA_ERROR_INVALID_VALUE);
    CUgraphNodeParams moved{};
    moved.type = CU_GRAPH_NODE_TYPE_GRAPH;
    moved.graph = {graph.handle, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE};
    CHECK(add(moved) == CUDA_ERROR_INVALID_VALUE);  // into itself
    CUgraph child = nullptr;
    WORKS(call("cuGraphCreate", &child, 0u));
    moved.graph.graph = child;
    WORKS(add(moved));
    CHECK(call("cuGraphDestroy", child) == CUDA_ERROR_INVALID_VALUE);
    kernel.reserved2 = 1;
    CHECK(add(kernel) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("graphs: bad nodes are refused when they are added") {
    const Words words;
    TestGraph graph;
    CUgraphNode node = nullptr;
    const auto no_nodes = static_cast<CUgraphNode*>(nullptr);
    CUDA_MEMSET_NODE_PARAMS fill{words.at, 0, 1, 4, 5, 1};
    const auto add_fill = [&] {
        return call("cuGraphAddMemsetNode", &node, graph.handle, no_nodes, std::size_t{0}, &fill, words.context.handle);
    };
    CHECK(add_fill() == CUDA_ERROR_INVALID_VALUE);  // beyond the end
    fill.width = 4, fill.elementSize = 3;
    CHECK(add_fill() == CUDA_ERROR_INVALID_VALUE);
    fill.elementSize = 4, fill.width = 0;
    CHECK(add_fill() == CUDA_ERROR_INVALID_VALUE);
    fill.width = 4;
    WORKS(add_fill());
    CUDA_KERNEL_NODE_PARAMS params = appending(appending_kernel(), nullptr);
    const auto add_kernel = [&] {
        return call("cuGraphAddKernelNode_v2", &node, graph.handle, no_nodes, std::size_t{0}, &params);
    };
    CHECK(add_kernel() == CUDA_ERROR_INVALID_VALUE);  // no parameters
    params.func = nullptr;
    CHECK(add_kernel() == CUDA_ERROR_INVALID_VALUE);
    const CUDA_HOST_NODE_PARAMS host{};
    CHECK(call("cuGraphAddHostNode", &node, graph.handle, no_nodes, std::size_t{0}, &host) == CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuGraphAddEmptyNode", &node, CUgraph(nullptr), no_nodes, std::size_t{0}) == CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuGraphCreate", &graph.handle, 1u) == CUDA_ERROR_INVALID_VALUE);
    CHECK(graph.nodes() == 1);
}

TEST_CASE("graphs: attributes of kernels are kept, copied, and act") {
    const Words words;
    const CUfunction kernel = appending_kernel();
    TestGraph graph;
    const CUgraphNode a = graph.append(kernel, words.at, 1), b = graph.append(kernel, words.at, 2, {a});
    CUlaunchAttribute cluster{};
    cluster.value.clusterDim.x = cluster.value.clusterDim.y = cluster.value.clusterDim.z = 1;
    const void* const value = &cluster.value;
    WORKS(call("cuGraphKernelNodeSetAttribute", a, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, value));
    WORKS(call("cuGraphKernelNodeCopyAttributes", b, a));
    CUlaunchAttribute found{};
    WORKS(call("cuGraphKernelNodeGetAttribute", b, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
               static_cast<void*>(&found.value)));
    CHECK(found.value.clusterDim.x == 1);
    cluster.value.clusterDim.x = 3;  // does not divide the grid
    CHECK(call("cuGraphKernelNodeSetAttribute", a, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, value) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuGraphKernelNodeSetAttribute", a, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, value) ==
          CUDA_ERROR_INVALID_VALUE);
    WORKS(TestExec(graph).launch(TestStream()));
    CHECK(words.value() == 12);
}

TEST_CASE("graphs: a picture shows nodes and edges") {
    const Words words;
    std::string name;
    TestGraph graph;
    const CUgraphNode a = graph.append(appending_kernel(&name), words.at, 1);
    graph.fill(words.at, 3, {a});
    char path[] = "/tmp/ikat-graph-XXXXXX";
    close(mkstemp(path));
    WORKS(call("cuGraphDebugDotPrint", graph.handle, static_cast<const char*>(path), 1u));
    std::ifstream in(path);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    unlink(path);
    CHECK_THAT(text, contains("digraph") && contains(name) && contains("MEMSET") &&
                         contains("\"graph_1_node_0\" -> \"graph_1_node_1\""));
    CHECK(call("cuGraphDebugDotPrint", graph.handle, "/nowhere/graph.dot", 0u) == CUDA_ERROR_OPERATING_SYSTEM);
}

TEST_CASE("graphs: user objects live as long as what refers to them") {
    const Words words;
    std::atomic<int> ended = 0;
    CUuserObject object = nullptr;
    const CUhostFn end = [](void* data) { ++*static_cast<std::atomic<int>*>(data); };
    CHECK(call("cuUserObjectCreate", &object, static_cast<void*>(&ended), end, 1u, 0u) == CUDA_ERROR_INVALID_VALUE);
    WORKS(call("cuUserObjectCreate", &object, static_cast<void*>(&ended), end, 1u, 1u));
    CUgraphExec exec = nullptr;
    {
        TestGraph graph;
        WORKS(call("cuGraphRetainUserObject", graph.handle, object, 1u, CU_GRAPH_USER_OBJECT_MOVE));
        WORKS(call("cuGraphRetainUserObject", graph.handle, object, 1u, 0u));
        WORKS(call("cuGraphReleaseUserObject", graph.handle, object, 1u));
        CHECK(call("cuGraphReleaseUserObject", graph.handle, object, 2u) == CUDA_ERROR_INVALID_VALUE);
        WORKS(call("cuGraphInstantiateWithFlags", &exec, graph.handle, 0ull));
    }
    CHECK(ended == 0);  // the executable graph has it
    WORKS(call("cuGraphExecDestroy", exec));
    while (ended == 0) std::this_thread::yield();
    CHECK(call("cuUserObjectRetain", object, 1u) == CUDA_ERROR_INVALID_VALUE);
}

}  // namespace graphs
}  // namespace
}  // namespace ikat::tests
