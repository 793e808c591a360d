// SPDX-License-Identifier: Apache-2.0
// The edges of graphs, and questions about them.
#include <fmt/format.h>

#include <algorithm>

#include "tools/cuda_driver/graphs/graph.hpp"

namespace ikat::cuda_driver {

void check_may_lose(const Graph& graph, const char* what) {
    if (graph.has_memory())
        refuse(CUDA_ERROR_INVALID_VALUE,
               fmt::format("{} of a graph with nodes that allocate or free memory cannot be removed", what));
    if (graph.captures > 0)
        refuse(CUDA_ERROR_INVALID_VALUE, fmt::format("{} of a graph that is captured into cannot be removed", what));
}

namespace {

bool is_default(const CUgraphEdgeData& data) { return data.from_port == 0 && data.to_port == 0 && data.type == 0; }

void check_edge(const GraphNode::Edge& edge, const GraphNode* to) {
    const auto& [from, data] = edge;
    for (const unsigned char each : data.reserved) require(each == 0);
    require(data.to_port == 0 && data.type <= CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
    const bool is_kernel = std::holds_alternative<KernelNode>(from->work);
    if (!is_default(data) && !is_kernel)
        refuse(CUDA_ERROR_INVALID_VALUE, "an edge with a port or a type does not come from a kernel");
    require(data.from_port <= CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER);
    if (data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)
        require(data.from_port != 0 && (!to || std::holds_alternative<KernelNode>(to->work)));
}

GraphNode& member(Graph& graph, CUgraphNode handle) {
    GraphNode& node = node_at(handle);
    if (node.graph != &graph) refuse(CUDA_ERROR_INVALID_VALUE, "a node belongs to another graph");
    return node;
}

}  // namespace

std::vector<GraphNode::Edge> edges_from(Graph& graph, const CUgraphNode* nodes, const CUgraphEdgeData* data,
                                        std::size_t count) {
    require(nodes || count == 0);
    std::vector<GraphNode::Edge> out;
    std::set<GraphNode*> known;
    for (std::size_t i = 0; i < count; ++i) {
        GraphNode& node = member(graph, nodes[i]);
        if (!known.insert(&node).second) refuse(CUDA_ERROR_INVALID_VALUE, "a dependency is named twice");
        out.push_back({&node, data ? data[i] : CUgraphEdgeData{}});
        check_edge(out.back(), nullptr);
    }
    return out;
}

void add_edge(GraphNode& to, GraphNode::Edge edge) {
    if (edge.from == &to) refuse(CUDA_ERROR_INVALID_VALUE, "a node cannot depend on itself");
    check_edge(edge, &to);
    if (std::ranges::find(to.after, edge.from, &GraphNode::Edge::from) != to.after.end())
        refuse(CUDA_ERROR_INVALID_VALUE, "the dependency is there already");
    to.after.push_back(edge);
}

namespace {

/// Writes as many as there is room for, or tells how many there are. `put(i)` writes the one of that number, or nothing
/// beyond the last.
template <class Put>
void list(std::size_t* count, std::size_t all, bool is_wanted, Put put) {
    require(count);
    if (is_wanted)
        for (std::size_t i = 0; i < *count; ++i) put(i);
    *count = is_wanted ? std::min(*count, all) : all;
}

CUresult add_edges(const char* name, CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                   const CUgraphEdgeData* data, std::size_t count) {
    return initialised(name, [&](Driver&) {
        Graph& graph = graph_at(handle);
        require(count == 0 || (from && to));
        for (std::size_t i = 0; i < count; ++i)
            add_edge(member(graph, to[i]), {&member(graph, from[i]), data ? data[i] : CUgraphEdgeData{}});
    });
}

CUresult remove_edges(const char* name, CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                      const CUgraphEdgeData* data, std::size_t count) {
    return initialised(name, [&](Driver&) {
        Graph& graph = graph_at(handle);
        require(count == 0 || (from && to));
        if (count > 0) check_may_lose(graph, "edges");
        for (std::size_t i = 0; i < count; ++i) {
            const GraphNode* const first = &member(graph, from[i]);
            const CUgraphEdgeData asked = data ? data[i] : CUgraphEdgeData{};
            const std::size_t erased = std::erase_if(member(graph, to[i]).after, [&](const GraphNode::Edge& edge) {
                return edge.from == first && edge.data.type == asked.type && edge.data.from_port == asked.from_port;
            });
            if (erased == 0) refuse(CUDA_ERROR_INVALID_VALUE, "there is no such edge");
        }
    });
}

void list_edges(std::span<const GraphNode::Edge> edges, CUgraphNode* nodes, CUgraphEdgeData* data, std::size_t* count) {
    require(nodes || !data);
    const bool is_lossy =
        nodes && !data && !std::ranges::all_of(edges, [](const auto& edge) { return is_default(edge.data); });
    if (is_lossy) refuse(CUDA_ERROR_LOSSY_QUERY);
    list(count, edges.size(), nodes, [&](std::size_t i) {
        nodes[i] = i < edges.size() ? edges[i].from->name() : nullptr;
        if (data) data[i] = i < edges.size() ? edges[i].data : CUgraphEdgeData{};
    });
}

CUresult dependencies(const char* name, CUgraphNode handle, CUgraphNode* nodes, CUgraphEdgeData* data,
                      std::size_t* count) {
    return initialised(name, [&](Driver&) { list_edges(node_at(handle).after, nodes, data, count); });
}

CUresult dependents(const char* name, CUgraphNode handle, CUgraphNode* nodes, CUgraphEdgeData* data,
                    std::size_t* count) {
    return initialised(name, [&](Driver&) {
        const GraphNode& node = node_at(handle);
        list_edges(node.graph->dependents(node), nodes, data, count);
    });
}

CUresult all_edges(const char* name, CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                   std::size_t* count) {
    return initialised(name, [&](Driver&) {
        require((from != nullptr) == (to != nullptr) && (from || !data));
        std::vector<GraphNode::Edge> edges;
        std::vector<const GraphNode*> ends;
        for (const auto& node : graph_at(handle).nodes)
            for (const GraphNode::Edge& edge : node->after) edges.push_back(edge), ends.push_back(node.get());
        list_edges(edges, from, data, count);
        if (!to) return;
        for (std::size_t i = 0; i < *count; ++i) to[i] = ends[i]->name();
    });
}

CUresult list_nodes(const char* name, CUgraph handle, CUgraphNode* nodes, std::size_t* count, bool only_roots) {
    return initialised(name, [&](Driver&) {
        std::vector<GraphNode::Edge> found;
        for (const auto& node : graph_at(handle).nodes)
            if (!only_roots || node->after.empty()) found.push_back({node.get()});
        list_edges(found, nodes, nullptr, count);
    });
}

}  // namespace

API(cuGraphAddDependencies, CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, std::size_t count) {
    return add_edges("cuGraphAddDependencies", graph, from, to, nullptr, count);
}
API(cuGraphAddDependencies_v2, CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
    const CUgraphEdgeData* data, std::size_t count) {
    return add_edges("cuGraphAddDependencies", graph, from, to, data, count);
}
API(cuGraphRemoveDependencies, CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, std::size_t count) {
    return remove_edges("cuGraphRemoveDependencies", graph, from, to, nullptr, count);
}
API(cuGraphRemoveDependencies_v2, CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
    const CUgraphEdgeData* data, std::size_t count) {
    return remove_edges("cuGraphRemoveDependencies", graph, from, to, data, count);
}
API(cuGraphGetNodes, CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
    return list_nodes("cuGraphGetNodes", graph, nodes, count, false);
}
API(cuGraphGetRootNodes, CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
    return list_nodes("cuGraphGetRootNodes", graph, nodes, count, true);
}
API(cuGraphGetEdges, CUgraph graph, CUgraphNode* from, CUgraphNode* to, std::size_t* count) {
    return all_edges("cuGraphGetEdges", graph, from, to, nullptr, count);
}
API(cuGraphGetEdges_v2, CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data, std::size_t* count) {
    return all_edges("cuGraphGetEdges", graph, from, to, data, count);
}
API(cuGraphNodeGetDependencies, CUgraphNode node, CUgraphNode* nodes, std::size_t* count) {
    return dependencies("cuGraphNodeGetDependencies", node, nodes, nullptr, count);
}
API(cuGraphNodeGetDependencies_v2, CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data, std::size_t* count) {
    return dependencies("cuGraphNodeGetDependencies", node, nodes, data, count);
}
API(cuGraphNodeGetDependentNodes, CUgraphNode node, CUgraphNode* nodes, std::size_t* count) {
    return dependents("cuGraphNodeGetDependentNodes", node, nodes, nullptr, count);
}
API(cuGraphNodeGetDependentNodes_v2, CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data, std::size_t* count) {
    return dependents("cuGraphNodeGetDependentNodes", node, nodes, data, count);
}

}  // namespace ikat::cuda_driver
