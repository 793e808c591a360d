// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/host/graphs/work_graph.hpp"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

namespace ikat::emulator {

const WorkGraph* work::Conditional::chosen(std::uint32_t number) const {
    const std::size_t which = kind == Kind::Switch ? number : number == 0;
    return which < bodies.size() ? bodies[which].get() : nullptr;
}

namespace {

std::span<const std::shared_ptr<const WorkGraph>> bodies_of(const Work& work) {
    const auto* const conditional = std::get_if<work::Conditional>(&work);
    return conditional ? std::span(conditional->bodies) : std::span<const std::shared_ptr<const WorkGraph>>();
}

}  // namespace

WorkGraph make_graph(std::vector<WorkGraph::Node> nodes) {
    WorkGraph out{.nodes = std::move(nodes)};
    std::vector<std::vector<std::uint32_t>> after;
    for (const WorkGraph::Node& node : out.nodes) after.push_back(node.after);
    const Lanes lanes = lanes_of(after);
    out.lanes = std::uint32_t(lanes.ends.size());
    for (std::uint32_t i = 0; i < out.nodes.size(); ++i) {
        WorkGraph::Node& node = out.nodes[i];
        node.lane = lanes.nodes[i].lane;
        node.set_work(std::move(node.work));
        out.writes_host = out.writes_host || may_write_host(*node.work);
        out.calls_program = out.calls_program || std::holds_alternative<work::HostCall>(*node.work);
        node.number = out.total++;
        for (const auto& body : bodies_of(*node.work)) {
            out.total += body->total;
            out.calls_program = out.calls_program || body->calls_program;
        }
        if (out.lanes == 1) continue;  // each knows all before it
        StreamClock known;
        for (const std::uint32_t before : node.after) {
            const WorkGraph::Node& other = out.nodes[before];
            known.join(*other.known);
            known.learn(WorkGraph::stream_of(other.lane), WorkGraph::number_of(before));
        }
        node.known = std::make_shared<const StreamClock>(std::move(known));
    }
    return out;
}

void WorkGraph::Node::set_work(std::shared_ptr<const Work> to) {
    deed = std::make_shared<const Deed>(deed_of(*to));
    work = std::move(to);
}

std::vector<std::uint32_t> WorkGraph::in_order(WorkOrder& order) const {
    std::vector<std::size_t> missing(nodes.size());
    std::vector<std::vector<std::uint32_t>> followers(nodes.size());
    std::vector<std::uint32_t> ready, out;
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
        missing[i] = nodes[i].after.size();
        for (const std::uint32_t before : nodes[i].after) followers[before].push_back(i);
        if (missing[i] == 0) ready.push_back(i);
    }
    while (!ready.empty()) {
        const auto next = ready.begin() + std::ptrdiff_t(order.pick(ready.size()));
        out.push_back(*next);
        ready.erase(next);
        for (const std::uint32_t follower : followers[out.back()])
            if (--missing[follower] == 0) ready.insert(std::ranges::upper_bound(ready, follower), follower);
    }
    return out;
}

void replace(WorkGraph& graph, std::uint32_t number, std::shared_ptr<const Work> work) {
    const auto next = std::ranges::upper_bound(graph.nodes, number, {}, &WorkGraph::Node::number);
    WorkGraph::Node& node = *std::prev(next);
    if (node.number == number) {
        node.set_work(std::move(work));
        return;
    }
    auto conditional = std::get<work::Conditional>(*node.work);
    std::uint32_t first = node.number + 1;
    const auto its = std::ranges::find_if(conditional.bodies, [&](const auto& body) {
        const bool has_it = number < first + body->total;
        if (!has_it) first += body->total;
        return has_it;
    });
    auto body = std::make_shared<WorkGraph>(**its);
    replace(*body, number - first, std::move(work));
    *its = std::move(body);
    node.set_work(std::make_shared<const Work>(std::move(conditional)));
}

namespace {

void add_checksums(const WorkGraph& graph, std::vector<std::optional<std::uint64_t>>& out) {
    for (const WorkGraph::Node& node : graph.nodes) {
        out.push_back(checksum_of(*node.work));
        for (const auto& body : bodies_of(*node.work)) add_checksums(*body, out);
    }
}

}  // namespace

std::vector<std::optional<std::uint64_t>> checksums_of(const WorkGraph& graph) {
    std::vector<std::optional<std::uint64_t>> out;
    if (!graph.writes_host) add_checksums(graph, out);
    return out;
}

}  // namespace ikat::emulator
