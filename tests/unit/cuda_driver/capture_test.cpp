// SPDX-License-Identifier: Apache-2.0
// Graphs of what streams are given, and what must not be done meanwhile.
#include <atomic>
#include <thread>

#include "tests/unit/cuda_driver/graphs.hpp"

namespace ikat::tests {
namespace {
namespace captures {

void begin(CUstream stream, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    WORKS(call("cuStreamBeginCapture_v2", stream, mode));
}
CUresult end(CUstream stream, CUgraph* graph) { return call("cuStreamEndCapture", stream, graph); }
CUresult end(CUstream stream) {
    CUgraph graph = nullptr;
    const CUresult result = end(stream, &graph);
    CHECK((graph == nullptr) == (result != CUDA_SUCCESS));
    if (graph) WORKS(call("cuGraphDestroy", graph));
    return result;
}
CUstreamCaptureStatus status_of(CUstream stream) {
    CUstreamCaptureStatus out{};
    WORKS(call("cuStreamIsCapturing", stream, &out));
    return out;
}
CUresult record(CUevent event, CUstream stream) { return call("cuEventRecord", event, stream); }
CUresult wait(CUstream stream, CUevent event) { return call("cuStreamWaitEvent", stream, event, 0u); }

TEST_CASE("captures: what a stream is given becomes a graph, and is not done") {
    const Words words;
    const CUfunction kernel = appending_kernel();
    const TestStream stream;
    unsigned in = 3, out = 0;
    std::atomic<int> called = 0;
    begin(stream);
    CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    WORKS(call("cuMemsetD32Async", words.at, 1u, std::size_t{1}, stream.handle));
    WORKS(append(kernel, words.at, 2, stream));
    WORKS(call("cuMemcpyHtoDAsync_v2", words.word(1), static_cast<const void*>(&in), std::size_t{4}, stream.handle));
    WORKS(call("cuMemcpyDtoHAsync_v2", static_cast<void*>(&out), words.at, std::size_t{4}, stream.handle));
    const CUhostFn count = [](void* data) { ++*static_cast<std::atomic<int>*>(data); };
    WORKS(call("cuLaunchHostFunc", stream.handle, count, static_cast<void*>(&called)));
    CUgraph captured = nullptr;
    WORKS(end(stream, &captured));
    const TestGraph graph(captured);
    CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
    CHECK(graph.nodes() == 5);
    CHECK((words.value() == 0 && out == 0 && called == 0));
    const TestExec exec(graph);
    for (int i = 1; i <= 2; ++i) {
        WORKS(exec.launch(stream));
        WORKS(call("cuStreamSynchronize", stream.handle));
        CHECK((out == 12 && words.value(1) == 3 && called == i));
    }
}

TEST_CASE("captures: events fork to other streams and join them") {
    const Words words;
    const CUfunction kernel = appending_kernel();
    const TestStream a, b;
    const TestEvent forked, joined;
    begin(a);
    WORKS(append(kernel, words.at, 1, a));
    WORKS(record(forked, a));
    CHECK(status_of(b) == CU_STREAM_CAPTURE_STATUS_NONE);
    WORKS(wait(b, forked));
    CHECK(status_of(b) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    WORKS(append(kernel, words.at, 2, b));
    WORKS(append(kernel, words.word(1), 7, a));
    WORKS(record(joined, b));
    WORKS(wait(a, joined));
    WORKS(append(kernel, words.at, 3, a));
    CUgraph captured = nullptr;
    WORKS(end(a, &captured));
    const TestGraph graph(captured);
    CHECK(status_of(b) == CU_STREAM_CAPTURE_STATUS_NONE);
    std::size_t edges = 0;
    WORKS(call("cuGraphGetEdges", graph.handle, static_cast<CUgraphNode*>(nullptr), static_cast<CUgraphNode*>(nullptr),
               &edges));
    CHECK((graph.nodes() == 4 && edges == 4));
    const TestExec exec(graph);
    CHECK(said([&] { WORKS(exec.launch(a)); }) == "");
    CHECK(words.value() == 123);
    CHECK(words.value(1) == 7);
    CHECK(call("cuEventQuery", forked.handle) == CUDA_ERROR_CAPTURED_EVENT);
    CHECK(wait(a, forked) == CUDA_ERROR_CAPTURED_EVENT);
    WORKS(record(forked, a));
    WORKS(call("cuEventQuery", forked.handle));
}

TEST_CASE("captures: a stream that has not been joined, or was not the first, is no end") {
    const Words words;
    const TestStream a, b;
    const TestEvent event;
    const CUfunction kernel = appending_kernel();
    begin(a);
    WORKS(record(event, a));
    WORKS(wait(b, event));
    WORKS(append(kernel, words.at, 1, b));
    WORKS(append(kernel, words.word(1), 1, a));
    CUresult result = CUDA_SUCCESS;
    const std::string text = said([&] { result = end(a); });
    CHECK(result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    CHECK_THAT(text, contains("work of another stream was captured"));
    CHECK(status_of(b) == CU_STREAM_CAPTURE_STATUS_NONE);
    begin(a);  // a stream with nothing captured need not be joined
    WORKS(append(kernel, words.at, 1, a));
    WORKS(record(event, a));
    WORKS(wait(b, event));
    WORKS(end(a));
    CHECK(end(a) == CUDA_ERROR_ILLEGAL_STATE);
    begin(a);
    WORKS(record(event, a));
    WORKS(wait(b, event));
    CHECK(end(b) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    CHECK(end(a) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_CASE("captures: what cannot be captured breaks them") {
    enum class Way {
        Nothing,
        SyncStream,
        QueryStream,
        SyncContext,
        Allocate,
        Free,
        Callback,
        SyncEvent,
        EarlierEvent,
        Prefetch,
        BadLaunch,
        Begin,
        count
    };
    for (int i = 0; i < int(Way::count); ++i) {
        const Words words;
        const TestStream stream;
        const TestEvent before, inside;
        CUdeviceptr other = 0, managed = 0;
        WORKS(call("cuMemAllocManaged", &managed, std::size_t{16}, 1u));
        WORKS(record(before, stream));
        begin(stream);
        WORKS(record(inside, stream));
        CUresult result = CUDA_SUCCESS, expected = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        switch (Way(i)) {
            case Way::Nothing: expected = CUDA_SUCCESS; break;
            case Way::SyncStream: result = call("cuStreamSynchronize", stream.handle); break;
            case Way::QueryStream: result = call("cuStreamQuery", stream.handle); break;
            case Way::SyncContext: result = call("cuCtxSynchronize"); break;
            case Way::Allocate: result = call("cuMemAlloc_v2", &other, std::size_t{4}); break;
            case Way::Free: result = call("cuMemFree_v2", words.at); break;
            case Way::Callback:
                result = call("cuStreamAddCallback", stream.handle, CUstreamCallback([](CUstream, CUresult, void*) {}),
                              static_cast<void*>(nullptr), 0u);
                break;
            case Way::SyncEvent:
                result = call("cuEventSynchronize", inside.handle), expected = CUDA_ERROR_CAPTURED_EVENT;
                break;
            case Way::EarlierEvent:
                result = wait(stream, before), expected = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
                break;
            case Way::Prefetch:
                result = call("cuMemPrefetchAsync", managed, std::size_t{16}, CUdevice(0), stream.handle);
                break;
            case Way::BadLaunch:
                result = launch(appending_kernel(), {}, nullptr, stream), expected = CUDA_ERROR_INVALID_VALUE;
                break;
            case Way::Begin:
                result = call("cuStreamBeginCapture", stream.handle), expected = CUDA_ERROR_ILLEGAL_STATE;
                break;
            case Way::count: break;
        }
        INFO(i);
        CHECK(result == expected);
        const bool is_broken = Way(i) != Way::Nothing && Way(i) != Way::Begin;
        CHECK(status_of(stream) ==
              (is_broken ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE));
        if (is_broken) CHECK(append(appending_kernel(), words.at, 1, stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        CHECK(end(stream) == (is_broken ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS));
        WORKS(append(appending_kernel(), words.at, 1, stream));  // the stream is as before
        WORKS(call("cuCtxSynchronize"));
    }
}

TEST_CASE("captures: the default stream is not captured, nor used while a stream that waits for it is") {
    const Words words;
    const CUfunction kernel = appending_kernel();
    CHECK(call("cuStreamBeginCapture", CUstream(nullptr)) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    for (const unsigned flags : {0u, 1u}) {
        const TestStream stream(flags);
        begin(stream);
        CUstreamCaptureStatus status{};
        const CUresult asked = call("cuStreamIsCapturing", CUstream(nullptr), &status);
        CHECK(asked == (flags == 0 ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS));
        CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);  // asking does no harm
        const CUresult used = append(kernel, words.at, 1, nullptr);
        CHECK(used == asked);
        CHECK(end(stream) == (flags == 0 ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS));
    }
}

TEST_CASE("captures: two are not merged") {
    const Words words;
    const TestStream a, b;
    const TestEvent event;
    begin(a);
    begin(b);
    WORKS(record(event, a));
    CHECK(wait(b, event) == CUDA_ERROR_STREAM_CAPTURE_MERGE);
    CHECK(end(a) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(end(b) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_CASE("captures: what other threads may do depends on the modes") {
    const Words words;
    const auto allocate_elsewhere = [&](CUstreamCaptureMode mode_of_thread) {
        CUresult result = CUDA_ERROR_UNKNOWN;
        std::thread([&] {
            call("cuCtxSetCurrent", words.context.handle);
            WORKS(call("cuThreadExchangeStreamCaptureMode", &mode_of_thread));
            CHECK(mode_of_thread == CU_STREAM_CAPTURE_MODE_GLOBAL);  // what it was
            CUdeviceptr out = 0;
            result = call("cuMemAlloc_v2", &out, std::size_t{4});
        }).join();
        return result;
    };
    constexpr auto global = CU_STREAM_CAPTURE_MODE_GLOBAL, local = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                   relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    for (const auto& [mode, mode_of_thread, is_allowed] :
         {std::tuple{global, global, false}, {global, local, true}, {global, relaxed, true}, {local, global, true}}) {
        const TestStream stream;
        begin(stream, mode);
        CHECK(allocate_elsewhere(mode_of_thread) ==
              (is_allowed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
        CHECK(end(stream) == (is_allowed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED));
    }
    const TestStream stream;
    CUdeviceptr out = 0;
    begin(stream, relaxed);
    WORKS(call("cuMemAlloc_v2", &out, std::size_t{4}));
    std::thread([&] {
        call("cuCtxSetCurrent", words.context.handle);
        WORKS(end(stream));  // any thread may
    }).join();
    begin(stream, local);
    std::thread([&] {
        call("cuCtxSetCurrent", words.context.handle);
        CHECK(end(stream) == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    }).join();
    CUstreamCaptureMode mode = relaxed;
    WORKS(call("cuThreadExchangeStreamCaptureMode", &mode));
    WORKS(call("cuMemAlloc_v2", &out, std::size_t{4}));  // of this thread's own capture
    WORKS(call("cuThreadExchangeStreamCaptureMode", &mode));
    WORKS(end(stream));
}

TEST_CASE("captures: a program sees the graph and changes what comes next") {
    const Words words;
    const CUfunction kernel = appending_kernel();
    const TestStream stream;
    const TestGraph into;
    TestGraph& graph = const_cast<TestGraph&>(into);
    const CUgraphNode first = graph.append(kernel, words.at, 1);
    WORKS(call("cuStreamBeginCaptureToGraph", stream.handle, into.handle, &first,
               static_cast<CUgraphEdgeData*>(nullptr), std::size_t{1}, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CUstreamCaptureStatus status{};
    unsigned long long id = 0;
    CUgraph seen = nullptr;
    const CUgraphNode* next = nullptr;
    std::size_t count = 0;
    const auto inform = [&] {
        WORKS(call("cuStreamGetCaptureInfo_v2", stream.handle, &status, &id, &seen, &next, &count));
    };
    inform();
    CHECK((seen == into.handle && count == 1 && next[0] == first && id != 0));
    CUgraphExec exec = nullptr;
    CHECK(call("cuGraphInstantiateWithFlags", &exec, into.handle, 0ull) == CUDA_ERROR_INVALID_VALUE);  // not yet
    CHECK(call("cuGraphDestroyNode", first) == CUDA_ERROR_INVALID_VALUE);
    WORKS(append(kernel, words.at, 2, stream));
    inform();
    CUgraphNode own = graph.append(kernel, words.at, 3, {next[0]});
    WORKS(call("cuStreamUpdateCaptureDependencies", stream.handle, &own, std::size_t{1},
               CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    WORKS(append(kernel, words.at, 4, stream));
    CUgraph out = nullptr;
    WORKS(end(stream, &out));
    CHECK(out == into.handle);
    CHECK(call("cuStreamUpdateCaptureDependencies", stream.handle, &own, std::size_t{1}, 0u) ==
          CUDA_ERROR_ILLEGAL_STATE);
    WORKS(TestExec(into).launch(stream));
    CHECK(words.value() == 1234);
}

TEST_CASE("captures: launches of graphs and external events become nodes") {
    const Words words;
    const CUfunction kernel = appending_kernel();
    const TestStream stream, other;
    const TestEvent event;
    TestGraph inner;
    inner.append(kernel, words.at, 5);
    const TestExec exec(inner);
    CHECK(call("cuEventRecordWithFlags", event.handle, stream.handle, CU_EVENT_RECORD_EXTERNAL) ==
          CUDA_ERROR_INVALID_VALUE);
    begin(stream);
    WORKS(append(kernel, words.at, 1, stream));
    WORKS(exec.launch(stream));
    WORKS(call("cuEventRecordWithFlags", event.handle, stream.handle, CU_EVENT_RECORD_EXTERNAL));
    WORKS(call("cuStreamWaitEvent", stream.handle, event.handle, CU_EVENT_WAIT_EXTERNAL));
    CUgraph captured = nullptr;
    WORKS(end(stream, &captured));
    const TestGraph graph(captured);
    CHECK(graph.nodes() == 4);
    CHECK(words.value() == 0);
    const TestExec outer(graph);
    CHECK(said([&] {
              WORKS(outer.launch(stream));
              WORKS(wait(other, event));
              WORKS(append(kernel, words.at, 2, other));
          }) == "");
    CHECK(words.value() == 152);
}

TEST_CASE("captures: kernels that may begin early have programmatic edges, and overlap") {
    const Words words;
    const TestStream stream;
    const CUfunction first = function(load(".param .u64 p",
                                           ".reg .b64 %d; ld.param.u64 %d, [p];\n"
                                           "griddepcontrol.launch_dependents; st.global.u32 [%d], 7;"));
    const CUfunction second = function(load(".param .u64 p",
                                            ".reg .b64 %d; .reg .b32 %r; ld.param.u64 %d, [p];\n"
                                            "ld.global.u32 %r, [%d]; griddepcontrol.wait; st.global.u32 [%d+4], %r;"));
    CUdeviceptr address = words.at;
    void* parameters[] = {&address};
    const auto captured = [&](int may_overlap, CUgraphEdgeData& data) {
        CUlaunchAttribute early{};
        early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        early.value.programmaticStreamSerializationAllowed = may_overlap;
        CUlaunchConfig config{1, 1, 1, 1, 1, 1, 0, stream.handle, &early, 1};
        begin(stream);
        WORKS(launch(first, {}, parameters, stream));
        WORKS(call("cuLaunchKernelEx", static_cast<const CUlaunchConfig*>(&config), second, &parameters[0],
                   static_cast<void**>(nullptr)));
        CUgraph out = nullptr;
        WORKS(end(stream, &out));
        const TestGraph graph(out);
        CUgraphNode from = nullptr, to = nullptr;
        std::size_t count = 1;
        WORKS(call("cuGraphGetEdges_v2", graph.handle, &from, &to, &data, &count));
        const TestExec exec(graph);
        return said([&] { WORKS(exec.launch(stream)); });
    };
    CUgraphEdgeData data{};
    CHECK(captured(0, data) == "");
    CHECK((data.type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT && data.from_port == 0));
    CHECK_THAT(captured(1, data), contains("before griddepcontrol.wait"));
    CHECK((data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC && data.from_port == 1));
}

TEST_CASE("captures: a stream that has been joined may be destroyed") {
    const Words words;
    const CUfunction kernel = appending_kernel();
    for (const bool is_joined : {false, true}) {
        const TestStream a;
        const TestEvent event;
        begin(a);
        {
            WORKS(record(event, a));
            const TestStream b;
            WORKS(wait(b, event));
            WORKS(append(kernel, words.at, 1, b));
            WORKS(record(event, b));
        }
        if (is_joined) WORKS(wait(a, event));
        CHECK(end(a) == (is_joined ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED));
    }
}

TEST_CASE("captures: those of a stream or a context that ends are over") {
    CUgraph graph = nullptr;
    {
        const OwnContext context;
        const TestStream gone, stays;
        begin(gone, CU_STREAM_CAPTURE_MODE_RELAXED);
        WORKS(call("cuStreamDestroy_v2", gone.handle));
        begin(stays, CU_STREAM_CAPTURE_MODE_GLOBAL);
    }
    const Words words;  // allocates, which the capture would forbid
    CHECK(end(nullptr, &graph) == CUDA_ERROR_ILLEGAL_STATE);
}

}  // namespace captures
}  // namespace
}  // namespace ikat::tests
