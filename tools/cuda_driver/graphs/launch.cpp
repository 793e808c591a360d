// SPDX-License-Identifier: Apache-2.0
// How an executable graph is done: children are laid out in place, then each lane of nodes (lanes.hpp) is a stream of
// the device that does not wait for the default one. Events order nodes of different lanes, so that what the graph does
// not order is found as with any streams.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/support/notes.hpp"
#include "runtime/emulator/host/graphs/lanes.hpp"
#include "tools/cuda_driver/graphs/capture.hpp"

namespace ikat::cuda_driver {
namespace {

namespace work = emulator::work;

/// Nodes in an order that their edges allow; nullptr: the begin or the end of a child.
struct Plan {
    std::vector<GraphNode*> nodes{};
    std::vector<std::vector<std::uint32_t>> after{};

    std::uint32_t add(GraphNode* node, std::vector<std::uint32_t> comes_after) {
        nodes.push_back(node);
        after.push_back(std::move(comes_after));
        return std::uint32_t(nodes.size() - 1);
    }
    /// Adds the nodes of a graph after some; those that are last.
    std::vector<std::uint32_t> add(const Graph& graph, const std::vector<std::uint32_t>& before) {
        std::map<const GraphNode*, std::uint32_t> numbers;
        std::set<std::uint32_t> ends;
        for (GraphNode* const node : graph.in_order()) {
            std::vector<std::uint32_t> comes_after = node->after.empty() ? before : std::vector<std::uint32_t>{};
            for (const GraphNode::Edge& edge : node->after) comes_after.push_back(numbers.at(edge.from));
            for (const std::uint32_t each : comes_after) ends.erase(each);
            std::uint32_t& number = numbers[node];
            if (const auto* const child = std::get_if<ChildNode>(&node->work)) {
                const std::uint32_t begin = add(nullptr, std::move(comes_after));
                number = add(nullptr, add(*child->graph, {begin}));
            } else {
                number = add(node, std::move(comes_after));
            }
            ends.insert(number);
        }
        return ends.empty() ? before : std::vector(ends.begin(), ends.end());
    }
};

/// A kernel that programmatic edges allow to begin before the one that it follows on its lane has ended.
bool begins_early(const GraphNode& node) {
    return node.after.size() == 1 && node.after.front().data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
}

using Texts = std::vector<std::shared_ptr<KeptPtx>>;

/// What a node does; adds the texts of its kernels.
std::optional<emulator::Work> work_of(Driver& its, const GraphNode& node, Texts& texts) {
    struct Make {
        std::optional<emulator::Work> operator()(const KernelNode& kernel) const {
            emulator::Launch launch = kernel.launch.launch();
            launch.begins_early = begins_early(node);
            texts.push_back(kernel.ptx);
            return work::Launch(kernel.launch.module, kernel.context, launch);
        }
        std::optional<emulator::Work> operator()(const CopyNode& copy) const { return copy_work(its, copy.params); }
        std::optional<emulator::Work> operator()(const FillNode& fill) const { return fill_work(its, fill.params); }
        std::optional<emulator::Work> operator()(const HostNode& host) const {
            return work::HostCall{[params = host.params] { params.fn(params.userData); }};
        }
        std::optional<emulator::Work> operator()(const RecordNode& record) const {
            return work::Record{id_of(record.event)};
        }
        std::optional<emulator::Work> operator()(const WaitNode& wait) const { return work::Wait{id_of(wait.event)}; }
        std::optional<emulator::Work> operator()(const AllocNode& alloc) const {
            return work::Allocate{alloc.memory->address, alloc.memory->bytes};
        }
        std::optional<emulator::Work> operator()(const FreeNode& free) const {
            return work::Free{free.address, free.memory->bytes};
        }
        std::optional<emulator::Work> operator()(const ChildNode&) const { return {}; }
        std::optional<emulator::Work> operator()(const EmptyNode&) const { return {}; }
        std::optional<emulator::Work> operator()(const ConditionalNode& conditional) const {
            return conditional_work(its, conditional, texts);
        }
        Driver& its;
        const GraphNode& node;
        Texts& texts;
    };
    return node.is_enabled ? std::visit(Make{its, node, texts}, node.work) : std::nullopt;
}

/// A conditional node, as a graph of its own.
emulator::Work of_stream(emulator::Work its) {
    if (!std::holds_alternative<work::Conditional>(its)) return its;
    std::vector<emulator::WorkGraph::Node> node{{.work = std::make_shared<const emulator::Work>(std::move(its))}};
    return work::Graph{std::make_shared<const emulator::WorkGraph>(emulator::make_graph(std::move(node)))};
}

/// Counts what a launch allocates and frees, in an order that its edges allow.
void note_memory(Driver& its, const GraphExec& exec, const Plan& plan, emulator::StreamId stream) {
    std::map<GraphMemory*, bool> live;
    const auto is_live = [&](GraphMemory* memory) -> bool& {
        return live.try_emplace(memory, memory->is_live).first->second;
    };
    std::uint64_t bytes = 0;
    std::vector<GraphMemory*> left;
    for (const GraphNode* const node : plan.nodes) {
        if (!node) continue;
        if (const auto* const alloc = std::get_if<AllocNode>(&node->work)) {
            GraphMemory* const memory = alloc->memory.get();
            if (std::exchange(is_live(memory), true)) {
                if ((exec.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) == 0)
                    refuse(CUDA_ERROR_INVALID_VALUE, "memory that the graph allocated is not freed yet",
                           "free it, or give CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH");
                left.push_back(memory);
            }
            bytes += memory->bytes;
        } else if (const auto* const free = std::get_if<FreeNode>(&node->work)) {
            if (!std::exchange(is_live(free->memory.get()), false))
                refuse(CUDA_ERROR_INVALID_VALUE, "a node frees memory that is not allocated");
        }
    }
    for (GraphMemory* const memory : left) {
        its.gpu(exec.context).device.enqueue(stream, work::Free{memory->address, memory->bytes});
        note_freed(*memory);
    }
    note_allocated(bytes);
    for (const auto& [memory, stays] : live) {
        const bool was = memory->is_live;
        memory->is_live = stays;
        if (was && !stays) graphs().used -= memory->bytes;
    }
    for (const GraphNode* const node : plan.nodes)
        if (const auto* const alloc = node ? std::get_if<AllocNode>(&node->work) : nullptr)
            if (!alloc->memory->is_live) graphs().used -= alloc->memory->bytes;
}

/// What events of an executable graph are of: nodes have their numbers.
constexpr std::uint64_t of_lane = std::uint64_t{1} << 32, of_begin = of_lane << 1, of_end = of_lane << 2;

emulator::EventId event_of(Driver& its, GraphExec& exec, std::uint64_t what) {
    auto& event = exec.events[what];
    if (event == emulator::EventId{})
        event = its.gpu(exec.context).device.create_event({.context = exec.context, .is_timed = false});
    return event;
}

void begin_lanes(Driver& its, GraphExec& exec, std::size_t count, emulator::StreamId stream) {
    while (exec.lanes.size() < count)
        exec.lanes.push_back(
            its.gpu(exec.context).device.create_stream({.context = exec.context, .waits_for_default = false}));
    its.gpu(exec.context).device.enqueue(stream, work::Record{event_of(its, exec, of_begin)});
    for (std::size_t lane = 0; lane < count; ++lane) {
        its.gpu(exec.context).device.enqueue(exec.lanes[lane], work::Wait{event_of(its, exec, of_begin)});
        if (exec.events.contains(of_end))
            its.gpu(exec.context).device.enqueue(exec.lanes[lane], work::Wait{exec.events.at(of_end)});
    }
}

void end_lanes(Driver& its, GraphExec& exec, std::size_t count, emulator::StreamId stream) {
    for (std::size_t lane = 0; lane < count; ++lane) {
        const emulator::EventId end = event_of(its, exec, of_lane + lane);
        its.gpu(exec.context).device.enqueue(exec.lanes[lane], work::Record{end});
        its.gpu(exec.context).device.enqueue(stream, work::Wait{end});
    }
    its.gpu(exec.context).device.enqueue(stream, work::Record{event_of(its, exec, of_end)});
}

}  // namespace

emulator::WorkGraph body_work(Driver& its, const Graph& body, Texts& texts) {
    Plan plan;
    plan.add(body, {});
    std::vector<emulator::WorkGraph::Node> nodes;
    for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
        std::optional<emulator::Work> its_work;
        if (plan.nodes[i]) its_work = work_of(its, *plan.nodes[i], texts);
        nodes.push_back({.work = std::make_shared<const emulator::Work>(std::move(its_work).value_or(work::Renew{})),
                         .after = plan.after[i]});
    }
    return emulator::make_graph(std::move(nodes));
}

