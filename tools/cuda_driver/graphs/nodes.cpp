// SPDX-License-Identifier: Apache-2.0
// Nodes of graphs: each is added with what it does and what it comes after, and says and changes what it does.
#include "tools/cuda_driver/graphs/graph.hpp"

#include <cstring>

namespace ikat::cuda_driver {
namespace {

/// Adds a node with what `make` returns.
template <class Make>
CUresult add_to(const char* name, CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies,
                const CUgraphEdgeData* data, std::size_t count, Make make) {
    return initialised(name, [&](Driver& its) {
        require(out);
        Graph& graph = graph_at(handle);
        std::vector<GraphNode::Edge> edges = edges_from(graph, dependencies, data, count);
        GraphNode& node = graph.add(NodeWork(make(its, graph)), {});
        if (auto* const conditional = std::get_if<ConditionalNode>(&node.work))
            conditional->condition->node = node.handle;
        try {
            for (const GraphNode::Edge& edge : edges) add_edge(node, edge);
        } catch (const Refusal&) {
            graphs().nodes.erase(node.handle);
            graph.nodes.pop_back();
            throw;
        }
        *out = node.name();
    });
}

/// Replaces what a node does.
template <class Node, class Make>
CUresult set_node(const char* name, CUgraphNode handle, Make make) {
    return initialised(name, [&](Driver& its) {
        Node& node = work_of<Node>(node_at(handle));
        node = make(its, node);
    });
}

template <class Node, class Get>
CUresult get_node(const char* name, CUgraphNode handle, Get get) {
    return initialised(name, [&](Driver&) { get(work_of<Node>(node_at(handle))); });
}

/// The parameters of CUDA 11 lack the last two members.
CUDA_KERNEL_NODE_PARAMS widened(const CUDA_KERNEL_NODE_PARAMS_v1& params) {
    CUDA_KERNEL_NODE_PARAMS out{};
    std::memcpy(&out, &params, sizeof params);
    return out;
}

CUresult add_kernel(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                    const CUDA_KERNEL_NODE_PARAMS& params) {
    return add_to("cuGraphAddKernelNode", out, graph, dependencies, nullptr, count,
                  [&](Driver& its, Graph&) { return kernel_node(its, params, {}); });
}

CUresult set_kernel(CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS& params) {
    return set_node<KernelNode>("cuGraphKernelNodeSetParams", handle, [&](Driver& its, const KernelNode& before) {
        return kernel_node(its, params, before.attributes);
    });
}

CUresult add_node(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, const CUgraphEdgeData* data,
                  std::size_t count, CUgraphNodeParams* params) {
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    return add_to("cuGraphAddNode", out, graph, dependencies, data, count,
                  [&](Driver& its, Graph& to) { return node_work(its, to, *params); });
}

template <class Node>
CUresult add_event(const char* name, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                   std::size_t count, CUevent event) {
    return add_to(name, out, graph, dependencies, nullptr, count, [&](Driver& its, Graph&) {
        event_at(its, event);
        return Node{event};
    });
}

template <class Node>
CUresult set_event(const char* name, CUgraphNode node, CUevent event) {
    return set_node<Node>(name, node, [&](Driver& its, const Node&) {
        event_at(its, event);
        return Node{event};
    });
}

template <class Node>
CUresult get_event(const char* name, CUgraphNode node, CUevent* event) {
    return get_node<Node>(name, node, [&](const Node& its) {
        require(event);
        *event = its.event;
    });
}

}  // namespace

API(cuGraphAddKernelNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
    const CUDA_KERNEL_NODE_PARAMS_v1* params) {
    return params ? add_kernel(out, graph, dependencies, count, widened(*params)) : CUDA_ERROR_INVALID_VALUE;
}
API(cuGraphAddKernelNode_v2, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
    const CUDA_KERNEL_NODE_PARAMS* params) {
    return params ? add_kernel(out, graph, dependencies, count, *params) : CUDA_ERROR_INVALID_VALUE;
}
API(cuGraphKernelNodeGetParams, CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* params) {
    return get_node<KernelNode>("cuGraphKernelNodeGetParams", node, [&](KernelNode& its) {
        require(params);
        const CUDA_KERNEL_NODE_PARAMS all = params_of(its);
        std::memcpy(params, &all, sizeof *params);
    });
}
API(cuGraphKernelNodeGetParams_v2, CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params) {
    return get_node<KernelNode>("cuGraphKernelNodeGetParams", node, [&](KernelNode& its) {
        require(params);
        *params = params_of(its);
    });
}
API(cuGraphKernelNodeSetParams, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
    return params ? set_kernel(node, widened(*params)) : CUDA_ERROR_INVALID_VALUE;
}
API(cuGraphKernelNodeSetParams_v2, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
    return params ? set_kernel(node, *params) : CUDA_ERROR_INVALID_VALUE;
}

API(cuGraphAddMemcpyNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
    const CUDA_MEMCPY3D* params, CUcontext context) {
    return add_to("cuGraphAddMemcpyNode", out, graph, dependencies, nullptr, count, [&](Driver& its, Graph&) {
        require(params);
        return copy_node(its, *params, context);
    });
}
API(cuGraphMemcpyNodeGetParams, CUgraphNode node, CUDA_MEMCPY3D* params) {
    return get_node<CopyNode>("cuGraphMemcpyNodeGetParams", node, [&](const CopyNode& its) {
        require(params);
        *params = its.params;
    });
}
API(cuGraphMemcpyNodeSetParams, CUgraphNode node, const CUDA_MEMCPY3D* params) {
    return set_node<CopyNode>("cuGraphMemcpyNodeSetParams", node, [&](Driver& its, const CopyNode& before) {
        require(params);
        return copy_node(its, *params, before.context);
    });
}

API(cuGraphAddMemsetNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
    const CUDA_MEMSET_NODE_PARAMS* params, CUcontext context) {
    return add_to("cuGraphAddMemsetNode", out, graph, dependencies, nullptr, count, [&](Driver& its, Graph&) {
        require(params);
        return fill_node(its, *params, context);
    });
}
API(cuGraphMemsetNodeGetParams, CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* params) {
    return get_node<FillNode>("cuGraphMemsetNodeGetParams", node, [&](const FillNode& its) {
        require(params);
        *params = its.params;
    });
}
API(cuGraphMemsetNodeSetParams, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params) {
    return set_node<FillNode>("cuGraphMemsetNodeSetParams", node, [&](Driver& its, const FillNode& before) {
        require(params);
        return fill_node(its, *params, before.context);
    });
}

API(cuGraphAddHostNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
    const CUDA_HOST_NODE_PARAMS* params) {
    return add_to("cuGraphAddHostNode", out, graph, dependencies, nullptr, count, [&](Driver&, Graph&) {
        require(params);
        return host_node(*params);
    });
}
API(cuGraphHostNodeGetParams, CUgraphNode node, CUDA_HOST_NODE_PARAMS* params) {
    return get_node<HostNode>("cuGraphHostNodeGetParams", node, [&](const HostNode& its) {
        require(params);
        *params = its.params;
    });
}
API(cuGraphHostNodeSetParams, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* params) {
    return set_node<HostNode>("cuGraphHostNodeSetParams", node, [&](Driver&, const HostNode&) {
        require(params);
        return host_node(*params);
    });
}

API(cuGraphAddChildGraphNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
    CUgraph child) {
    return add_to("cuGraphAddChildGraphNode", out, graph, dependencies, nullptr, count,
                  [&](Driver& its, Graph&) { return child_node(its, child, false); });
}
API(cuGraphChildGraphNodeGetGraph, CUgraphNode node, CUgraph* graph) {
    return get_node<ChildNode>("cuGraphChildGraphNodeGetGraph", node, [&](const ChildNode& its) {
        require(graph);
        *graph = reinterpret_cast<CUgraph>(its.graph->handle);
    });
}
API(cuGraphAddEmptyNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count) {
    return add_to("cuGraphAddEmptyNode", out, graph, dependencies, nullptr, count,
                  [](Driver&, Graph&) { return EmptyNode{}; });
}

#define EVENT_NODE(name, What)                                                                                       \
    API(cuGraphAdd##name##Node, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count, \
        CUevent event) {                                                                                             \
        return add_event<What>("cuGraphAdd" #name "Node", out, graph, dependencies, count, event);                   \
    }                                                                                                                \
    API(cuGraph##name##NodeGetEvent, CUgraphNode node, CUevent* event) {                                             \
        return get_event<What>("cuGraph" #name "NodeGetEvent", node, event);                                         \
    }                                                                                                                \
    API(cuGraph##name##NodeSetEvent, CUgraphNode node, CUevent event) {                                              \
        return set_event<What>("cuGraph" #name "NodeSetEvent", node, event);                                         \
    }
EVENT_NODE(EventRecord, RecordNode)
EVENT_NODE(EventWait, WaitNode)
#undef EVENT_NODE

API(cuGraphAddMemAllocNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
    CUDA_MEM_ALLOC_NODE_PARAMS* params) {
    return add_to("cuGraphAddMemAllocNode", out, graph, dependencies, nullptr, count, [&](Driver& its, Graph& to) {
        require(params);
        return alloc_node(its, to, *params);
    });
}
API(cuGraphMemAllocNodeGetParams, CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
    return get_node<AllocNode>("cuGraphMemAllocNodeGetParams", node, [&](const AllocNode& its) {
        require(params);
        *params = {its.props, its.access.data(), its.access.size(), its.memory->bytes, its.memory->address};
    });
}
API(cuGraphAddMemFreeNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
    CUdeviceptr address) {
    return add_to("cuGraphAddMemFreeNode", out, graph, dependencies, nullptr, count,
                  [&](Driver&, Graph& to) { return free_node(to, address); });
}
API(cuGraphMemFreeNodeGetParams, CUgraphNode node, CUdeviceptr* address) {
    return get_node<FreeNode>("cuGraphMemFreeNodeGetParams", node, [&](const FreeNode& its) {
        require(address);
        *address = its.address;
    });
}

API(cuGraphAddNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
    CUgraphNodeParams* params) {
    return add_node(out, graph, dependencies, nullptr, count, params);
}
API(cuGraphAddNode_v2, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, const CUgraphEdgeData* data,
    std::size_t count, CUgraphNodeParams* params) {
    return add_node(out, graph, dependencies, data, count, params);
}
API(cuGraphNodeSetParams, CUgraphNode handle, CUgraphNodeParams* params) {
    return initialised("cuGraphNodeSetParams", [&](Driver& its) {
        GraphNode& node = node_at(handle);
        require(params);
        const CUgraphNodeType type = type_of(node.work);
        if (type != params->type) refuse(CUDA_ERROR_INVALID_VALUE, "the node is of another type");
        if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE ||
            type == CU_GRAPH_NODE_TYPE_GRAPH || type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
            refuse(CUDA_ERROR_NOT_SUPPORTED, "a node of this type keeps what it has");
        if (auto* const kernel = std::get_if<KernelNode>(&node.work))
            *kernel = kernel_node(its, params->kernel, kernel->attributes);
        else
            node.work = node_work(its, *node.graph, *params);
    });
}

API(cuGraphKernelNodeCopyAttributes, CUgraphNode to, CUgraphNode from) {
    return set_node<KernelNode>("cuGraphKernelNodeCopyAttributes", to, [&](Driver& its, KernelNode& before) {
        return kernel_node(its, params_of(before), work_of<KernelNode>(node_at(from)).attributes);
    });
}
API(cuGraphKernelNodeGetAttribute, CUgraphNode node, CUlaunchAttributeID which, void* value) {
    return get_node<KernelNode>("cuGraphKernelNodeGetAttribute", node, [&](const KernelNode& its) {
        require(value && is_of_node(which));
        const auto found = its.attributes.find(which);
        const CUlaunchAttribute attribute = found == its.attributes.end() ? CUlaunchAttribute{} : found->second;
        std::memcpy(value, &attribute.value, sizeof attribute.value);
    });
}
API(cuGraphKernelNodeSetAttribute, CUgraphNode node, CUlaunchAttributeID which, const void* value) {
    return set_node<KernelNode>("cuGraphKernelNodeSetAttribute", node, [&](Driver& its, KernelNode& before) {
        require(value && is_of_node(which));
        Attributes attributes = before.attributes;
        attributes[which].id = which;
        std::memcpy(&attributes[which].value, value, sizeof attributes[which].value);
        return kernel_node(its, params_of(before), attributes);
    });
}

}  // namespace ikat::cuda_driver
