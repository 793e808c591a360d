// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/graph.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

#include "runtime/cuda/layouts.hpp"

namespace ikat::runtime::cuda {
namespace {

/// What one of our nodes is for the driver: a chain of its nodes, each after the one before.
struct Chain {
    std::vector<Node> nodes{};
    std::unique_ptr<HostCalls::Call> call{};  // of a host node
};

class Graph final : public DeviceGraph {
public:
    Graph(GraphDevice device, std::vector<GraphNode> nodes)
        : device_(std::move(device)), driver_(device_.driver), context_(device_.context), nodes_(std::move(nodes)) {
        number(nodes_);
    }
    ~Graph() override {
        if (driver_->cuCtxSetCurrent(context_) == Result::Success) clear();
    }

    void make() {
        check(driver_->cuGraphCreate(&graph_, 0), "cuGraphCreate");
        add(nodes_, graph_);
        check(driver_->cuGraphInstantiateWithFlags(&exec_, graph_, 0), "cuGraphInstantiateWithFlags");
    }

    void launch(StreamHandle stream, const Location&) override {
        enter();
        if (is_stale_) clear(), make();
        is_stale_ = false;
        driver_->check(driver_->cuGraphLaunch(exec_, reinterpret_cast<Stream>(std::uintptr_t(stream))),
                       "cuGraphLaunch");
    }
    void update(std::uint32_t node, GraphNode work) override {
        // The driver gives no copy of several rows anew.
        const auto is_box = [](const GraphNode& of) {
            const auto* const copy = std::get_if<RawCopy>(&of.work);
            return copy && copy->rows > 1;
        };
        GraphNode& its = *numbered_[node];
        is_stale_ = is_stale_ || is_box(its) || is_box(work);
        its.work = std::move(work.work);
        if (is_stale_) return;  // all is made anew
        enter();
        Place place{.graph = *this, .chain = chains_[node], .updates = true};
        std::visit(place, its.work);
    }

private:
    void number(std::vector<GraphNode>& nodes) {
        for (GraphNode& node : nodes) {
            numbered_.push_back(&node);
            if (auto* const conditional = std::get_if<GraphNode::Conditional>(&node.work)) number(conditional->body);
        }
    }
    /// Adds nodes to a graph of the driver: the last of each.
    std::vector<Node> add(const std::vector<GraphNode>& nodes, CudaGraph to);
    void clear() {
        // The driver may still be about to call a function of the program.
        if (std::ranges::any_of(chains_, [](const Chain& each) { return bool(each.call); }))
            driver_->cuCtxSynchronize();
        if (const GraphExec exec = std::exchange(exec_, nullptr)) driver_->cuGraphExecDestroy(exec);
        if (const CudaGraph graph = std::exchange(graph_, nullptr)) driver_->cuGraphDestroy(graph);
        chains_.clear();
    }
    void enter() const { check(driver_->cuCtxSetCurrent(context_), "cuCtxSetCurrent"); }
    void check(Result result, std::string_view doing) const { driver_->check(result, doing); }

    /// Adds the nodes of a chain, or gives those of the graph that is launched other parameters.
    struct Place {
        Graph& graph;
        Chain& chain;
        CudaGraph to = nullptr;
        std::vector<Node> after{};
        bool follows_kernel = false;  // and nothing else
        bool updates = false;
        std::size_t at = 0;  // of the chain

        void operator()(const GraphNode::Empty&) { empty(); }
        void operator()(const GraphNode::Renew&) { empty(); }
        void operator()(const GraphNode::Launch& launch);
        void operator()(const RawCopy& copy);
        void operator()(const GraphNode::Fill& fill);
        void operator()(const GraphNode::Call& call);
        void operator()(const GraphNode::Conditional& conditional);

    private:
        void empty() {
            if (updates) return;
            put([&](Node* node) { return graph.driver_->cuGraphAddEmptyNode(node, to, after.data(), after.size()); });
        }
        /// Adds a node after those before it.
        template <class Add>
        void put(Add add) {
            Node node = nullptr;
            graph.check(add(&node), "cuGraphAdd...Node");
            chain.nodes.push_back(node);
            after = {node};
        }
        Node next() { return chain.nodes.at(at++); }
        /// What the driver does not give anew, by its version, is made anew.
        void take(Result result) { graph.is_stale_ = graph.is_stale_ || result != Result::Success; }
        /// Puts the kernel at the end of an edge that lets it begin early.
        void put_early(const KernelNode& node);
        void set_condition(Function setter, std::uint64_t handle, std::uint64_t number);
        void plane(const RawCopy& copy, std::uint64_t number);
        void set(const MemsetNode& memset);
    };

