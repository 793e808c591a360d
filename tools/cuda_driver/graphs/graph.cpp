// SPDX-License-Identifier: Apache-2.0
// Graphs as objects: what they consist of, copies of them, and how they end.
#include "tools/cuda_driver/graphs/graph.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ikat::cuda_driver {

Graphs& graphs() {
    static auto& all = *new Graphs;  // threads may call until the process ends
    return all;
}

GraphMemory::GraphMemory(Driver& its, emulator::ContextId home, std::size_t count)
    : address(its.gpu(home).device.memory().reserve(home, count, "memory of a graph")), bytes(count), context(home) {}

GraphMemory::~GraphMemory() {
    driver().gpu(context).device.memory().give_back(address);
    graphs().memory.erase(address);
}

namespace {

template <class Map>
auto& found_in(Map& objects, const void* handle, const char* what) {
    const auto found = objects.find(reinterpret_cast<std::uintptr_t>(handle));
    if (found == objects.end())
        refuse(CUDA_ERROR_INVALID_VALUE, handle ? fmt::format("there is no such {}", what) : std::string(),
               "it may have been destroyed");
    return found->second;
}

}  // namespace

Graph& graph_at(CUgraph handle) { return *found_in(graphs().by_handle, handle, "graph"); }
GraphNode& node_at(CUgraphNode handle) { return *found_in(graphs().nodes, handle, "node of a graph"); }
GraphExec& exec_at(CUgraphExec handle) { return *found_in(graphs().executables, handle, "executable graph"); }

GraphNode& node_in(GraphExec& exec, CUgraphNode handle) {
    const GraphNode& original = node_at(handle);
    GraphNode* const found = exec.graph->copy_of(original.handle);
    if (!found) refuse(CUDA_ERROR_INVALID_VALUE, "the executable graph was not made of the graph of this node");
    return *found;
}

CUgraphNodeType type_of(const NodeWork& work) {
    constexpr CUgraphNodeType types[] = {
        CU_GRAPH_NODE_TYPE_KERNEL,     CU_GRAPH_NODE_TYPE_MEMCPY,       CU_GRAPH_NODE_TYPE_MEMSET,
        CU_GRAPH_NODE_TYPE_HOST,       CU_GRAPH_NODE_TYPE_GRAPH,        CU_GRAPH_NODE_TYPE_EMPTY,
        CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_MEM_ALLOC,
        CU_GRAPH_NODE_TYPE_MEM_FREE,   CU_GRAPH_NODE_TYPE_CONDITIONAL};
    static_assert(std::size(types) == std::variant_size_v<NodeWork>);
    return types[work.index()];
}

NodeWork copy_of(const NodeWork& work) {
    return std::visit(
        []<class Node>(const Node& node) -> NodeWork {
            if constexpr (std::is_same_v<Node, ChildNode>) {
                return ChildNode{node.graph->clone()};
            } else if constexpr (std::is_same_v<Node, ConditionalNode>) {
                ConditionalNode copy{node.condition, node.type};
                for (const auto& body : node.bodies) {
                    copy.bodies.push_back(body->clone());
                    copy.names.push_back(reinterpret_cast<CUgraph>(copy.bodies.back()->handle));
                }
                return copy;
            } else if constexpr (std::is_same_v<Node, KernelNode>) {
                KernelNode copy = node;
                copy.pointers.clear();  // they are into the other's parameters
                return copy;
            } else {
                return node;
            }
        },
        work);
}

std::vector<Graph*> graphs_in(const NodeWork& work) {
    std::vector<Graph*> out;
    if (const auto* const child = std::get_if<ChildNode>(&work)) out.push_back(child->graph.get());
    if (const auto* const conditional = std::get_if<ConditionalNode>(&work))
        for (const auto& body : conditional->bodies) out.push_back(body.get());
    return out;
}

Graph::Graph(Driver& driver) : its(driver), handle(driver.new_handle()) { graphs().by_handle.emplace(handle, this); }

Graph::~Graph() {
    graphs().by_handle.erase(handle);
    for (const auto& node : nodes) graphs().nodes.erase(node->handle);
    for (const auto& [object, count] : user_objects) release_user_object(object, count);
}

GraphNode& Graph::add(NodeWork work, std::vector<GraphNode::Edge> after) {
    check_may_have(*this, work);
    GraphNode& node = *nodes.emplace_back(std::make_unique<GraphNode>(
        GraphNode{.handle = its.new_handle(), .graph = this, .work = std::move(work), .after = std::move(after)}));
    graphs().nodes.emplace(node.handle, &node);
    for (Graph* const each : graphs_in(node.work)) each->parent = &node;
    return node;
}

std::vector<GraphNode::Edge> Graph::dependents(const GraphNode& node) const {
    std::vector<GraphNode::Edge> out;
    for (const auto& each : nodes)
        for (const GraphNode::Edge& edge : each->after)
            if (edge.from == &node) out.push_back({each.get(), edge.data});
    return out;
}

