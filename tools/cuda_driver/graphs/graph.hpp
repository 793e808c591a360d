// SPDX-License-Identifier: Apache-2.0
// Graphs: nodes with what they do, and what they come after; executable graphs, which are copies of them laid on
// streams; and the captures that make graphs of what streams are given.
//
//     cuGraphAdd…Node, captures ── Graph ── cuGraphInstantiate ── GraphExec ── cuGraphLaunch ── work of its lanes
//
// All of it is used under the driver's lock.
#pragma once
#include <set>
#include <variant>

#include "runtime/emulator/host/graphs/work_graph.hpp"
#include "tools/cuda_driver/graphs/abi.hpp"
#include "tools/cuda_driver/state.hpp"

namespace ikat::cuda_driver {

struct Graph;

/// Memory that comes with a node of a graph, at an address that stays. It outlives the graph until it is freed.
struct GraphMemory {
    GraphMemory(Driver& its, emulator::ContextId context, std::size_t count);
    ~GraphMemory();
    GraphMemory(const GraphMemory&) = delete;
    GraphMemory& operator=(const GraphMemory&) = delete;

    std::uint64_t address = 0, bytes = 0;
    emulator::ContextId context{};
    std::uintptr_t owner = 0;     // the graph whose node allocates it
    std::uintptr_t freed_in = 0;  // a graph that has a node which frees it
    bool is_live = false;         // as of what has been enqueued
};

/// The condition of a node: a word of the device, whose address is its handle.
struct GraphCondition {
    GraphCondition(Driver& its, emulator::ContextId context, std::uintptr_t graph);
    ~GraphCondition();
    GraphCondition(const GraphCondition&) = delete;
    GraphCondition& operator=(const GraphCondition&) = delete;

    const CUgraphConditionalHandle handle;
    const emulator::ContextId context;
    const std::uintptr_t graph;       // it is of a node of this graph, or of one within
    std::uintptr_t node = 0;          // that has it
    std::optional<unsigned> first{};  // at each launch
};

struct KernelNode {
    CUfunction function = nullptr;
    emulator::ContextId context{};
    emulator::work::Launch launch;  // owns the parameters
    bool is_cooperative = false;
    std::map<unsigned, CUlaunchAttribute> attributes{};  // by number
    std::shared_ptr<KeptPtx> ptx{};
    std::vector<void*> pointers{};  // to each parameter, for who asks
};
struct CopyNode {
    CUDA_MEMCPY3D params{};
    CUcontext context = nullptr;
};
struct FillNode {
    CUDA_MEMSET_NODE_PARAMS params{};
    CUcontext context = nullptr;
};
struct HostNode {
    CUDA_HOST_NODE_PARAMS params{};
};
struct ChildNode {
    std::unique_ptr<Graph> graph;
};
struct EmptyNode {};
struct WaitNode {
    CUevent event = nullptr;
};
struct RecordNode {
    CUevent event = nullptr;
};
struct AllocNode {
    CUmemPoolProps props{};
    std::vector<CUmemAccessDesc> access{};
    std::shared_ptr<GraphMemory> memory;
};
struct FreeNode {
    std::uint64_t address = 0;
    std::shared_ptr<GraphMemory> memory;
};
struct ConditionalNode {
    std::shared_ptr<GraphCondition> condition;
    CUgraphConditionalNodeType type{};
    std::vector<std::unique_ptr<Graph>> bodies{};
    std::vector<CUgraph> names{};  // of the bodies, for the program
};
/// In the order of CUgraphNodeType where that goes on.
using NodeWork = std::variant<KernelNode, CopyNode, FillNode, HostNode, ChildNode, EmptyNode, WaitNode, RecordNode,
                              AllocNode, FreeNode, ConditionalNode>;
CUgraphNodeType type_of(const NodeWork& work);
/// A copy of it, of a child's graph and of bodies, too.
NodeWork copy_of(const NodeWork& work);
/// The graphs within: a child, or bodies.
std::vector<Graph*> graphs_in(const NodeWork& work);

struct GraphNode {
    struct Edge {
        GraphNode* from = nullptr;
        CUgraphEdgeData data{};
    };