    const GraphDevice device_;
    const std::shared_ptr<const Driver> driver_;
    const Context context_;
    std::vector<GraphNode> nodes_;
    std::vector<GraphNode*> numbered_;  // with those of bodies
    CudaGraph graph_ = nullptr;
    GraphExec exec_ = nullptr;
    std::deque<Chain> chains_;  // of each node, by its number
    bool is_stale_ = false;     // the driver's graph is not that of the nodes
};

std::vector<Node> Graph::add(const std::vector<GraphNode>& nodes, CudaGraph to) {
    std::vector<Node> last;
    for (const GraphNode& node : nodes) {
        Place place{.graph = *this, .chain = chains_.emplace_back(), .to = to};
        for (const std::uint32_t before : node.after) place.after.push_back(last[before]);
        place.follows_kernel =
            node.after.size() == 1 && std::holds_alternative<GraphNode::Launch>(nodes[node.after.front()].work);
        std::visit(place, node.work);
        last.push_back(place.chain.nodes.back());
    }
    return last;
}

/// The driver copies the parameters at the call.
void Graph::Place::operator()(const GraphNode::Launch& launch) {
    const LaunchedFunction function = graph.device_.find(launch);
    const auto& [blocks, threads, shared] = launch.grid;
    LaunchParameters parameters(launch.parameters, function.offsets);
    const KernelNode node{.function = function.function,
                          .grid = {blocks.x, blocks.y, blocks.z},
                          .block = {threads.x, threads.y, threads.z},
                          .shared_bytes = shared,
                          .parameters = parameters.one_by_one(),
                          .extra = parameters.in_one_piece()};
    if (updates)
        return graph.check(graph.driver_->cuGraphExecKernelNodeSetParams_v2(graph.exec_, next(), &node),
                           "cuGraphExecKernelNodeSetParams");
    if (launch.begins_early && follows_kernel && graph.driver_->cuGraphAddDependencies_v2) return put_early(node);
    put([&](Node* out) { return graph.driver_->cuGraphAddKernelNode_v2(out, to, after.data(), after.size(), &node); });
}

void Graph::Place::put_early(const KernelNode& node) {
    const Node kernel = std::exchange(after, {}).front();
    put([&](Node* out) { return graph.driver_->cuGraphAddKernelNode_v2(out, to, nullptr, 0, &node); });
    const EdgeData edge{.from_port = EdgeData::programmatic_port, .type = EdgeData::programmatic};
    graph.check(graph.driver_->cuGraphAddDependencies_v2(to, &kernel, &chain.nodes.back(), &edge, 1),
                "cuGraphAddDependencies");
}

void Graph::Place::set_condition(Function setter, std::uint64_t handle, std::uint64_t number) {
    void* parameters[] = {&handle, &number};
    const KernelNode node{.function = setter, .grid = {1, 1, 1}, .block = {1, 1, 1}, .parameters = parameters};
    put([&](Node* out) { return graph.driver_->cuGraphAddKernelNode_v2(out, to, after.data(), after.size(), &node); });
}

/// What our kernels have set becomes the driver's value before the node, and at the end of each round of its body.
void Graph::Place::operator()(const GraphNode::Conditional& its) {
    using Type = ConditionalNode::Type;
    if (updates) return;  // it stays
    const auto is_call = [](const GraphNode& node) { return std::holds_alternative<GraphNode::Call>(node.work); };
    if (std::ranges::any_of(its.body, is_call))
        throw Error(Diagnostic{.where = its.where,
                               .message = "a body of a graph calls a function of the program, which a GPU cannot do",
                               .hint = "call it before or after the body"});
    const Function setter = graph.device_.setter.function();
    std::uint64_t handle = 0;
    graph.check(graph.driver_->cuGraphConditionalHandleCreate(&handle, to, graph.context_, 0, 0),
                "cuGraphConditionalHandleCreate");
    set_condition(setter, handle, its.condition);
    NodeParameters parameters;
    parameters.type = NodeParameters::Type::Conditional;
    parameters.conditional = {handle, its.is_loop ? Type::While : Type::If, 1, nullptr, graph.context_};
    put([&](Node* out) {
        return graph.driver_->cuGraphAddNode_v2(out, to, after.data(), nullptr, after.size(), &parameters);
    });
    const CudaGraph body = parameters.conditional.bodies[0];
    std::vector<Node> ends = graph.add(its.body, body);
    if (!its.is_loop) return;
    Chain end;
    Place{.graph = graph, .chain = end, .to = body, .after = std::move(ends)}.set_condition(setter, handle,
                                                                                            its.condition);
}

/// A plane after the other: a plane's pitch need not be a number of rows.
void Graph::Place::operator()(const RawCopy& copy) {
    if (copy.bytes == 0 || copy.rows == 0 || copy.planes == 0) return empty();
    for (std::uint64_t i = 0; i < copy.planes; ++i) plane(copy, i);
}

void Graph::Place::plane(const RawCopy& copy, std::uint64_t number) {
    const auto end = [&](const RawCopy::Place& place) -> BoxCopy::End {
        return {.type = place.host ? BoxCopy::MemoryType::Host : BoxCopy::MemoryType::Device,
                .host = place.host ? place.host + number * place.plane_pitch : nullptr,
                .device = place.host ? 0 : place.address + number * place.plane_pitch,
                .pitch = copy.rows > 1 ? place.row_pitch : copy.bytes,
                .height = copy.rows};
    };
    const BoxCopy box{.from = end(copy.from), .to = end(copy.to), .width = copy.bytes, .height = copy.rows};
    if (updates) return take(graph.driver_->cuGraphExecMemcpyNodeSetParams(graph.exec_, next(), &box, graph.context_));
    put([&](Node* out) {
        return graph.driver_->cuGraphAddMemcpyNode(out, to, after.data(), after.size(), &box, graph.context_);
    });
}

void Graph::Place::set(const MemsetNode& memset) {
    if (updates)
        return take(graph.driver_->cuGraphExecMemsetNodeSetParams(graph.exec_, next(), &memset, graph.context_));
    put([&](Node* out) {
        return graph.driver_->cuGraphAddMemsetNode(out, to, after.data(), after.size(), &memset, graph.context_);
    });
}

/// Words of 64 bits are a column of their low halves and one of their high halves.
void Graph::Place::operator()(const GraphNode::Fill& fill) {
    if (fill.count == 0) return empty();
    const std::size_t bytes = fill.element.size();
    if (bytes <= sizeof(unsigned)) {
        unsigned value = 0;
        std::memcpy(&value, fill.element.data(), bytes);
        return set({.to = fill.to, .value = value, .element_bytes = unsigned(bytes), .width = fill.count});
    }
    for (std::size_t half = 0; half < 2; ++half) {
        unsigned value = 0;
        std::memcpy(&value, fill.element.data() + half * sizeof value, sizeof value);
        set({.to = fill.to + half * sizeof value,
             .pitch = bytes,
             .value = value,
             .element_bytes = sizeof value,
             .width = 1,
             .height = fill.count});
    }
}

void Graph::Place::operator()(const GraphNode::Call& call) {
    auto kept = std::make_unique<HostCalls::Call>(HostCalls::Call{call.function, graph.device_.calls});
    const HostNode node{HostCalls::run_kept, kept.get()};
    if (updates) {
        graph.driver_->cuCtxSynchronize();  // the one before may be about to be called
        graph.check(graph.driver_->cuGraphExecHostNodeSetParams(graph.exec_, next(), &node),
                    "cuGraphExecHostNodeSetParams");
    } else {
        put([&](Node* out) { return graph.driver_->cuGraphAddHostNode(out, to, after.data(), after.size(), &node); });
    }
    chain.call = std::move(kept);
}

}  // namespace

Reference<DeviceGraph> make_graph(GraphDevice device, std::vector<GraphNode> nodes) {
    const Driver& driver = *device.driver;
    if (!driver.cuGraphAddKernelNode_v2 || !driver.cuGraphExecKernelNodeSetParams_v2 ||
        !driver.cuGraphInstantiateWithFlags)
        throw Error("the CUDA driver cannot make this graph", "it is older than CUDA 12: update the driver");
    auto graph = make_reference<Graph>(std::move(device), std::move(nodes));
    graph->make();
    return graph;
}

}  // namespace ikat::runtime::cuda
