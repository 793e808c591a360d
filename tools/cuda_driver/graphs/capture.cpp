// SPDX-License-Identifier: Apache-2.0
// The begin and the end of captures, what they say of themselves, and events in them.
#include "tools/cuda_driver/graphs/capture.hpp"

#include <algorithm>

namespace ikat::cuda_driver {
namespace {

CUresult begin(const char* name, CUstream stream, CUgraph into, const CUgraphNode* nodes, const CUgraphEdgeData* data,
               std::size_t count, CUstreamCaptureMode mode) {
    return initialised(name, [&](Driver& its) {
        require(mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
        const Context& context = context_of(its, stream);
        const emulator::StreamId id = id_of(stream);
        if (id == emulator::default_stream)
            refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the default stream cannot be captured",
                   "make a stream with cuStreamCreate");
        if (captures().find(id)) refuse(CUDA_ERROR_ILLEGAL_STATE, "the stream is captured already");
        auto capture = std::make_unique<Capture>();
        capture->id = its.new_handle();
        capture->origin = id;
        capture->context = context.id;
        capture->thread = std::this_thread::get_id();
        capture->mode = mode;
        if (!into) capture->own = std::make_unique<Graph>(its);
        capture->graph = into ? &graph_at(into) : capture->own.get();
        capture->branches[id] = {edges_from(*capture->graph, nodes, data, count),
                                 stream_at(its, stream)->waits_for_default};
        ++capture->graph->captures;
        captures().all.push_back(std::move(capture));
    });
}

/// Whether all that was captured comes before what the origin's next node would come after.
bool is_joined(const Capture& capture) {
    std::set<const GraphNode*> reached;
    std::vector<const GraphNode*> open;
    for (const GraphNode::Edge& edge : capture.branches.at(capture.origin).next) open.push_back(edge.from);
    while (!open.empty()) {
        const GraphNode* const node = open.back();
        open.pop_back();
        if (!reached.insert(node).second) continue;
        for (const GraphNode::Edge& edge : node->after) open.push_back(edge.from);
    }
    return std::ranges::includes(reached, capture.to_join);
}

void end(Driver& its, CUstream stream, CUgraph* out) {
    require(out);
    *out = nullptr;
    context_of(its, stream);
    Capture* const capture = captures().find(id_of(stream));
    if (!capture) refuse(CUDA_ERROR_ILLEGAL_STATE, "the stream is not captured");
    if (capture->origin != id_of(stream))
        break_capture(*capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "the capture was begun on another stream",
                      "end it there");
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != std::this_thread::get_id())
        refuse(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "the capture was begun by another thread",
               "end it there, or begin it with CU_STREAM_CAPTURE_MODE_RELAXED");
    const CUresult result = capture->is_invalid    ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                            : !is_joined(*capture) ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                                                   : CUDA_SUCCESS;
    std::unique_ptr<Graph> own = std::move(capture->own);
    const Graph& graph = *capture->graph;
    captures().end(*capture);
    if (result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED)
        refuse(result, "work of another stream was captured, and this one has not waited for it",
               "record an event there at the end, and let this stream wait for it");
    if (result != CUDA_SUCCESS) refuse(result);
    *out = reinterpret_cast<CUgraph>(graph.handle);
    if (own) graphs().own.emplace(graph.handle, std::move(own));
}

struct CaptureAsked {
    CUstreamCaptureStatus* status = nullptr;
    unsigned long long* id = nullptr;
    CUgraph* graph = nullptr;
    const CUgraphNode** nodes = nullptr;
    const CUgraphEdgeData** data = nullptr;
    std::size_t* count = nullptr;
};

bool has_data(const GraphNode::Edge& edge) { return edge.data.type != 0 || edge.data.from_port != 0; }

CUresult inform(const char* name, CUstream stream, const CaptureAsked& asked) {
    return initialised(name, [&](Driver& its) {
        require(asked.status && (asked.nodes || !asked.data));
        const Context& context = context_of(its, stream);
        const emulator::StreamId id = id_of(stream);
        Capture* const capture = captures().find(id);
        if (id == emulator::default_stream && default_is_unusable(context)) refuse(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        *asked.status = !capture              ? CU_STREAM_CAPTURE_STATUS_NONE
                        : capture->is_invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                              : CU_STREAM_CAPTURE_STATUS_ACTIVE;
        if (!capture || capture->is_invalid) return;
        Capture::Branch& branch = capture->branches.at(id);
        if (asked.nodes && !asked.data && std::ranges::any_of(branch.next, has_data)) refuse(CUDA_ERROR_LOSSY_QUERY);
        branch.names.clear(), branch.data.clear();
        for (const auto& [node, data] : branch.next) branch.names.push_back(node->name()), branch.data.push_back(data);
        if (asked.id) *asked.id = capture->id;
        if (asked.graph) *asked.graph = reinterpret_cast<CUgraph>(capture->graph->handle);
        if (asked.nodes) *asked.nodes = branch.names.data();
        if (asked.data) *asked.data = branch.data.data();
        if (asked.count) *asked.count = branch.names.size();
    });
}

/// Nodes that the program itself takes from a stream need not be joined, nor what is before them.
void need_not_join(Capture& capture, const GraphNode* node) {
    if (capture.to_join.erase(node) == 0) return;
    for (const GraphNode::Edge& edge : node->after) need_not_join(capture, edge.from);
}

void join(std::vector<GraphNode::Edge>& to, const std::vector<GraphNode::Edge>& more) {
    for (const GraphNode::Edge& edge : more)
        if (std::ranges::find(to, edge.from, &GraphNode::Edge::from) == to.end()) to.push_back(edge);
}

CUresult update(const char* name, CUstream stream, CUgraphNode* nodes, const CUgraphEdgeData* data, std::size_t count,
                unsigned flags) {
    return initialised(name, [&](Driver& its) {
        require(flags <= CU_STREAM_SET_CAPTURE_DEPENDENCIES);
        Capture* const capture = capture_of(its, context_of(its, stream), stream);
        if (!capture) refuse(CUDA_ERROR_ILLEGAL_STATE, "the stream is not captured");
        const std::vector<GraphNode::Edge> given = edges_from(*capture->graph, nodes, data, count);
        std::vector<GraphNode::Edge>& next = capture->branches.at(id_of(stream)).next;
        if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
            for (const GraphNode::Edge& edge : std::exchange(next, {})) need_not_join(*capture, edge.from);
        join(next, given);
    });
}

}  // namespace

void record_captured(Driver&, Capture& capture, CUstream stream, CUevent event, bool is_external) {
    if (is_external)
        capture.add(id_of(stream), RecordNode{event});
    else
        captures().events[id_of(event)] = {capture.id, capture.branches.at(id_of(stream)).next};
}

bool wait_captured(Driver& its, Capture* capture, CUstream stream, CUevent event, bool is_external) {
    if (is_external) {
        capture->add(id_of(stream), WaitNode{event});
        return true;
    }
    const auto found = captures().events.find(id_of(event));
    if (found == captures().events.end()) {
        if (!capture) return false;
        break_capture(*capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                      "a captured stream waits for an event that was not captured",
                      "wait before the capture, or give CU_EVENT_WAIT_EXTERNAL");
    }
    const auto other =
        std::ranges::find(captures().all, found->second.capture, [](const auto& each) { return each->id; });
    if (other == captures().all.end()) {
        if (capture)
            break_capture(*capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                          "a captured stream waits for an event of a capture that has ended");
        refuse(CUDA_ERROR_CAPTURED_EVENT, "the event was recorded last in a capture, which does no work");
    }
    Capture& its_capture = **other;
    if (its_capture.is_invalid) refuse(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    if (capture && capture != &its_capture) {
        its_capture.is_invalid = true;
        break_capture(*capture, CUDA_ERROR_STREAM_CAPTURE_MERGE, "the event belongs to another capture");
    }
    if (id_of(stream) == emulator::default_stream)
        break_capture(its_capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "the default stream waits for a captured event");
    const auto known = stream_at(its, stream);
    Capture::Branch& branch = its_capture.branches[id_of(stream)];
    branch.waits_for_default = known->waits_for_default;
    join(branch.next, found->second.nodes);
    return true;
}

API(cuStreamBeginCapture, CUstream stream) {
    return begin("cuStreamBeginCapture", stream, nullptr, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_GLOBAL);
}
API(cuStreamBeginCapture_v2, CUstream stream, CUstreamCaptureMode mode) {
    return begin("cuStreamBeginCapture", stream, nullptr, nullptr, nullptr, 0, mode);
}
API(cuStreamBeginCaptureToGraph, CUstream stream, CUgraph graph, const CUgraphNode* nodes, const CUgraphEdgeData* data,
    std::size_t count, CUstreamCaptureMode mode) {
    if (!graph) return CUDA_ERROR_INVALID_VALUE;
    return begin("cuStreamBeginCaptureToGraph", stream, graph, nodes, data, count, mode);
}
API(cuStreamEndCapture, CUstream stream, CUgraph* graph) {
    return initialised("cuStreamEndCapture", [&](Driver& its) { end(its, stream, graph); });
}
API(cuStreamIsCapturing, CUstream stream, CUstreamCaptureStatus* status) {
    return inform("cuStreamIsCapturing", stream, {.status = status});
}
API(cuStreamGetCaptureInfo, CUstream stream, CUstreamCaptureStatus* status, unsigned long long* id) {
    return inform("cuStreamGetCaptureInfo", stream, {.status = status, .id = id});
}
API(cuStreamGetCaptureInfo_v2, CUstream stream, CUstreamCaptureStatus* status, unsigned long long* id, CUgraph* graph,
    const CUgraphNode** nodes, std::size_t* count) {
    return inform("cuStreamGetCaptureInfo", stream, {status, id, graph, nodes, nullptr, count});
}
API(cuStreamGetCaptureInfo_v3, CUstream stream, CUstreamCaptureStatus* status, unsigned long long* id, CUgraph* graph,
    const CUgraphNode** nodes, const CUgraphEdgeData** data, std::size_t* count) {
    return inform("cuStreamGetCaptureInfo", stream, {status, id, graph, nodes, data, count});
}
API(cuStreamUpdateCaptureDependencies, CUstream stream, CUgraphNode* nodes, std::size_t count, unsigned flags) {
    return update("cuStreamUpdateCaptureDependencies", stream, nodes, nullptr, count, flags);
}
API(cuStreamUpdateCaptureDependencies_v2, CUstream stream, CUgraphNode* nodes, const CUgraphEdgeData* data,
    std::size_t count, unsigned flags) {
    return update("cuStreamUpdateCaptureDependencies", stream, nodes, data, count, flags);
}

}  // namespace ikat::cuda_driver