    std::uintptr_t handle = 0;
    Graph* graph = nullptr;
    std::uintptr_t original = 0;  // the handle of what it is a copy of
    NodeWork work;
    std::vector<Edge> after{};  // each from another node
    bool is_enabled = true;     // of an executable graph

    CUgraphNode name() const { return reinterpret_cast<CUgraphNode>(handle); }
};

struct Graph {
    explicit Graph(Driver& its);
    ~Graph();
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;

    GraphNode& add(NodeWork work, std::vector<GraphNode::Edge> after);
    /// Those that come after it.
    std::vector<GraphNode::Edge> dependents(const GraphNode& node) const;
    bool has_memory() const;
    bool has_conditions() const;
    std::unique_ptr<Graph> clone() const;
    /// The copy of a node, here or in a child; nullptr if there is none.
    GraphNode* copy_of(std::uintptr_t original);
    /// The nodes in an order that the edges allow; empty if there is none though there are nodes.
    std::vector<GraphNode*> in_order() const;

    Driver& its;
    std::uintptr_t handle = 0;
    std::vector<std::unique_ptr<GraphNode>> nodes{};            // as they were added
    GraphNode* parent = nullptr;                                // whose child or body it is
    std::vector<std::shared_ptr<GraphCondition>> conditions{};  // that were made for it
    std::map<std::uintptr_t, unsigned> user_objects{};
    unsigned captures = 0;     // that go on
    unsigned executables = 0;  // of a graph that may have one
};

/// An executable graph: a copy, and where its nodes are done.
struct GraphExec {
    GraphExec(Driver& its, Graph& from, Context& context, std::uint64_t flags);
    ~GraphExec();
    GraphExec(const GraphExec&) = delete;
    GraphExec& operator=(const GraphExec&) = delete;

    Driver& its;
    std::uintptr_t handle = 0, source = 0;  // source: the graph's handle
    emulator::ContextId context{};
    std::uint64_t flags = 0;
    bool is_only_one = false;  // it has memory or conditions
    std::unique_ptr<Graph> graph;
    std::vector<emulator::StreamId> lanes{};
    std::map<std::uint64_t, emulator::EventId> events{};  // that order its lanes, by what they are of

