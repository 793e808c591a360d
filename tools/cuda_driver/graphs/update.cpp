// SPDX-License-Identifier: Apache-2.0
// What of an executable graph can be changed: what its nodes do, not which there are nor their order.
#include <cstring>

#include "tools/cuda_driver/graphs/graph.hpp"

namespace ikat::cuda_driver {
namespace {

bool is_flat(const CUDA_MEMCPY3D& copy) { return copy.Height == 1 && copy.Depth == 1; }

CUgraphExecUpdateResult change(const KernelNode& before, const KernelNode& now) {
    if (before.context != now.context) return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
    return before.is_cooperative == now.is_cooperative ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                                                       : CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
}

CUgraphExecUpdateResult change(const CopyNode& before, const CopyNode& now) {
    const CUDA_MEMCPY3D &a = before.params, &b = now.params;
    const bool is_same =
        a.srcMemoryType == b.srcMemoryType && a.dstMemoryType == b.dstMemoryType && before.context == now.context;
    const bool has_its_shape =
        is_flat(a) ? is_flat(b) : a.WidthInBytes == b.WidthInBytes && a.Height == b.Height && a.Depth == b.Depth;
    return is_same && has_its_shape ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

CUgraphExecUpdateResult change(const FillNode& before, const FillNode& now) {
    const CUDA_MEMSET_NODE_PARAMS &a = before.params, &b = now.params;
    const bool is_same = before.context == now.context && a.height == b.height;
    const bool has_its_shape =
        a.height == 1 || (a.width == b.width && a.pitch == b.pitch && a.elementSize == b.elementSize);
    return is_same && has_its_shape ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

CUgraphExecUpdateResult change(const ConditionalNode& before, const ConditionalNode& now) {
    const bool is_same = before.type == now.type && before.bodies.size() == now.bodies.size() &&
                         before.condition->context == now.condition->context;
    return is_same ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

/// Whether a node of an executable graph may do something else from now on. Children and bodies are looked at by
/// themselves.
CUgraphExecUpdateResult change(const NodeWork& before, const NodeWork& now) {
    if (before.index() != now.index()) return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    return std::visit(
        [&]<class Node>(const Node& node) {
            if constexpr (std::is_same_v<Node, KernelNode> || std::is_same_v<Node, CopyNode> ||
                          std::is_same_v<Node, FillNode> || std::is_same_v<Node, ConditionalNode>)
                return change(node, std::get<Node>(now));
            else if constexpr (std::is_same_v<Node, AllocNode> || std::is_same_v<Node, FreeNode>)
                return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
            else
                return CU_GRAPH_EXEC_UPDATE_SUCCESS;
        },
        before);
}

/// A comparison of an executable graph with another, from the nodes that nothing comes after back to the first.
class Update {
public:
    Update(Graph& exec, Graph& from) { pair(exec, from); }

    CUgraphExecUpdateResultInfo found{};

    /// Makes the changes.
    void apply() {
        for (const auto& [to, from] : pairs_) {
            if (auto* const conditional = std::get_if<ConditionalNode>(&to->work))
                conditional->condition = std::get<ConditionalNode>(from->work).condition;
            else if (!std::holds_alternative<ChildNode>(to->work))
                to->work = copy_of(from->work);
        }
    }

private:
    bool differs(CUgraphExecUpdateResult result, const GraphNode* node, const GraphNode* from = nullptr) {
        found = {result, node ? node->name() : nullptr, from ? from->name() : nullptr};
        return false;
    }

    static std::vector<GraphNode*> ends(const Graph& graph) {
        std::set<const GraphNode*> before;
        for (const auto& node : graph.nodes)
            for (const GraphNode::Edge& edge : node->after) before.insert(edge.from);
        std::vector<GraphNode*> out;
        for (const auto& node : graph.nodes)
            if (!before.contains(node.get())) out.push_back(node.get());
        return out;
    }

    bool pair(Graph& exec, Graph& from) {
        const std::vector<GraphNode*> a = ends(exec), b = ends(from);
        if (exec.nodes.size() != from.nodes.size())
            return differs(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr);
        if (a.size() != b.size())
            return differs(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, b.empty() ? nullptr : b.back());
        const std::size_t first = pairs_.size();
        for (std::size_t i = 0; i < a.size(); ++i)
            if (!pair(*a[i], *b[i])) return false;
        for (std::size_t i = first; i < pairs_.size(); ++i) {
            const auto [to, other] = pairs_[i];
            if (to->graph != &exec) continue;
            if (to->after.size() != other->after.size())
                return differs(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, other);
            for (std::size_t k = 0; k < to->after.size(); ++k)
                if (!pair(*to->after[k].from, *other->after[k].from))
                    return found.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED && !found.errorFromNode
                               ? differs(found.result, other, other->after[k].from)
                               : false;
        }
        return true;
    }

    bool pair(GraphNode& to, GraphNode& from) {
        const auto a = partners_.find(&to), b = partners_.find(&from);
        if (a != partners_.end() || b != partners_.end()) {
            const bool is_same = a != partners_.end() && a->second == &from;
            return is_same || differs(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, &from);
        }
        partners_[&to] = &from, partners_[&from] = &to;
        pairs_.emplace_back(&to, &from);
        if (const CUgraphExecUpdateResult result = change(to.work, from.work); result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
            return differs(result, &from);
        const std::vector<Graph*> inner = graphs_in(to.work), other = graphs_in(from.work);
        for (std::size_t i = 0; i < inner.size(); ++i)
            if (!pair(*inner[i], *other[i])) return false;
        return true;
    }

    std::vector<std::pair<GraphNode*, GraphNode*>> pairs_;
    std::map<const GraphNode*, const GraphNode*> partners_;
};

CUresult update(CUgraphExec exec, CUgraph from, CUgraphExecUpdateResultInfo& info) {
    info = {CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
    return initialised("cuGraphExecUpdate", [&](Driver&) {
        Update changes(*exec_at(exec).graph, graph_at(from));
        info = changes.found;
        if (info.result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
            refuse(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
                   "the two graphs differ in more than what an update may change");
        changes.apply();
    });
}

/// Gives a node of an executable graph other parameters.
template <class Node, class Make>
CUresult set_in(const char* name, CUgraphExec exec, CUgraphNode handle, Make make) {
    return initialised(name, [&](Driver& its) {
        work_of<Node>(node_at(handle));
        GraphNode& node = node_in(exec_at(exec), handle);
        NodeWork now = make(its, work_of<Node>(node));
        if (change(node.work, now) != CU_GRAPH_EXEC_UPDATE_SUCCESS)
            refuse(CUDA_ERROR_INVALID_VALUE, "a node of an executable graph cannot be changed so");
        node.work = std::move(now);
    });
}

CUresult set_kernel_in(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS& params) {
    return set_in<KernelNode>("cuGraphExecKernelNodeSetParams", exec, node, [&](Driver& its, const KernelNode& before) {
        CUDA_KERNEL_NODE_PARAMS own = params;
        if (!own.ctx) own.ctx = handle_of(before.context);
        return kernel_node(its, own, before.attributes);
    });
}

template <class Node>
CUresult set_event_in(const char* name, CUgraphExec exec, CUgraphNode node, CUevent event) {
    return set_in<Node>(name, exec, node, [&](Driver& its, const Node&) {
        event_at(its, event);
        return Node{event};
    });
}

void check_flat(const CUDA_MEMCPY3D& before, const CUDA_MEMCPY3D& now) {
    if (!is_flat(before) || !is_flat(now))
        refuse(CUDA_ERROR_INVALID_VALUE, "a copy of several rows in an executable graph keeps its parameters");
}

CUresult set_child(const char* name, CUgraphExec exec, CUgraphNode handle, CUgraph from) {
    return initialised(name, [&](Driver&) {
        work_of<ChildNode>(node_at(handle));
        Update changes(*work_of<ChildNode>(node_in(exec_at(exec), handle)).graph, graph_at(from));
        if (changes.found.result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
            refuse(CUDA_ERROR_INVALID_VALUE, "the two graphs differ in more than what an update may change");
        changes.apply();
    });
}

}  // namespace

API(cuGraphExecUpdate, CUgraphExec exec, CUgraph from, CUgraphNode* node, CUgraphExecUpdateResult* result) {
    CUgraphExecUpdateResultInfo info{};
    const CUresult out = update(exec, from, info);
    if (node) *node = info.errorNode;
    if (result) *result = info.result;
    return out;
}
API(cuGraphExecUpdate_v2, CUgraphExec exec, CUgraph from, CUgraphExecUpdateResultInfo* info) {
    return info ? update(exec, from, *info) : CUDA_ERROR_INVALID_VALUE;
}

API(cuGraphExecKernelNodeSetParams, CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    CUDA_KERNEL_NODE_PARAMS all{};
    std::memcpy(&all, params, sizeof *params);
    return set_kernel_in(exec, node, all);
}
API(cuGraphExecKernelNodeSetParams_v2, CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
    return params ? set_kernel_in(exec, node, *params) : CUDA_ERROR_INVALID_VALUE;
}
API(cuGraphExecMemcpyNodeSetParams, CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* params,
    CUcontext context) {
    return set_in<CopyNode>("cuGraphExecMemcpyNodeSetParams", exec, node, [&](Driver& its, const CopyNode& before) {
        require(params);
        check_flat(before.params, *params);
        return copy_node(its, *params, context);
    });
}
API(cuGraphExecMemsetNodeSetParams, CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params,
    CUcontext context) {
    return set_in<FillNode>("cuGraphExecMemsetNodeSetParams", exec, node, [&](Driver& its, const FillNode&) {
        require(params);
        return fill_node(its, *params, context);
    });
}
API(cuGraphExecHostNodeSetParams, CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* params) {
    return set_in<HostNode>("cuGraphExecHostNodeSetParams", exec, node, [&](Driver&, const HostNode&) {
        require(params);
        return host_node(*params);
    });
}
API(cuGraphExecChildGraphNodeSetParams, CUgraphExec exec, CUgraphNode node, CUgraph from) {
    return set_child("cuGraphExecChildGraphNodeSetParams", exec, node, from);
}
API(cuGraphExecEventRecordNodeSetEvent, CUgraphExec exec, CUgraphNode node, CUevent event) {
    return set_event_in<RecordNode>("cuGraphExecEventRecordNodeSetEvent", exec, node, event);
}
API(cuGraphExecEventWaitNodeSetEvent, CUgraphExec exec, CUgraphNode node, CUevent event) {
    return set_event_in<WaitNode>("cuGraphExecEventWaitNodeSetEvent", exec, node, event);
}
API(cuGraphExecNodeSetParams, CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params) {
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    switch (params->type) {
        case CU_GRAPH_NODE_TYPE_KERNEL: return set_kernel_in(exec, node, params->kernel);
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            return cuGraphExecMemcpyNodeSetParams(exec, node, &params->memcpy.copyParams,
                                                  params->memcpy.copyCtx ? params->memcpy.copyCtx : current_handle());
        case CU_GRAPH_NODE_TYPE_MEMSET:
            return cuGraphExecMemsetNodeSetParams(exec, node, &params->memset.params,
                                                  params->memset.ctx ? params->memset.ctx : current_handle());
        case CU_GRAPH_NODE_TYPE_HOST: return cuGraphExecHostNodeSetParams(exec, node, &params->host);
        case CU_GRAPH_NODE_TYPE_GRAPH: return set_child("cuGraphExecNodeSetParams", exec, node, params->graph.graph);
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return cuGraphExecEventWaitNodeSetEvent(exec, node, params->event.event);
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
            return cuGraphExecEventRecordNodeSetEvent(exec, node, params->event.event);
        default: return CUDA_ERROR_NOT_SUPPORTED;
    }
}

}  // namespace ikat::cuda_driver
