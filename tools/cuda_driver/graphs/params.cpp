// SPDX-License-Identifier: Apache-2.0
// What nodes of graphs do: from the API's parameters, and back.
#include <fmt/format.h>

#include "tools/cuda_driver/graphs/graph.hpp"

namespace ikat::cuda_driver {

KernelNode kernel_node(Driver& its, const CUDA_KERNEL_NODE_PARAMS& params, const Attributes& attributes) {
    const CUfunction function = params.func ? params.func : function_of(params.kern);
    if (!function) refuse(CUDA_ERROR_INVALID_VALUE, "the parameters name no kernel");
    if (params.ctx && !its.contexts.find(params.ctx)) refuse(CUDA_ERROR_INVALID_CONTEXT);
    Context& context = params.ctx ? its.contexts.at(params.ctx) : current_context();
    check_usable(context);
    emulator::Launch asked{.grid = {params.gridDimX, params.gridDimY, params.gridDimZ},
                           .block = {params.blockDimX, params.blockDimY, params.blockDimZ},
                           .dynamic_shared_bytes = params.sharedMemBytes};
    LaunchExtras extras;
    for (const auto& [number, attribute] : attributes) apply(attribute, asked, extras);
    return {
        .function = function,
        .context = context.id,
        .launch = launch_work(its, context, function, asked, params.kernelParams, params.extra, extras.is_cooperative),
        .is_cooperative = extras.is_cooperative,
        .attributes = attributes,
        .ptx = its.functions.at(function).module->ptx};
}

CUDA_KERNEL_NODE_PARAMS params_of(KernelNode& node) {
    const emulator::Launch launch = node.launch.launch();
    node.pointers.clear();
    for (const auto& parameter : node.launch.module->program().parameters(node.launch.entry))
        node.pointers.push_back(node.launch.parameters.data() + parameter.offset);
    return {.func = node.function,
            .gridDimX = launch.grid[0],
            .gridDimY = launch.grid[1],
            .gridDimZ = launch.grid[2],
            .blockDimX = launch.block[0],
            .blockDimY = launch.block[1],
            .blockDimZ = launch.block[2],
            .sharedMemBytes = unsigned(launch.dynamic_shared_bytes),
            .kernelParams = node.pointers.empty() ? nullptr : node.pointers.data(),
            .extra = nullptr,
            .kern = nullptr,
            .ctx = handle_of(node.context)};
}

namespace {

/// The context that a node is to be done in.
void check_context(Driver& its, CUcontext handle) {
    Context* const context = its.contexts.find(handle);
    if (!context) refuse(CUDA_ERROR_INVALID_CONTEXT, "the node needs a context");
    check_usable(*context);
}

}  // namespace

CopyNode copy_node(Driver& its, const CUDA_MEMCPY3D& params, CUcontext context) {
    check_context(its, context);
    if (params.WidthInBytes == 0 || params.Height == 0 || params.Depth == 0)
        refuse(CUDA_ERROR_INVALID_VALUE, "a copy of no bytes cannot be a node");
    copy_work(its, params);
    return {params, context};
}

FillNode fill_node(Driver& its, const CUDA_MEMSET_NODE_PARAMS& params, CUcontext context) {
    check_context(its, context);
    if (params.width == 0 || params.height == 0)
        refuse(CUDA_ERROR_INVALID_VALUE, "a fill of no bytes cannot be a node");
    fill_work(its, params);
    return {params, context};
}

HostNode host_node(const CUDA_HOST_NODE_PARAMS& params) {
    require(params.fn != nullptr);
    return {params};
}

ChildNode child_node(Driver&, CUgraph handle, bool moves) {
    const Graph& graph = graph_at(handle);
    if (graph.has_conditions())
        refuse(CUDA_ERROR_NOT_SUPPORTED, "a graph with conditional nodes cannot be a child",
               "add its nodes to this graph");
    if (!moves) {
        if (graph.has_memory())
            refuse(CUDA_ERROR_NOT_SUPPORTED, "a graph with nodes that allocate or free memory cannot be cloned",
                   "move it: CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE");
        return {graph.clone()};
    }
    const auto own = graphs().own.find(graph.handle);
    if (own == graphs().own.end() || graph.captures > 0 || graph.executables > 0)
        refuse(CUDA_ERROR_INVALID_VALUE, "the graph cannot be moved: it is a child already, captured into, or in use");
    ChildNode out{std::move(own->second)};
    graphs().own.erase(own);
    return out;
}

NodeWork node_work(Driver& its, Graph& graph, CUgraphNodeParams& params) {
    for (const int each : params.reserved0) require(each == 0);
    require(params.reserved2 == 0);
    const auto or_current = [](CUcontext context) { return context ? context : current_handle(); };
    switch (params.type) {
        case CU_GRAPH_NODE_TYPE_KERNEL: return kernel_node(its, params.kernel, {});
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            require(params.memcpy.flags == 0);
            return copy_node(its, params.memcpy.copyParams, or_current(params.memcpy.copyCtx));
        case CU_GRAPH_NODE_TYPE_MEMSET: return fill_node(its, params.memset.params, or_current(params.memset.ctx));
        case CU_GRAPH_NODE_TYPE_HOST: return host_node(params.host);
        case CU_GRAPH_NODE_TYPE_GRAPH: {
            const bool moves = params.graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
            require(moves || params.graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE);
            if (moves && &graph_at(params.graph.graph) == &graph)
                refuse(CUDA_ERROR_INVALID_VALUE, "a graph cannot be its own child");
            return child_node(its, params.graph.graph, moves);
        }
        case CU_GRAPH_NODE_TYPE_EMPTY: return EmptyNode{};
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT: event_at(its, params.event.event); return WaitNode{params.event.event};
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD: event_at(its, params.event.event); return RecordNode{params.event.event};
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return alloc_node(its, graph, params.alloc);
        case CU_GRAPH_NODE_TYPE_MEM_FREE: return free_node(graph, params.free.dptr);
        case CU_GRAPH_NODE_TYPE_CONDITIONAL:
            if (!params.conditional.ctx) params.conditional.ctx = current_handle();
            return conditional_node(its, graph, params.conditional);
        case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
        case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
            refuse(CUDA_ERROR_NOT_SUPPORTED,
                   "nodes of external semaphores and of operations on memory are not emulated");
    }
    refuse(CUDA_ERROR_INVALID_VALUE, "there is no such type of node");
}

}  // namespace ikat::cuda_driver