    bool is_done() const;
};

/// A launch that may not have ended: what goes wrong on its streams is the context's failure.
struct LaunchedGraph {
    emulator::ContextId context{};
    std::vector<emulator::StreamId> lanes{};
    std::vector<std::shared_ptr<KeptPtx>> texts{};
};

struct UserObject {
    void* data = nullptr;
    CUhostFn destroy = nullptr;
    std::uint64_t references = 0;
};

/// All graphs of the process.
struct Graphs {
    std::map<std::uintptr_t, Graph*> by_handle{};            // children, too
    std::map<std::uintptr_t, std::unique_ptr<Graph>> own{};  // of the program
    std::map<std::uintptr_t, GraphNode*> nodes{};
    std::map<std::uintptr_t, std::unique_ptr<GraphExec>> executables{};
    std::map<std::uint64_t, std::weak_ptr<GraphMemory>> memory{};  // by address
    std::map<CUgraphConditionalHandle, std::weak_ptr<GraphCondition>> conditions{};
    std::vector<LaunchedGraph> launched{};
    std::vector<std::unique_ptr<GraphExec>> ending{};  // destroyed by the program, and not done yet
    std::map<std::uintptr_t, UserObject> user_objects{};
    std::uint64_t used = 0, used_high = 0, reserved = 0, reserved_high = 0;  // bytes that graphs have
};
Graphs& graphs();

/// CUDA_ERROR_INVALID_VALUE, with what is wrong, if there is none of this handle.
Graph& graph_at(CUgraph handle);
GraphNode& node_at(CUgraphNode handle);
GraphExec& exec_at(CUgraphExec handle);
/// The copy of a node in an executable graph, which must be one of this kind.
GraphNode& node_in(GraphExec& exec, CUgraphNode handle);
template <class Node>
Node& work_of(GraphNode& node) {
    auto* const its = std::get_if<Node>(&node.work);
    if (!its) refuse(CUDA_ERROR_INVALID_VALUE, "the node is of another type");
    return *its;
}

/// Refuses to take something from a graph with memory, or that is being captured into.
void check_may_lose(const Graph& graph, const char* what);

void retain_user_object(std::uintptr_t object, std::uint64_t count);
/// The last reference calls its function.
void release_user_object(std::uintptr_t object, std::uint64_t count);

/// What graphs have allocated and freed, as of what has been enqueued.
void note_allocated(std::uint64_t bytes);
void note_freed(GraphMemory& memory);
void note_freed(std::uint64_t address);

/// The edges from a list of nodes, which are all of the graph.
std::vector<GraphNode::Edge> edges_from(Graph& graph, const CUgraphNode* nodes, const CUgraphEdgeData* data,
                                        std::size_t count);
/// Puts `from` before `to`. CUDA_ERROR_INVALID_VALUE if it is already, or is the same.
void add_edge(GraphNode& to, GraphNode::Edge edge);

/// What the parameters of a node say, checked as at the call of the same name.
using Attributes = std::map<unsigned, CUlaunchAttribute>;  // by number
KernelNode kernel_node(Driver& its, const CUDA_KERNEL_NODE_PARAMS& params, const Attributes& attributes);
CopyNode copy_node(Driver& its, const CUDA_MEMCPY3D& params, CUcontext context);
FillNode fill_node(Driver& its, const CUDA_MEMSET_NODE_PARAMS& params, CUcontext context);
HostNode host_node(const CUDA_HOST_NODE_PARAMS& params);
ChildNode child_node(Driver& its, CUgraph graph, bool moves);
AllocNode alloc_node(Driver& its, const Graph& graph, CUDA_MEM_ALLOC_NODE_PARAMS& params);
FreeNode free_node(const Graph& graph, CUdeviceptr address);
/// With empty bodies.
ConditionalNode conditional_node(Driver& its, Graph& graph, CUDA_CONDITIONAL_NODE_PARAMS& params);
/// Refuses what a body, or a child in one, cannot have.
void check_may_have(const Graph& graph, const NodeWork& work);
/// Gives the conditions of a graph their first values, or none.
void enqueue_conditions(emulator::HostDevice& device, const Graph& graph, emulator::StreamId stream);
/// A conditional node with all that its bodies do; adds the texts of their kernels.
emulator::work::Conditional conditional_work(Driver& its, const ConditionalNode& node,
                                             std::vector<std::shared_ptr<KeptPtx>>& texts);
/// The nodes of a body.
emulator::WorkGraph body_work(Driver& its, const Graph& body, std::vector<std::shared_ptr<KeptPtx>>& texts);
/// The parameters of a kernel's node, which owns what they point to.
CUDA_KERNEL_NODE_PARAMS params_of(KernelNode& node);
/// What a generic call says.
NodeWork node_work(Driver& its, Graph& graph, CUgraphNodeParams& params);

/// What the driver is given: a copy and a fill as work, checked.
emulator::work::Copy copy_work(Driver& its, const CUDA_MEMCPY3D& params);
emulator::work::Fill fill_work(Driver& its, const CUDA_MEMSET_NODE_PARAMS& params);
/// A launch, checked.
emulator::work::Launch launch_work(Driver& its, Context& context, CUfunction function, emulator::Launch asked,
                                   void** parameters, void** extra, bool is_cooperative);
/// Takes what attributes of a launch say. CUDA_ERROR_INVALID_VALUE for unknown ones.
struct LaunchExtras {
    bool is_cooperative = false;
    std::vector<CUevent> events{};
};
void apply(const CUlaunchAttribute& attribute, emulator::Launch& asked, LaunchExtras& extras);

/// Enqueues the nodes of an executable graph; the stream then waits for them.
void enqueue(Driver& its, GraphExec& exec, CUstream stream);
/// A context has ended: its memory is gone.
void forget_graphs(const Context& context);
/// Whether a range is of memory that a graph allocates, now or later.
bool is_in_graph_memory(CUdeviceptr address, std::size_t bytes);
/// A kernel's failure, which is said, becomes the context's.
void fail(Context& context, const char* function, const Error& finding,
          std::span<const std::shared_ptr<KeptPtx>> texts);
/// Whether a node of a kernel has such an attribute.
bool is_of_node(CUlaunchAttributeID which);
/// Makes failures of launched graphs those of their contexts, and ends those that the program has destroyed.
void collect_failures(Driver& its);

}  // namespace ikat::cuda_driver
