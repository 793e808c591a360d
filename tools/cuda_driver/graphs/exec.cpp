// SPDX-License-Identifier: Apache-2.0
// Executable graphs: made of graphs, launched, and ended.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tools/cuda_driver/graphs/capture.hpp"

namespace ikat::cuda_driver {

GraphExec::GraphExec(Driver& driver, Graph& from, Context& home, std::uint64_t asked)
    : its(driver),
      handle(driver.new_handle()),
      source(from.handle),
      context(home.id),
      flags(asked),
      is_only_one(from.has_memory() || from.has_conditions()),
      graph(from.clone()) {
    if (is_only_one) ++from.executables;
}

GraphExec::~GraphExec() {
    for (const emulator::StreamId lane : lanes) its.gpu(context).device.destroy(lane);
    for (const auto& [what, event] : events) its.gpu(context).device.destroy(event);
}

bool GraphExec::is_done() const {
    return std::ranges::all_of(lanes, [&](const auto& lane) { return its.gpu(context).device.is_idle(lane); });
}

namespace {

/// Why a graph cannot be made executable, and the node at fault, if one is.
struct InstantiateFault {
    CUgraphNode node = nullptr;
    CUgraphInstantiateResult result = CUDA_GRAPH_INSTANTIATE_ERROR;
};

void check_graph(Driver& its, const Context& context, const Graph& graph, InstantiateFault& fault) {
    for (const auto& condition : graph.conditions)
        if (!graphs().nodes.contains(condition->node)) {
            fault.result = CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
            refuse(CUDA_ERROR_INVALID_VALUE, "the graph has a conditional handle that no node uses",
                   "add its node before the graph is instantiated");
        }
    if (!graph.nodes.empty() && graph.in_order().empty()) {
        fault = {graph.nodes.front()->name(), CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE};
        refuse(CUDA_ERROR_INVALID_VALUE, "nodes of the graph wait for each other in a circle");
    }
    for (const auto& node : graph.nodes) {
        for (const Graph* const each : graphs_in(node->work)) check_graph(its, context, *each, fault);
        if (const auto* const kernel = std::get_if<KernelNode>(&node->work)) {
            fault.node = node->name();
            check_usable(its.context(kernel->context));
            if (its.context(kernel->context).device != context.device)
                refuse(CUDA_ERROR_NOT_SUPPORTED, "a graph has kernels of several devices",
                       "make a graph for each device, and let events order them");
            fault.node = nullptr;
        }
    }
}

CUresult instantiate(const char* name, CUgraphExec* out, CUgraph handle, std::uint64_t flags, InstantiateFault& fault) {
    return in_context(name, [&](Driver& its, Context& context) {
        require(out);
        Graph& graph = graph_at(handle);
        require(flags <= 15);
        if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) {
            fault.result = CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
            refuse(CUDA_ERROR_NOT_SUPPORTED, "graphs are not launched by kernels here",
                   "launch it with cuGraphLaunch, without CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH");
        }
        if (graph.captures > 0)
            refuse(CUDA_ERROR_INVALID_VALUE, "a stream is being captured into the graph", "end the capture first");
        if (graph.executables > 0)
            refuse(CUDA_ERROR_INVALID_VALUE,
                   graph.has_memory() ? "a graph with nodes that allocate or free memory has one executable graph"
                                      : "a graph with conditional nodes has one executable graph",
                   "destroy the first");
        check_graph(its, context, graph, fault);
        auto exec = std::make_unique<GraphExec>(its, graph, context, flags);
        *out = reinterpret_cast<CUgraphExec>(exec->handle);
        graphs().executables.emplace(exec->handle, std::move(exec));
        fault.result = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    });
}

CUresult instantiate_logged(CUgraphExec* out, CUgraph graph, CUgraphNode* node, char* log, std::size_t bytes) {
    InstantiateFault fault;
    const CUresult result = instantiate("cuGraphInstantiate", out, graph, 0, fault);
    if (node) *node = fault.node;
    if (log && bytes > 0) log[0] = 0;  // what there is to say goes to standard error
    return result;
}

bool has_host_nodes(const Graph& graph) {
    for (const auto& node : graph.nodes) {
        if (std::holds_alternative<HostNode>(node->work)) return true;
        for (const Graph* const each : graphs_in(node->work))
            if (has_host_nodes(*each)) return true;
    }
    return false;
}

CUresult launch_graph(const char* name, CUgraphExec handle, CUstream stream) {
    bool is_to_be_waited_for = false;
    const CUresult result = on_stream(
        name, stream,
        [&](Driver& its, Context& context) {
            GraphExec& exec = exec_at(handle);
            if (its.context(exec.context).device != context.device)
                refuse(CUDA_ERROR_INVALID_VALUE, "a graph is launched on another device than it was instantiated for",
                       "instantiate it with a context of that device current");
            if (Capture* const capture = capture_of(its, context, stream)) {
                if (exec.is_only_one)
                    refuse(CUDA_ERROR_NOT_SUPPORTED,
                           "a graph with conditional nodes, or that allocates or frees memory, cannot be captured");
                capture->add(id_of(stream), ChildNode{exec.graph->clone()});
                return;
            }
            enqueue(its, exec, stream);
            is_to_be_waited_for = !has_host_nodes(*exec.graph);
        },
        InCapture::IsANode);
    if (result != CUDA_SUCCESS || !is_to_be_waited_for) return result;
    if (const CUresult waited = settle(name, stream); waited != CUDA_SUCCESS) return waited;
    return initialised(name, [&](Driver& its) {
        collect_failures(its);
        if (its.blocking_launches) check_usable(context_of(its, stream));
    });
}

CUresult upload(const char* name, CUgraphExec exec, CUstream stream) {
    return on_stream(name, stream, [&](Driver&, Context&) { exec_at(exec); });
}

/// A node of these kinds can be disabled.
GraphNode& switched(CUgraphExec exec, CUgraphNode handle) {
    GraphNode& node = node_in(exec_at(exec), handle);
    const CUgraphNodeType type = type_of(node.work);
    if (type > CU_GRAPH_NODE_TYPE_MEMSET)
        refuse(CUDA_ERROR_INVALID_VALUE, "only kernels, copies and fills can be disabled");
    return node;
}

}  // namespace