void enqueue(Driver& its, GraphExec& exec, CUstream handle) {
    check_usable(its.context(exec.context));
    const emulator::StreamId stream = id_of(handle);
    Plan plan;
    plan.add(*exec.graph, {});
    std::vector<std::optional<emulator::Work>> all;
    LaunchedGraph launched{.context = exec.context};
    for (const GraphNode* const node : plan.nodes) {
        auto& added = all.emplace_back(node ? work_of(its, *node, launched.texts) : std::nullopt);
        if (auto* const copy = added ? std::get_if<work::Copy>(&*added) : nullptr)
            its.find_places(its.gpu(exec.context).device, *copy);
    }
    note_memory(its, exec, plan, stream);
    const emulator::Lanes lanes = emulator::lanes_of(plan.after);
    if (exec.graph->has_conditions() && exec.events.contains(of_end))
        its.gpu(exec.context).device.enqueue(stream, work::Wait{exec.events.at(of_end)});
    enqueue_conditions(its.gpu(exec.context).device, *exec.graph, stream);
    begin_lanes(its, exec, lanes.ends.size(), stream);
    for (std::uint32_t i = 0; i < plan.nodes.size(); ++i) {
        const emulator::StreamId lane = exec.lanes[lanes.nodes[i].lane];
        for (const std::uint32_t before : lanes.nodes[i].waits_for)
            its.gpu(exec.context).device.enqueue(lane, work::Wait{event_of(its, exec, before)});
        if (all[i]) its.gpu(exec.context).device.enqueue(lane, of_stream(*std::move(all[i])));
        if (lanes.nodes[i].is_waited_for)
            its.gpu(exec.context).device.enqueue(lane, work::Record{event_of(its, exec, i)});
    }
    end_lanes(its, exec, lanes.ends.size(), stream);
    launched.lanes.assign(exec.lanes.begin(), exec.lanes.begin() + std::ptrdiff_t(lanes.ends.size()));
    graphs().launched.push_back(std::move(launched));
}

void collect_failures(Driver& its) {
    auto& all = graphs().launched;
    if ((all.empty() && graphs().ending.empty()) ||
        std::ranges::any_of(its.gpus, [](const auto& gpu) { return gpu->device.is_host_call(); }))
        return;
    std::erase_if(graphs().ending, [](const auto& exec) { return exec->is_done(); });
    for (std::size_t i = 0; i < all.size();) {
        if (!std::ranges::all_of(all[i].lanes,
                                 [&](const auto& lane) { return its.gpu(all[i].context).device.is_idle(lane); })) {
            ++i;
            continue;
        }
        const LaunchedGraph ended = std::move(all[i]);
        all.erase(all.begin() + std::ptrdiff_t(i));
        for (const emulator::StreamId lane : ended.lanes) {
            try {
                its.gpu(ended.context).device.settle(lane);
            } catch (const Error& finding) { fail(its.context(ended.context), "cuGraphLaunch", finding, ended.texts); }
        }
    }
}

}  // namespace ikat::cuda_driver
