// SPDX-License-Identifier: Apache-2.0
// Captures: what streams are given becomes nodes of a graph. A stream joins the capture of an event that it waits for,
// and a call that the rules of captures forbid ends it: it is invalid from then on.
//
//     cuStreamBeginCapture(a)     a: kernel 1 ── record e ── kernel 2 ──────────── wait f ── kernel 4
//     cuStreamEndCapture(a)       b:         wait e ── kernel 3 ── record f     4 comes after 2 and 3
//
// All of it is used under the driver's lock.
#pragma once
#include <set>
#include <thread>

#include "tools/cuda_driver/graphs/graph.hpp"

namespace ikat::cuda_driver {

struct Capture {
    std::uint64_t id = 0;
    emulator::StreamId origin{};
    emulator::ContextId context{};
    std::thread::id thread{};
    CUstreamCaptureMode mode{};
    std::unique_ptr<Graph> own{};  // until it is the program's
    Graph* graph = nullptr;        // that, or one of the program
    bool is_invalid = false;
    struct Branch {
        std::vector<GraphNode::Edge> next{};  // what the stream's next node comes after
        bool waits_for_default = true;
        std::vector<CUgraphNode> names{};  // the same for the program
        std::vector<CUgraphEdgeData> data{};
    };
    std::map<emulator::StreamId, Branch> branches{};
    std::set<const GraphNode*> to_join{};  // nodes that the origin must come after at the end

    /// Adds a node to a stream's branch.
    GraphNode& add(emulator::StreamId stream, NodeWork work);
};

struct Captures {
    struct Recorded {
        std::uint64_t capture = 0;
        std::vector<GraphNode::Edge> nodes{};
    };

    Capture* find(emulator::StreamId stream);
    void end(Capture& capture);

    std::vector<std::unique_ptr<Capture>> all{};
    std::map<emulator::EventId, Recorded> events{};  // whose last recording was captured
};
Captures& captures();

/// Ends the validity of a capture and refuses the call.
[[noreturn]] void break_capture(Capture& capture, CUresult result, std::string reason, std::string hint = {});
/// The capture that takes what the stream is given; nullptr if it is not captured. Refuses the default stream while a
/// stream that waits for it is captured, and a stream whose capture is invalid.
Capture* capture_of(Driver& its, const Context& context, CUstream stream);
/// Whether a stream that waits for the default one is captured.
bool default_is_unusable(const Context& context);
/// An event is recorded on a captured stream, or as a node.
void record_captured(Driver& its, Capture& capture, CUstream stream, CUevent event, bool is_external);
/// A stream waits for an event, which may make it part of a capture. False if neither is captured.
bool wait_captured(Driver& its, Capture* capture, CUstream stream, CUevent event, bool is_external);
/// Refuses a call that no capture sees, as the modes of captures and of this thread say.
void check_unsafe_call();
/// Refuses to wait for all that a context has.
void check_not_captured(const Context& context);
/// ... or to wait for a stream, or for an event, or to ask for them.
void check_not_captured(Driver& its, const Context& context, CUstream stream);
void check_not_captured(CUevent event);
/// An event or a stream is gone, or a context.
void forget_captured(CUevent event);
void forget_captured(emulator::StreamId stream);
void forget_captured(const Context& context);

}  // namespace ikat::cuda_driver