API(cuGraphInstantiate, CUgraphExec* out, CUgraph graph, CUgraphNode* node, char* log, std::size_t bytes) {
    return instantiate_logged(out, graph, node, log, bytes);
}
API(cuGraphInstantiate_v2, CUgraphExec* out, CUgraph graph, CUgraphNode* node, char* log, std::size_t bytes) {
    return instantiate_logged(out, graph, node, log, bytes);
}
API(cuGraphInstantiateWithFlags, CUgraphExec* out, CUgraph graph, unsigned long long flags) {
    InstantiateFault fault;
    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) return CUDA_ERROR_INVALID_VALUE;  // it names no stream
    return instantiate("cuGraphInstantiateWithFlags", out, graph, flags, fault);
}
API(cuGraphInstantiateWithParams, CUgraphExec* out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    InstantiateFault fault;
    const CUresult result = instantiate("cuGraphInstantiateWithParams", out, graph, params->flags, fault);
    params->hErrNode_out = fault.node;
    params->result_out = fault.result;
    if (result != CUDA_SUCCESS || (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) == 0) return result;
    return upload("cuGraphInstantiateWithParams", *out, params->hUploadStream);
}
API(cuGraphExecDestroy, CUgraphExec handle) {
    return initialised("cuGraphExecDestroy", [&](Driver& its) {
        const GraphExec& exec = exec_at(handle);
        const auto source = graphs().by_handle.find(exec.source);
        if (exec.is_only_one && source != graphs().by_handle.end()) --source->second->executables;
        auto own = graphs().executables.extract(exec.handle);
        if (!exec.is_done()) graphs().ending.push_back(std::move(own.mapped()));
        collect_failures(its);
    });
}
API(cuGraphExecGetFlags, CUgraphExec handle, std::uint64_t* flags) {
    return initialised("cuGraphExecGetFlags", [&](Driver&) {
        require(flags);
        *flags = exec_at(handle).flags & ~CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
    });
}
API(cuGraphLaunch, CUgraphExec exec, CUstream stream) { return launch_graph("cuGraphLaunch", exec, stream); }
API(cuGraphUpload, CUgraphExec exec, CUstream stream) { return upload("cuGraphUpload", exec, stream); }

API(cuGraphNodeSetEnabled, CUgraphExec exec, CUgraphNode node, unsigned is_enabled) {
    return initialised("cuGraphNodeSetEnabled", [&](Driver&) { switched(exec, node).is_enabled = is_enabled != 0; });
}
API(cuGraphNodeGetEnabled, CUgraphExec exec, CUgraphNode node, unsigned* is_enabled) {
    return initialised("cuGraphNodeGetEnabled", [&](Driver&) {
        require(is_enabled);
        *is_enabled = switched(exec, node).is_enabled;
    });
}

}  // namespace ikat::cuda_driver
