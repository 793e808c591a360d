// SPDX-License-Identifier: Apache-2.0
// Conditional nodes: their handles and bodies, what kernels set, and what is refused.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tests/unit/cuda_driver/graphs.hpp"

namespace ikat::tests {
namespace {
namespace conditions {

/// A kernel as nvcc makes it from
///     __global__ void count_down(cudaGraphConditionalHandle h, unsigned* p) { cudaGraphSetConditional(h, *p -= 1); }
constexpr const char* count_down_text = R"(.version 8.4
.target sm_90
.address_size 64
.extern .func cudaGraphSetConditional
(
    .param .b64 cudaGraphSetConditional_param_0,
    .param .b32 cudaGraphSetConditional_param_1
)
;
.visible .entry count_down(.param .u64 h, .param .u64 p)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [h];
    ld.param.u64 %rd2, [p];
    cvta.to.global.u64 %rd3, %rd2;
    ld.global.u32 %r1, [%rd3];
    add.s32 %r2, %r1, -1;
    st.global.u32 [%rd3], %r2;
    { // callseq 0, 0
    .reg .b32 temp_param_reg;
    .param .b64 param0;
    st.param.b64 [param0+0], %rd1;
    .param .b32 param1;
    st.param.b32 [param1+0], %r2;
    call.uni
    cudaGraphSetConditional,
    (
    param0,
    param1
    );
    } // callseq 0
    ret;
}
)";

CUfunction function_of(const void* image, const char* name) {
    CUmodule module = nullptr;
    CUfunction out = nullptr;
    REQUIRE(call("cuModuleLoadData", &module, image) == CUDA_SUCCESS);
    REQUIRE(call("cuModuleGetFunction", &out, module, name) == CUDA_SUCCESS);
    return out;
}
CUfunction count_down_kernel() { return function_of(count_down_text, "count_down"); }

CUgraphNode count_down(CUgraph graph, CUfunction kernel, CUgraphConditionalHandle handle, CUdeviceptr word,
                       const Nodes& after = {}) {
    CUgraphNode out = nullptr;
    void* parameters[] = {&handle, &word};
    const CUDA_KERNEL_NODE_PARAMS params = appending(kernel, parameters);
    WORKS(call("cuGraphAddKernelNode_v2", &out, graph, after.data(), after.size(), &params));
    return out;
}

CUgraphConditionalHandle handle_for(CUgraph graph, unsigned first, unsigned flags = CU_GRAPH_COND_ASSIGN_DEFAULT) {
    CUgraphConditionalHandle out = 0;
    CUcontext context = nullptr;
    call("cuCtxGetCurrent", &context);
    WORKS(call("cuGraphConditionalHandleCreate", &out, graph, context, first, flags));
    return out;
}

struct Conditional {
    CUresult result{};
    CUgraphNode node = nullptr;
    std::vector<CUgraph> bodies{};
};
Conditional add(CUgraph graph, CUgraphConditionalHandle handle, CUgraphConditionalNodeType type, unsigned size = 1,
                const Nodes& after = {}) {
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional.handle = handle, params.conditional.type = type, params.conditional.size = size;
    call("cuCtxGetCurrent", &params.conditional.ctx);
    Conditional out;
    out.result = call("cuGraphAddNode_v2", &out.node, graph, after.data(), static_cast<const CUgraphEdgeData*>(nullptr),
                      after.size(), &params);
    if (out.result == CUDA_SUCCESS)
        out.bodies.assign(params.conditional.phGraph_out, params.conditional.phGraph_out + size);
    return out;
}

CUgraphNode append_in(CUgraph graph, CUfunction kernel, CUdeviceptr word, unsigned digit, const Nodes& after = {}) {
    CUgraphNode out = nullptr;
    void* parameters[] = {&word, &digit};
    const CUDA_KERNEL_NODE_PARAMS params = appending(kernel, parameters);
    WORKS(call("cuGraphAddKernelNode_v2", &out, graph, after.data(), after.size(), &params));
    return out;
}

void set_word(const Words& words, unsigned i, unsigned value) {
    WORKS(call("cuMemsetD32_v2", words.word(i), value, std::size_t{1}));
    WORKS(call("cuCtxSynchronize"));
}

TEST_CASE("conditions: if, if and else, switch do the body that the value names") {
    const Words words;
    const CUfunction kernel = appending_kernel();
    const TestStream stream;
    struct Case {
        CUgraphConditionalNodeType type;
        unsigned size, value, expected;
    };
    for (const Case& each : {Case{CU_GRAPH_COND_TYPE_IF, 1, 0, 9}, Case{CU_GRAPH_COND_TYPE_IF, 1, 7, 19},
                             Case{CU_GRAPH_COND_TYPE_IF, 2, 7, 19}, Case{CU_GRAPH_COND_TYPE_IF, 2, 0, 29},
                             Case{CU_GRAPH_COND_TYPE_SWITCH, 3, 0, 19}, Case{CU_GRAPH_COND_TYPE_SWITCH, 3, 2, 39},
                             Case{CU_GRAPH_COND_TYPE_SWITCH, 3, 3, 9}, Case{CU_GRAPH_COND_TYPE_WHILE, 1, 0, 9}}) {
        set_word(words, 0, 0);
        TestGraph graph;
        const Conditional its = add(graph, handle_for(graph, each.value), each.type, each.size);
        REQUIRE(its.result == CUDA_SUCCESS);
        for (unsigned i = 0; i < each.size; ++i) append_in(its.bodies[i], kernel, words.at, i + 1);
        graph.append(kernel, words.at, 9, {its.node});
        CUgraphNodeType type{};
        WORKS(call("cuGraphNodeGetType", its.node, &type));
        CHECK(type == CU_GRAPH_NODE_TYPE_CONDITIONAL);
        const TestExec exec(graph);
        WORKS(exec.launch(stream));
        CHECK(words.value() == each.expected);
    }
}

TEST_CASE("conditions: a while goes on until a kernel sets 0, in each launch from its first value on") {
    const Words words;
    const CUfunction kernel = appending_kernel(), less = count_down_kernel();
    TestGraph graph;
    const CUgraphConditionalHandle handle = handle_for(graph, 1);
    const CUgraphNode first = graph.fill(words.word(1), 3);
    const Conditional its = add(graph, handle, CU_GRAPH_COND_TYPE_WHILE, 1, {first});
    const CUgraphNode round = append_in(its.bodies[0], kernel, words.at, 4);
    count_down(its.bodies[0], less, handle, words.word(1), {round});
    const TestExec exec(graph);
    const TestStream stream;
    WORKS(exec.launch(stream));
    CHECK(words.value() == 444);
    const TestStream other;
    WORKS(exec.launch(other));
    CHECK(words.value() == 444444);
    // A node of a body is changed as any other.
    CUdeviceptr word = words.at;
    unsigned digit = 5;
    void* parameters[] = {&word, &digit};
    const CUDA_KERNEL_NODE_PARAMS params = appending(kernel, parameters);
    set_word(words, 0, 0);
    WORKS(call("cuGraphExecKernelNodeSetParams_v2", exec.handle, round, &params));
    WORKS(exec.launch(stream));
    CHECK(words.value() == 555);
}

TEST_CASE("conditions: bodies in bodies, children in bodies, captures into bodies, branches") {
    const Words words;
    const CUfunction kernel = appending_kernel(), beside = appending_kernel(), less = count_down_kernel();
    const TestStream stream, side;
    TestGraph graph, child;
    const CUgraphConditionalHandle outer = handle_for(graph, 1), inner = handle_for(graph, 0);
    const CUgraphNode first = graph.fill(words.word(1), 2);
    const Conditional loop = add(graph, outer, CU_GRAPH_COND_TYPE_WHILE, 1, {first});
    CUgraphNode node = nullptr;
    child.append(kernel, words.at, 1);
    WORKS(call("cuGraphAddChildGraphNode", &node, loop.bodies[0], static_cast<CUgraphNode*>(nullptr), std::size_t{0},
               child.handle));
    const Conditional branch = add(loop.bodies[0], inner, CU_GRAPH_COND_TYPE_IF, 2, {node});
    REQUIRE(branch.result == CUDA_SUCCESS);
    append_in(branch.bodies[0], kernel, words.at, 8);
    WORKS(call("cuStreamBeginCaptureToGraph", stream.handle, branch.bodies[1], static_cast<CUgraphNode*>(nullptr),
               static_cast<CUgraphEdgeData*>(nullptr), std::size_t{0}, CU_STREAM_CAPTURE_MODE_RELAXED));
    const TestEvent fork, join;
    WORKS(append(kernel, words.at, 2, stream));
    WORKS(call("cuEventRecord", fork.handle, stream.handle));
    WORKS(call("cuStreamWaitEvent", side.handle, fork.handle, 0u));
    WORKS(append(beside, words.word(2), 3, side));
    WORKS(call("cuEventRecord", join.handle, side.handle));
    WORKS(append(kernel, words.at, 3, stream));
    WORKS(call("cuStreamWaitEvent", stream.handle, join.handle, 0u));
    CUgraph captured = nullptr;
    WORKS(call("cuStreamEndCapture", stream.handle, &captured));
    CHECK(captured == branch.bodies[1]);
    count_down(loop.bodies[0], less, outer, words.word(1), {branch.node});
    const TestExec exec(graph);
    WORKS(exec.launch(stream));
    CHECK(words.value() == 123123);
    CHECK(words.value(2) == 33);
}

TEST_CASE("conditions: PTX is linked with the library that has the function, or without it") {
    const Words words;
    void *cubin = nullptr, *link = nullptr;
    std::string text = count_down_text, library = "!<arch>\n";
    for (const bool has_library : {false, true}) {
        WORKS(call("cuLinkCreate_v2", 0u, static_cast<CUjit_option*>(nullptr), static_cast<void**>(nullptr), &link));
        const auto give = [&](CUjitInputType type, std::string& data, const char* name) {
            return call("cuLinkAddData_v2", link, type, static_cast<void*>(data.data()), data.size(), name, 0u,
                        static_cast<CUjit_option*>(nullptr), static_cast<void**>(nullptr));
        };
        if (has_library) WORKS(give(CU_JIT_INPUT_LIBRARY, library, "libcudadevrt.a"));
        WORKS(give(CU_JIT_INPUT_PTX, text, "count_down.ptx"));
        std::size_t bytes = 0;
        WORKS(call("cuLinkComplete", link, &cubin, &bytes));
        TestGraph graph;
        const CUgraphConditionalHandle handle = handle_for(graph, 1);
        set_word(words, 1, 4);
        const Conditional its = add(graph, handle, CU_GRAPH_COND_TYPE_WHILE);
        count_down(its.bodies[0], function_of(cubin, "count_down"), handle, words.word(1));
        const TestExec exec(graph);
        const TestStream stream;
        WORKS(exec.launch(stream));
        CHECK(words.value(1) == 0);
        WORKS(call("cuLinkDestroy", link));
    }
}

TEST_CASE("conditions: what a condition lacks, and loops without end, are failures of the context") {
    const auto said_of = [](bool has_value, CUresult expected) {
        const Words words;
        TestGraph graph;
        const CUgraphConditionalHandle handle = handle_for(graph, 1, has_value ? CU_GRAPH_COND_ASSIGN_DEFAULT : 0);
        const Conditional its = add(graph, handle, CU_GRAPH_COND_TYPE_WHILE);
        append_in(its.bodies[0], appending_kernel(), words.at, 0);
        const TestExec exec(graph);
        const TestStream stream;
        return said([&] {
            exec.launch(stream);
            CHECK(call("cuStreamSynchronize", stream.handle) == expected);
        });
    };
    CHECK_THAT(said_of(true, CUDA_ERROR_LAUNCH_TIMEOUT),
               Catch::Contains("the loops of a graph have done 100000 rounds"));
    CHECK_THAT(said_of(false, CUDA_ERROR_LAUNCH_FAILED), Catch::Contains("nothing has set its condition"));
}

TEST_CASE("conditions: a body races with branches of its graph") {
    const Words words;
    const auto warning = [&](bool is_ordered) {
        const CUfunction kernel = appending_kernel(), beside = appending_kernel();
        TestGraph graph;
        const CUgraphNode first = graph.empty();
        const CUgraphNode other = graph.append(beside, words.at, 1, {first});
        const Conditional its =
            add(graph, handle_for(graph, 1), CU_GRAPH_COND_TYPE_IF, 1, {is_ordered ? other : first});
        append_in(its.bodies[0], kernel, words.at, 2);
        const TestExec exec(graph);
        const TestStream stream;
        return said([&] {
            WORKS(exec.launch(stream));
            WORKS(call("cuCtxSynchronize"));
        });
    };
    CHECK(warning(true) == "");
    CHECK_THAT(warning(false), Catch::Contains("nothing orders the two"));
}

TEST_CASE("conditions: handles and nodes that do not fit are refused") {
    const Words words;
    TestGraph graph, other;
    const CUgraphConditionalHandle handle = handle_for(graph, 0);
    CUgraphConditionalHandle none = 0;
    CHECK(call("cuGraphConditionalHandleCreate", &none, graph.handle, words.context.handle, 0u, 2u) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(add(other, handle, CU_GRAPH_COND_TYPE_IF).result == CUDA_ERROR_INVALID_VALUE);
    CHECK(add(graph, words.at, CU_GRAPH_COND_TYPE_IF).result == CUDA_ERROR_INVALID_VALUE);
    CHECK(add(graph, handle, CU_GRAPH_COND_TYPE_IF, 3).result == CUDA_ERROR_INVALID_VALUE);
    CHECK(add(graph, handle, CU_GRAPH_COND_TYPE_IF, 0).result == CUDA_ERROR_INVALID_VALUE);
    CHECK(add(graph, handle, CU_GRAPH_COND_TYPE_WHILE, 2).result == CUDA_ERROR_INVALID_VALUE);
    CHECK(add(graph, handle, CUgraphConditionalNodeType(3)).result == CUDA_ERROR_INVALID_VALUE);
    CUgraphExec exec = nullptr;
    CUDA_GRAPH_INSTANTIATE_PARAMS how{};
    CHECK(call("cuGraphInstantiateWithParams", &exec, graph.handle, &how) == CUDA_ERROR_INVALID_VALUE);
    CHECK(how.result_out == CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
    const Conditional its = add(graph, handle, CU_GRAPH_COND_TYPE_IF);
    REQUIRE(its.result == CUDA_SUCCESS);
    CHECK(add(graph, handle, CU_GRAPH_COND_TYPE_IF).result == CUDA_ERROR_INVALID_VALUE);  // it has a node
    CHECK(call("cuGraphDestroy", its.bodies[0]) == CUDA_ERROR_INVALID_VALUE);             // the node's
    WORKS(call("cuGraphDestroyNode", its.node));
    CHECK(add(graph, handle, CU_GRAPH_COND_TYPE_SWITCH, 5).result == CUDA_SUCCESS);
}

TEST_CASE("conditions: what a body cannot have is refused, in children of it, too") {
    const Words words;
    TestGraph graph, with_host;
    const Conditional its = add(graph, handle_for(graph, 0), CU_GRAPH_COND_TYPE_IF);
    const CUgraph body = its.bodies[0];
    CUgraphNode node = nullptr;
    const CUDA_HOST_NODE_PARAMS host{[](void*) {}, nullptr};
    const CUgraphNode* const nothing = nullptr;
    const TestEvent event;
    CHECK(call("cuGraphAddHostNode", &node, body, nothing, std::size_t{0}, &host) == CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuGraphAddEventRecordNode", &node, body, nothing, std::size_t{0}, event.handle) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuGraphAddEventWaitNode", &node, body, nothing, std::size_t{0}, event.handle) ==
          CUDA_ERROR_INVALID_VALUE);
    CUDA_MEM_ALLOC_NODE_PARAMS allocation{};
    allocation.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    allocation.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    allocation.bytesize = 64;
    CHECK(call("cuGraphAddMemAllocNode", &node, body, nothing, std::size_t{0}, &allocation) ==
          CUDA_ERROR_INVALID_VALUE);
    with_host.host(host.fn, nullptr);
    CHECK(call("cuGraphAddChildGraphNode", &node, body, nothing, std::size_t{0}, with_host.handle) ==
          CUDA_ERROR_INVALID_VALUE);
    TestGraph child;
    WORKS(call("cuGraphAddChildGraphNode", &node, body, nothing, std::size_t{0}, child.handle));
    CUgraph embedded = nullptr;
    WORKS(call("cuGraphChildGraphNodeGetGraph", node, &embedded));
    CHECK(call("cuGraphAddHostNode", &node, embedded, nothing, std::size_t{0}, &host) == CUDA_ERROR_INVALID_VALUE);
    {
        const OwnContext elsewhere;
        const CUfunction foreign = appending_kernel();
        CUdeviceptr word = 0;
        unsigned digit = 0;
        void* parameters[] = {&word, &digit};
        const CUDA_KERNEL_NODE_PARAMS params = appending(foreign, parameters);
        CHECK(call("cuGraphAddKernelNode_v2", &node, body, nothing, std::size_t{0}, &params) ==
              CUDA_ERROR_INVALID_VALUE);
    }
}

TEST_CASE("conditions: their graph is no child, has no copy, and one executable graph at a time") {
    const Words words;
    TestGraph graph, parent;
    const Conditional its = add(graph, handle_for(graph, 1), CU_GRAPH_COND_TYPE_IF);
    append_in(its.bodies[0], appending_kernel(), words.at, 6);
    CUgraph copy = nullptr;
    CUgraphNode node = nullptr;
    CHECK(call("cuGraphClone", &copy, graph.handle) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(call("cuGraphAddChildGraphNode", &node, parent.handle, static_cast<CUgraphNode*>(nullptr), std::size_t{0},
               graph.handle) == CUDA_ERROR_NOT_SUPPORTED);
    const TestStream stream;
    {
        const TestExec exec(graph);
        CUgraphExec second = nullptr;
        CHECK(call("cuGraphInstantiateWithFlags", &second, graph.handle, 0ull) == CUDA_ERROR_INVALID_VALUE);
        WORKS(exec.launch(stream));
        WORKS(call("cuStreamBeginCapture_v2", stream.handle, CU_STREAM_CAPTURE_MODE_RELAXED));
        CHECK(exec.launch(stream) == CUDA_ERROR_NOT_SUPPORTED);
        call("cuStreamEndCapture", stream.handle, &copy);
    }
    const TestExec again(graph);
    WORKS(again.launch(stream));
    CHECK(words.value() == 66);
}

TEST_CASE("conditions: an update takes the nodes of bodies and the first values of another graph") {
    const Words words;
    const CUfunction kernel = appending_kernel();
    const auto make = [&](TestGraph& graph, unsigned first, unsigned digit, unsigned size = 2, unsigned nodes = 1) {
        const Conditional its = add(graph, handle_for(graph, first), CU_GRAPH_COND_TYPE_IF, size);
        for (unsigned i = 0; i < size; ++i)
            for (unsigned k = 0; k < nodes; ++k) append_in(its.bodies[i], kernel, words.at, digit + i);
    };
    TestGraph graph, changed, wider, longer;
    make(graph, 1, 1);
    make(changed, 0, 5);
    make(wider, 1, 1, 1);
    make(longer, 1, 1, 2, 2);
    const TestExec exec(graph);
    const TestStream stream;
    WORKS(exec.launch(stream));
    CHECK(words.value() == 1);
    CUgraphExecUpdateResultInfo info{};
    WORKS(call("cuGraphExecUpdate_v2", exec.handle, changed.handle, &info));
    WORKS(exec.launch(stream));
    CHECK(words.value() == 16);
    CHECK(call("cuGraphExecUpdate_v2", exec.handle, wider.handle, &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);
    CHECK(call("cuGraphExecUpdate_v2", exec.handle, longer.handle, &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
}

TEST_CASE("conditions: pictures of graphs have them") {
    const Words words;
    TestGraph graph;
    const Conditional its = add(graph, handle_for(graph, 1), CU_GRAPH_COND_TYPE_IF, 2);
    append_in(its.bodies[1], appending_kernel(), words.at, 1);
    char path[] = "/tmp/ikat-graph-XXXXXX";
    close(mkstemp(path));
    WORKS(call("cuGraphDebugDotPrint", graph.handle, static_cast<const char*>(path), 1u << 15));
    std::ifstream in(path);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    unlink(path);
    CHECK_THAT(text, Catch::Contains("CONDITIONAL\\nIF of 2, 0x") && Catch::Contains("graph_3_node_0"));
}

}  // namespace conditions
}  // namespace
}  // namespace ikat::tests
