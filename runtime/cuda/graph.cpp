// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/graph.hpp"

#include <algorithm>
#include <cstring>
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
    Graph(Reference<Backend> backend, std::shared_ptr<const Driver> driver, Context context, Reference<HostCalls> calls,
          FindFunction find, std::vector<GraphNode> nodes)
        : backend_(std::move(backend)),
          driver_(std::move(driver)),
          context_(context),
          calls_(std::move(calls)),
          find_(std::move(find)),
          nodes_(std::move(nodes)) {}
    ~Graph() override {
        if (driver_->cuCtxSetCurrent(context_) == Result::Success) clear();
    }

    void make() {
        check(driver_->cuGraphCreate(&graph_, 0), "cuGraphCreate");
        for (const GraphNode& node : nodes_) {
            std::vector<Node> after;
            for (const std::uint32_t before : node.after) after.push_back(chains_[before].nodes.back());
            Place place{*this, chains_.emplace_back(), std::move(after)};
            std::visit(place, node.work);
        }
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
        is_stale_ = is_stale_ || is_box(nodes_[node]) || is_box(work);
        nodes_[node].work = std::move(work.work);
        if (is_stale_) return;  // all is made anew
        enter();
        Place place{*this, chains_[node], {}, true};
        std::visit(place, nodes_[node].work);
    }

private:
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
        std::vector<Node> after;
        bool updates = false;
        std::size_t at = 0;  // of the chain

        void operator()(const GraphNode::Empty&) { empty(); }
        void operator()(const GraphNode::Renew&) { empty(); }
        void operator()(const GraphNode::Launch& launch);
        void operator()(const RawCopy& copy);
        void operator()(const GraphNode::Fill& fill);
        void operator()(const GraphNode::Call& call);

    private:
        void empty() {
            if (updates) return;
            put([&](Node* node) {
                return graph.driver_->cuGraphAddEmptyNode(node, graph.graph_, after.data(), after.size());
            });
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
        void plane(const RawCopy& copy, std::uint64_t number);
        void set(const MemsetNode& memset);
    };

    const Reference<Backend> backend_;
    const std::shared_ptr<const Driver> driver_;
    const Context context_;
    const Reference<HostCalls> calls_;
    const FindFunction find_;
    std::vector<GraphNode> nodes_;
    CudaGraph graph_ = nullptr;
    GraphExec exec_ = nullptr;
    std::vector<Chain> chains_;  // of each node
    bool is_stale_ = false;      // the driver's graph is not that of the nodes
};

/// The driver copies the parameters at the call.
void Graph::Place::operator()(const GraphNode::Launch& launch) {
    const LaunchedFunction function = graph.find_(launch);
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
    put([&](Node* out) {
        return graph.driver_->cuGraphAddKernelNode_v2(out, graph.graph_, after.data(), after.size(), &node);
    });
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
        return graph.driver_->cuGraphAddMemcpyNode(out, graph.graph_, after.data(), after.size(), &box, graph.context_);
    });
}

void Graph::Place::set(const MemsetNode& memset) {
    if (updates)
        return take(graph.driver_->cuGraphExecMemsetNodeSetParams(graph.exec_, next(), &memset, graph.context_));
    put([&](Node* out) {
        return graph.driver_->cuGraphAddMemsetNode(out, graph.graph_, after.data(), after.size(), &memset,
                                                   graph.context_);
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
    auto kept = std::make_unique<HostCalls::Call>(HostCalls::Call{call.function, graph.calls_});
    const HostNode node{HostCalls::run_kept, kept.get()};
    if (updates) {
        graph.driver_->cuCtxSynchronize();  // the one before may be about to be called
        graph.check(graph.driver_->cuGraphExecHostNodeSetParams(graph.exec_, next(), &node),
                    "cuGraphExecHostNodeSetParams");
    } else {
        put([&](Node* out) {
            return graph.driver_->cuGraphAddHostNode(out, graph.graph_, after.data(), after.size(), &node);
        });
    }
    chain.call = std::move(kept);
}

}  // namespace

Reference<DeviceGraph> make_graph(Reference<Backend> backend, std::shared_ptr<const Driver> driver, Context context,
                                  Reference<HostCalls> calls, FindFunction find, std::vector<GraphNode> nodes) {
    if (!driver->cuGraphAddKernelNode_v2 || !driver->cuGraphExecKernelNodeSetParams_v2 ||
        !driver->cuGraphInstantiateWithFlags)
        throw Error("the CUDA driver cannot make this graph", "it is older than CUDA 12: update the driver");
    auto graph = make_reference<Graph>(std::move(backend), std::move(driver), context, std::move(calls),
                                       std::move(find), std::move(nodes));
    graph->make();
    return graph;
}

}  // namespace ikat::runtime::cuda
