// SPDX-License-Identifier: Apache-2.0
// Conditional nodes: their handles, what their bodies may have, and what they do.
#include <fmt/format.h>

#include <algorithm>

#include "tools/cuda_driver/graphs/graph.hpp"

namespace ikat::cuda_driver {

GraphCondition::GraphCondition(Driver& its, emulator::ContextId home, std::uintptr_t of)
    : handle(its.gpu(home).device.memory().allocate(home, sizeof(unsigned), "a condition")), context(home), graph(of) {}

GraphCondition::~GraphCondition() {
    driver().gpu(context).device.memory().release(handle);
    graphs().conditions.erase(handle);
}

ConditionalNode conditional_node(Driver& its, Graph& graph, CUDA_CONDITIONAL_NODE_PARAMS& params) {
    const auto found = graphs().conditions.find(params.handle);
    const std::shared_ptr<GraphCondition> condition =
        found == graphs().conditions.end() ? nullptr : found->second.lock();
    if (!condition)
        refuse(CUDA_ERROR_INVALID_VALUE, "there is no such conditional handle",
               "make it with cuGraphConditionalHandleCreate");
    const Graph* of = &graph;
    while (of->handle != condition->graph && of->parent) of = of->parent->graph;
    if (of->handle != condition->graph) refuse(CUDA_ERROR_INVALID_VALUE, "the conditional handle is of another graph");
    if (graphs().nodes.contains(condition->node))
        refuse(CUDA_ERROR_INVALID_VALUE, "a conditional node has this handle already", "make a handle for each node");
    if (params.ctx != handle_of(condition->context))
        refuse(CUDA_ERROR_INVALID_VALUE, "the node's context is not that of its conditional handle");
    require(params.type <= CU_GRAPH_COND_TYPE_SWITCH);
    const unsigned most = params.type == CU_GRAPH_COND_TYPE_IF ? 2 : params.type == CU_GRAPH_COND_TYPE_WHILE ? 1 : ~0u;
    if (params.size == 0 || params.size > most)
        refuse(CUDA_ERROR_INVALID_VALUE,
               fmt::format("a conditional node of this type cannot have {} bodies", params.size));
    ConditionalNode out{condition, params.type};
    for (unsigned i = 0; i < params.size; ++i) {
        out.bodies.push_back(std::make_unique<Graph>(its));
        out.names.push_back(reinterpret_cast<CUgraph>(out.bodies.back()->handle));
    }
    params.phGraph_out = out.names.data();  // which moves with the node
    return out;
}

namespace {

/// The conditional node that a graph is in the body of; nullptr if there is none.
const ConditionalNode* body_of(const Graph& graph) {
    for (const GraphNode* node = graph.parent; node; node = node->graph->parent)
        if (const auto* const conditional = std::get_if<ConditionalNode>(&node->work)) return conditional;
    return nullptr;
}

void check_is_of_body(const ConditionalNode& of, const NodeWork& work) {
    const CUgraphNodeType type = type_of(work);
    if (type == CU_GRAPH_NODE_TYPE_HOST || type == CU_GRAPH_NODE_TYPE_WAIT_EVENT ||
        type == CU_GRAPH_NODE_TYPE_EVENT_RECORD || type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
        type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        refuse(
            CUDA_ERROR_INVALID_VALUE,
            "a body of a conditional node has kernels, copies, fills, child graphs, conditional and empty nodes only");
    const auto* const kernel = std::get_if<KernelNode>(&work);
    if (kernel && kernel->context != of.condition->context)
        refuse(CUDA_ERROR_INVALID_VALUE, "a kernel in a body of a conditional node is of another context");
    for (const Graph* const inner : graphs_in(work))
        for (const auto& node : inner->nodes) check_is_of_body(of, node->work);
}

}  // namespace

void check_may_have(const Graph& graph, const NodeWork& work) {
    if (std::holds_alternative<ConditionalNode>(work))
        for (const GraphNode* node = graph.parent; node; node = node->graph->parent)
            if (std::holds_alternative<ChildNode>(node->work))
                refuse(CUDA_ERROR_NOT_SUPPORTED, "a child graph takes no conditional nodes");
    if (const ConditionalNode* const of = body_of(graph)) check_is_of_body(*of, work);
}

void enqueue_conditions(emulator::HostDevice& device, const Graph& graph, emulator::StreamId stream) {
    for (const auto& node : graph.nodes) {
        if (const auto* const conditional = std::get_if<ConditionalNode>(&node->work)) {
            const GraphCondition& condition = *conditional->condition;
            if (condition.first) {
                const auto bytes = std::as_bytes(std::span(&*condition.first, 1));
                device.enqueue(
                    stream,
                    emulator::work::Fill{.to = condition.handle, .element = {bytes.begin(), bytes.end()}, .count = 1});
            } else {
                device.enqueue(stream, emulator::work::Renew{condition.handle, sizeof(unsigned)});
            }
        }
        for (const Graph* const inner : graphs_in(node->work)) enqueue_conditions(device, *inner, stream);
    }
}

emulator::work::Conditional conditional_work(Driver& its, const ConditionalNode& node,
                                             std::vector<std::shared_ptr<KeptPtx>>& texts) {
    using Kind = emulator::work::Conditional::Kind;
    emulator::work::Conditional out{.kind = node.type == CU_GRAPH_COND_TYPE_IF      ? Kind::If
                                            : node.type == CU_GRAPH_COND_TYPE_WHILE ? Kind::While
                                                                                    : Kind::Switch,
                                    .condition = node.condition->handle};
    for (const auto& body : node.bodies)
        out.bodies.push_back(std::make_shared<const emulator::WorkGraph>(body_work(its, *body, texts)));
    return out;
}

API(cuGraphConditionalHandleCreate, CUgraphConditionalHandle* out, CUgraph handle, CUcontext context, unsigned first,
    unsigned flags) {
    return initialised("cuGraphConditionalHandleCreate", [&](Driver& its) {
        require(out && flags <= CU_GRAPH_COND_ASSIGN_DEFAULT);
        Graph& graph = graph_at(handle);
        if (context && !its.contexts.find(context)) refuse(CUDA_ERROR_INVALID_CONTEXT);
        Context& home = context ? its.contexts.at(context) : current_context();
        check_usable(home);
        auto condition = std::make_shared<GraphCondition>(its, home.id, graph.handle);
        if (flags & CU_GRAPH_COND_ASSIGN_DEFAULT) condition->first = first;
        graphs().conditions[condition->handle] = condition;
        *out = condition->handle;
        graph.conditions.push_back(std::move(condition));
    });
}

}  // namespace ikat::cuda_driver
