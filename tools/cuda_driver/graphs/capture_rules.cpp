// SPDX-License-Identifier: Apache-2.0
// What calls do to captures: which they belong to, and which they must not be made during.
#include <algorithm>

#include "tools/cuda_driver/graphs/capture.hpp"

namespace ikat::cuda_driver {

Captures& captures() {
    static auto& all = *new Captures;  // threads may call until the process ends
    return all;
}

GraphNode& Capture::add(emulator::StreamId stream, NodeWork work) {
    Branch& branch = branches.at(stream);
    GraphNode& node = graph->add(std::move(work), branch.next);
    to_join.insert(&node);
    branch.next = {{&node}};
    return node;
}

Capture* Captures::find(emulator::StreamId stream) {
    const auto found = std::ranges::find_if(all, [&](const auto& each) { return each->branches.contains(stream); });
    return found == all.end() ? nullptr : found->get();
}

void Captures::end(Capture& capture) {
    --capture.graph->captures;
    std::erase_if(all, [&](const auto& each) { return each.get() == &capture; });
}

void break_capture(Capture& capture, CUresult result, std::string reason, std::string hint) {
    capture.is_invalid = true;
    refuse(result, std::move(reason), std::move(hint));
}

namespace {

/// A capture of a stream that waits for the default one, if there is any in this context.
Capture* that_default_would_join(const Context& context) {
    for (const auto& capture : captures().all)
        if (capture->context == context.id)
            for (const auto& [stream, branch] : capture->branches)
                if (branch.waits_for_default) return capture.get();
    return nullptr;
}

}  // namespace

bool default_is_unusable(const Context& context) { return that_default_would_join(context) != nullptr; }

Capture* capture_of(Driver&, const Context& context, CUstream stream) {
    const emulator::StreamId id = id_of(stream);
    if (id == emulator::default_stream) {
        if (Capture* const other = that_default_would_join(context))
            break_capture(*other, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                          "the default stream is used while a stream that waits for it is captured",
                          "use another stream, or capture one with CU_STREAM_NON_BLOCKING");
        return nullptr;
    }
    Capture* const capture = captures().find(id);
    if (capture && capture->is_invalid) refuse(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    return capture;
}

void check_capture(Driver& its, const Context& context, CUstream stream, InCapture what) {
    Capture* const capture = capture_of(its, context, stream);
    if (capture && what == InCapture::IsForbidden)
        break_capture(*capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                      "the stream is captured, and this cannot be part of a graph");
}

void note_refusal(CUstream stream) noexcept {
    if (captures().all.empty()) return;
    translated("", [&] {
        const std::lock_guard lock(driver().mutex);
        if (Capture* const capture = captures().find(id_of(stream))) capture->is_invalid = true;
    });
}

namespace {

thread_local CUstreamCaptureMode mode_of_thread = CU_STREAM_CAPTURE_MODE_GLOBAL;

}  // namespace

void check_unsafe_call() {
    if (mode_of_thread == CU_STREAM_CAPTURE_MODE_RELAXED) return;
    bool is_forbidden = false;
    for (const auto& capture : captures().all) {
        const bool is_own = capture->thread == std::this_thread::get_id();
        if (capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
        if (!is_own &&
            (mode_of_thread != CU_STREAM_CAPTURE_MODE_GLOBAL || capture->mode != CU_STREAM_CAPTURE_MODE_GLOBAL))
            continue;
        capture->is_invalid = is_forbidden = true;
    }
    if (is_forbidden)
        refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
               "it is called while a stream is captured, and is no part of the graph",
               "call it before or after, or exchange the thread's mode for CU_STREAM_CAPTURE_MODE_RELAXED");
}

void check_not_captured(const Context& context) {
    for (const auto& capture : captures().all)
        if (capture->context == context.id)
            break_capture(*capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                          "it waits for all work while a stream is captured, which does none");
}

void check_not_captured(Driver& its, const Context& context, CUstream stream) {
    if (Capture* const capture = capture_of(its, context, stream))
        break_capture(*capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                      "the stream is captured: its work is not done before the graph is launched");
}

void check_not_captured(CUevent event) {
    const auto found = captures().events.find(id_of(event));
    if (found == captures().events.end()) return;
    for (const auto& capture : captures().all)
        if (capture->id == found->second.capture) capture->is_invalid = true;
    refuse(CUDA_ERROR_CAPTURED_EVENT, "the event was recorded last in a capture, which does no work");
}

void forget_captured(CUevent event) { captures().events.erase(id_of(event)); }

void forget_captured(emulator::StreamId stream) {
    Capture* const capture = captures().find(stream);
    if (!capture) return;
    if (capture->origin == stream)
        captures().end(*capture);
    else
        capture->branches.erase(stream);  // what was captured there is still to be joined
}

void forget_captured(const Context& context) {
    std::vector<Capture*> ended;
    for (const auto& capture : captures().all)
        if (capture->context == context.id) ended.push_back(capture.get());
    for (Capture* const capture : ended) captures().end(*capture);
}

API(cuThreadExchangeStreamCaptureMode, CUstreamCaptureMode* mode) {
    return initialised("cuThreadExchangeStreamCaptureMode", [&](Driver&) {
        require(mode && *mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
        std::swap(mode_of_thread, *mode);
    });
}

}  // namespace ikat::cuda_driver
