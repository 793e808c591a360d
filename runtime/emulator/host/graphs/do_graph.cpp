// SPDX-License-Identifier: Apache-2.0
// How the nodes of a graph are done: one at a time, in an order that the seed chooses among those that the graph
// allows.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/emulator/host/graphs/work_graph.hpp"
#include "runtime/emulator/host/host_device.hpp"
#include "runtime/emulator/host/trace.hpp"

namespace ikat::emulator {

/// A graph while it is done, without the lock.
class HostDevice::Replay {
public:
    Replay(HostDevice& device, const Piece& piece)
        : device_(device),
          piece_(piece),
          asked_(std::get<work::Graph>(piece.work)),
          graph_(*asked_.graph),
          meets_others_(device.is_compared(piece)),
          has_branches_(graph_.lanes > 1) {}

    void node(std::uint32_t number);
    /// The first failure, and what the launches have counted.
    Done all{};

private:
    Done do_work(const Work& work);
    /// What others touch, and what other branches do.
    std::optional<Diagnostic> compare(std::uint32_t number, std::vector<TouchedBytes> touched);
    void keep_failure(const Work& work, std::exception_ptr failure);

    HostDevice& device_;
    const Piece& piece_;
    const work::Graph& asked_;
    const WorkGraph& graph_;
    const bool meets_others_, has_branches_;
    StreamRaces branches_;
    GridsInFlight grids_;
    std::optional<std::uint32_t> before_;  // a launch, which the next one may overlap if it comes after that alone
};

void HostDevice::Replay::node(std::uint32_t number) {
    const WorkGraph::Node& node = graph_.nodes[number];
    const Work& work = *node.work;
    const bool is_launch = std::holds_alternative<work::Launch>(work);
    if (!before_ || node.after.size() != 1 || node.after.front() != *before_) grids_.clear();
    before_ = is_launch ? std::optional(number) : std::nullopt;
    const Trace::Time begin = device_.options_.trace ? Trace::now() : Trace::Time{};
    std::optional<Diagnostic> race;
    if (!asked_.checksums.empty())
        race = device_.check_host_memory(work, asked_.checksums[number], piece_.stream_number);
    Done done = do_work(work);
    if (device_.options_.trace)
        device_.options_.trace->done(device_.traced_as_,
                                     {.stream = piece_.stream, .work = work, .stream_number = piece_.stream_number},
                                     begin, done.statistics.global_bytes_read, done.statistics.global_bytes_written);
    all.statistics.global_bytes_read += done.statistics.global_bytes_read;
    all.statistics.global_bytes_written += done.statistics.global_bytes_written;
    if (auto found = compare(number, std::move(done.touched)); found && !race) race = std::move(found);
    device_.tell(std::move(race), done.failure);
    if (done.failure && !all.failure) keep_failure(work, std::move(done.failure));
}

HostDevice::Done HostDevice::Replay::do_work(const Work& work) {
    const bool is_call = std::holds_alternative<work::HostCall>(work), takes_turns = graph_.calls_program && !is_call;
    // The thread of host calls does a graph that has some: as a device, except while one is made.
    if (takes_turns) {
        Lock lock(device_.work_mutex_);
        device_.changed_.wait(lock, [&] { return !device_.is_busy_; });
        device_.is_busy_ = true;
    }
    Done done = device_.do_work(work, &grids_,
                                !is_call && (meets_others_ || (has_branches_ && device_.about_races_ != Action::Off)));
    if (takes_turns) {
        const Lock lock(device_.work_mutex_);
        device_.is_busy_ = false;
        device_.changed_.notify_all();
    }
    return done;
}

std::optional<Diagnostic> HostDevice::Replay::compare(std::uint32_t number, std::vector<TouchedBytes> touched) {
    if (touched.empty()) return {};
    const WorkGraph::Node& node = graph_.nodes[number];
    std::optional<Diagnostic> race;
    if (has_branches_) {
        const StreamRaces::Point its{WorkGraph::number_of(number), WorkGraph::stream_of(node.lane), *node.known,
                                     node.lane + 1};
        const auto in_branch = [](unsigned branch) { return fmt::format("in branch {} of a graph", branch); };
        if (const auto found = branches_.add(its, node.deed, touched)) race = device_.finding(*found, in_branch);
    }
    if (meets_others_) {
        const Lock lock(device_.work_mutex_);
        if (auto found = device_.compare(piece_, node.deed, std::move(touched))) race = std::move(found);
    }
    return race;
}

void HostDevice::Replay::keep_failure(const Work& work, std::exception_ptr failure) {
    if (const auto* const launch = std::get_if<work::Launch>(&work); launch && launch->where.known())
        add_note(failure, {launch->where, "recorded here"});
    if (asked_.where.known())
        add_note(failure, {asked_.where, piece_.stream_number ? fmt::format("its graph was launched here, on stream {}",
                                                                            piece_.stream_number)
                                                              : "its graph was launched here"});
    all.failure = std::move(failure);
}

HostDevice::Done HostDevice::perform_graph(Lock& lock, const Piece& piece) {
    const WorkGraph& graph = *std::get<work::Graph>(piece.work).graph;
    std::vector<std::uint32_t> order;
    if (graph.lanes > 1) order = graph.in_order(order_);
    lock.unlock();
    Replay replay(*this, piece);
    for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) replay.node(order.empty() ? i : order[i]);
    return std::move(replay.all);
}

}  // namespace ikat::emulator