bool Graph::has_memory() const {
    return std::ranges::any_of(nodes, [](const auto& node) {
        return std::holds_alternative<AllocNode>(node->work) || std::holds_alternative<FreeNode>(node->work) ||
               std::ranges::any_of(graphs_in(node->work), &Graph::has_memory);
    });
}

bool Graph::has_conditions() const {
    return std::ranges::any_of(nodes,
                               [](const auto& node) { return std::holds_alternative<ConditionalNode>(node->work); });
}

std::unique_ptr<Graph> Graph::clone() const {
    auto out = std::make_unique<Graph>(its);
    std::map<const GraphNode*, GraphNode*> copies;
    for (const auto& node : nodes) {
        GraphNode& copy = out->add(cuda_driver::copy_of(node->work), {});
        copy.original = node->handle;
        copies.emplace(node.get(), &copy);
    }
    for (const auto& node : nodes)
        for (const GraphNode::Edge& edge : node->after)
            copies.at(node.get())->after.push_back({copies.at(edge.from), edge.data});
    for (const auto& [object, count] : user_objects) {
        retain_user_object(object, 1);
        out->user_objects[object] = 1;
    }
    return out;
}

GraphNode* Graph::copy_of(std::uintptr_t original) {
    for (const auto& node : nodes) {
        if (node->original == original) return node.get();
        for (Graph* const each : graphs_in(node->work))
            if (GraphNode* const found = each->copy_of(original)) return found;
    }
    return nullptr;
}

std::vector<GraphNode*> Graph::in_order() const {
    std::map<const GraphNode*, std::size_t> waits_for;
    std::map<const GraphNode*, std::vector<GraphNode*>> before;
    for (const auto& node : nodes) {
        waits_for[node.get()] = node->after.size();
        for (const GraphNode::Edge& edge : node->after) before[edge.from].push_back(node.get());
    }
    std::vector<GraphNode*> out;
    for (const auto& node : nodes)
        if (node->after.empty()) out.push_back(node.get());
    for (std::size_t i = 0; i < out.size(); ++i)
        for (GraphNode* const next : before[out[i]])
            if (--waits_for[next] == 0) out.push_back(next);
    if (out.size() < nodes.size()) out.clear();
    return out;
}

API(cuGraphCreate, CUgraph* out, unsigned flags) {
    return initialised("cuGraphCreate", [&](Driver& its) {
        require(out && flags == 0);
        auto graph = std::make_unique<Graph>(its);
        *out = reinterpret_cast<CUgraph>(graph->handle);
        graphs().own.emplace(graph->handle, std::move(graph));
    });
}
API(cuGraphDestroy, CUgraph handle) {
    return initialised("cuGraphDestroy", [&](Driver&) {
        const Graph& graph = graph_at(handle);
        if (graph.parent) refuse(CUDA_ERROR_INVALID_VALUE, "the graph belongs to a node", "destroy the node");
        if (graph.captures > 0)
            refuse(CUDA_ERROR_INVALID_VALUE, "a stream is being captured into the graph", "end the capture first");
        graphs().own.erase(graph.handle);
    });
}
API(cuGraphClone, CUgraph* out, CUgraph handle) {
    return initialised("cuGraphClone", [&](Driver&) {
        require(out);
        const Graph& graph = graph_at(handle);
        if (graph.has_memory())
            refuse(CUDA_ERROR_NOT_SUPPORTED, "a graph with nodes that allocate or free memory cannot be cloned");
        if (graph.has_conditions()) refuse(CUDA_ERROR_NOT_SUPPORTED, "a graph with conditional nodes cannot be cloned");
        auto copy = graph.clone();
        *out = reinterpret_cast<CUgraph>(copy->handle);
        graphs().own.emplace(copy->handle, std::move(copy));
    });
}
API(cuGraphNodeFindInClone, CUgraphNode* out, CUgraphNode node, CUgraph clone) {
    return initialised("cuGraphNodeFindInClone", [&](Driver&) {
        require(out);
        const GraphNode* const found = graph_at(clone).copy_of(node_at(node).handle);
        if (!found) refuse(CUDA_ERROR_INVALID_VALUE, "the graph has no copy of this node");
        *out = found->name();
    });
}
API(cuGraphDestroyNode, CUgraphNode handle) {
    return initialised("cuGraphDestroyNode", [&](Driver&) {
        GraphNode& node = node_at(handle);
        Graph& graph = *node.graph;
        check_may_lose(graph, "nodes");
        for (const auto& each : graph.nodes)
            std::erase_if(each->after, [&](const GraphNode::Edge& edge) { return edge.from == &node; });
        graphs().nodes.erase(node.handle);
        std::erase_if(graph.nodes, [&](const auto& each) { return each.get() == &node; });
    });
}
API(cuGraphNodeGetType, CUgraphNode node, CUgraphNodeType* type) {
    return initialised("cuGraphNodeGetType", [&](Driver&) {
        require(type);
        *type = type_of(node_at(node).work);
    });
}

}  // namespace ikat::cuda_driver
