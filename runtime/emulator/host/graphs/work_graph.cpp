// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/host/graphs/work_graph.hpp"

#include <algorithm>
#include <utility>

namespace ikat::emulator {

WorkGraph make_graph(std::vector<WorkGraph::Node> nodes) {
    WorkGraph out{.nodes = std::move(nodes)};
    std::vector<std::vector<std::uint32_t>> after;
    for (const WorkGraph::Node& node : out.nodes) after.push_back(node.after);
    const Lanes lanes = lanes_of(after);
    out.lanes = std::uint32_t(lanes.ends.size());
    for (std::uint32_t i = 0; i < out.nodes.size(); ++i) {
        WorkGraph::Node& node = out.nodes[i];
        node.lane = lanes.nodes[i].lane;
        out.change(i, std::move(node.work));
        out.writes_host = out.writes_host || may_write_host(*node.work);
        out.calls_program = out.calls_program || std::holds_alternative<work::HostCall>(*node.work);
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

void WorkGraph::change(std::uint32_t node, std::shared_ptr<const Work> work) {
    Node& its = nodes[node];
    its.deed = std::make_shared<const Deed>(deed_of(*work));
    its.work = std::move(work);
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

std::vector<std::optional<std::uint64_t>> checksums_of(const WorkGraph& graph) {
    std::vector<std::optional<std::uint64_t>> out;
    if (graph.writes_host) return out;
    for (const WorkGraph::Node& node : graph.nodes) out.push_back(checksum_of(*node.work));
    return out;
}

}  // namespace ikat::emulator
