// SPDX-License-Identifier: Apache-2.0
// Work that a stream is given as one piece, any number of times: nodes, and what each comes after. A piece has the
// graph as it was when it was enqueued; one that changes is a new graph, which shares the nodes that stay.
//
//     WorkGraph graph = make_graph({{.work = copy}, {.work = launch, .after = {0}}});
//     device.enqueue(stream, work::Graph{std::make_shared<const WorkGraph>(std::move(graph))});
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/emulator/host/graphs/lanes.hpp"
#include "runtime/emulator/host/stream_races.hpp"
#include "runtime/emulator/host/work_queue.hpp"

namespace ikat::emulator {

struct WorkGraph {
    /// It is a piece of work as those of streams are: of its lane, by a number, and with what it knows.
    struct Node {
        std::shared_ptr<const Work> work;
        std::vector<std::uint32_t> after{};  // nodes before it in the list
        std::uint32_t lane = 0;
        KnownWork known{};
        std::shared_ptr<const Deed> deed{};  // what it is called
        std::uint32_t number = 0;            // among those of the graph and, after their nodes, of its bodies

        /// With what it is called.
        void set_work(std::shared_ptr<const Work> to);
    };
    std::vector<Node> nodes;
    std::uint32_t lanes = 0;
    std::uint32_t total = 0;     // nodes, those of bodies among them
    bool writes_host = false;    // a node may write memory of the host
    bool calls_program = false;  // a node is a function of the program

    /// A lane as a stream, and a node as a piece of it.
    static StreamId stream_of(std::uint32_t lane) { return StreamId(lane + 1); }
    static std::uint64_t number_of(std::uint32_t node) { return node + 1; }

    /// An order that the graph allows: the numbers of all nodes.
    std::vector<std::uint32_t> in_order(WorkOrder& order) const;
};

/// Of nodes with work, and with what they come after; the rest is filled in.
WorkGraph make_graph(std::vector<WorkGraph::Node> nodes);
/// Gives a node by its number, perhaps of a body, other work, which has the same bodies.
void replace(WorkGraph& graph, std::uint32_t number, std::shared_ptr<const Work> work);

/// The same for memory that copies from the host read: one for each node, or nothing if a node writes there.
std::vector<std::optional<std::uint64_t>> checksums_of(const WorkGraph& graph);

}  // namespace ikat::emulator
