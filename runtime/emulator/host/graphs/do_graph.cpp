// SPDX-License-Identifier: Apache-2.0
// How the nodes of a graph are done: one at a time, in an order that the seed chooses among those that the graph
// allows. A body of a conditional node is done as a graph of its own; what it touches counts as the node's.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/emulator/core/checks/faults.hpp"
#include "runtime/emulator/host/graphs/work_graph.hpp"
#include "runtime/emulator/host/host_device.hpp"
#include "runtime/emulator/host/trace.hpp"

namespace ikat::emulator {

/// A graph while it is done, or a body of one, without the lock.
class HostDevice::Replay {
public:
    Replay(HostDevice& device, const Piece& piece)
        : Replay(device, piece, *std::get<work::Graph>(piece.work).graph, nullptr, 0, 0) {}

    void nodes();
    /// The first failure, and what the launches have counted.
    Done all{};

private:
    /// Of a body: the node that has it, and the number from which its nodes are counted.
    Replay(HostDevice& device, const Piece& piece, const WorkGraph& graph, Replay* outer, std::uint32_t of,
           std::uint32_t first)
        : device_(device),
          piece_(piece),
          asked_(std::get<work::Graph>(piece.work)),
          graph_(graph),
          outer_(outer),
          of_(of),
          first_(first),
          meets_others_(outer ? outer->is_compared_ : device.is_compared(piece)),
          has_branches_(graph.lanes > 1),
          is_compared_(meets_others_ || (has_branches_ && device.about_races_ != Action::Off)),
          lanes_(graph.lanes) {}

    void node(std::uint32_t number);
    /// Does a body of a node, unless it is null, and again while its condition asks for that.
    void body(std::uint32_t number, const work::Conditional& its, const WorkGraph* body);
    /// What becomes of a node alone.
    Done perform(std::uint32_t number);
    Done do_work(const Work& work, GridsInFlight& grids);
    /// What others touch, and what other branches do.
    std::optional<Diagnostic> compare(std::uint32_t number, const std::shared_ptr<const Deed>& deed,
                                      std::vector<TouchedBytes> touched);
    std::optional<Diagnostic> compare_with_streams(const std::shared_ptr<const Deed>& deed,
                                                   std::vector<TouchedBytes> touched);
    void keep_failure(std::exception_ptr failure, const Location& where, std::string_view what);
    KernelFailure too_many_rounds(const work::Conditional& loop) const;
    Replay& outermost() { return outer_ ? outer_->outermost() : *this; }

    struct Lane {
        GridsInFlight grids{};
        std::optional<std::uint32_t> before{};  // a launch, which the next one may overlap if it comes after that alone
    };
    HostDevice& device_;
    const Piece& piece_;
    const work::Graph& asked_;
    const WorkGraph& graph_;
    Replay* const outer_;
    const std::uint32_t of_, first_;
    const bool meets_others_, has_branches_, is_compared_;
    StreamRaces branches_;
    std::vector<Lane> lanes_;
    std::uint64_t rounds_ = 0;  // of all loops, in the outermost one
};

void HostDevice::Replay::nodes() {
    std::vector<std::uint32_t> order;
    if (has_branches_) {
        const Lock lock(device_.work_mutex_);
        order = graph_.in_order(device_.order_);
    }
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) node(order.empty() ? i : order[i]);
}

void HostDevice::Replay::node(std::uint32_t number) {
    const Work& work = *graph_.nodes[number].work;
    Done done = perform(number);
    if (done.failure) {
        const auto* const launch = std::get_if<work::Launch>(&work);
        keep_failure(std::move(done.failure), launch ? launch->where : Location(), "recorded here");
    } else if (const auto* const conditional = std::get_if<work::Conditional>(&work)) {
        body(number, *conditional, conditional->chosen(done.condition));
    }
}

HostDevice::Done HostDevice::Replay::perform(std::uint32_t number) {
    const WorkGraph::Node& node = graph_.nodes[number];
    const Work& work = *node.work;
    Lane& lane = lanes_[node.lane];
    if (!lane.before || node.after.size() != 1 || node.after.front() != *lane.before) lane.grids.clear();
    lane.before = std::holds_alternative<work::Launch>(work) ? std::optional(number) : std::nullopt;
    const Trace::Time begin = device_.options_.trace ? Trace::now() : Trace::Time{};
    std::optional<Diagnostic> race;
    if (!asked_.checksums.empty())
        race = device_.check_host_memory(work, asked_.checksums[first_ + node.number], piece_.stream_number);
    Done done = do_work(work, lane.grids);
    if (device_.options_.trace)
        device_.options_.trace->done(device_.traced_as_,
                                     {.stream = piece_.stream, .work = work, .stream_number = piece_.stream_number},
                                     begin, done.statistics.global_bytes_read, done.statistics.global_bytes_written);
    all.statistics.global_bytes_read += done.statistics.global_bytes_read;
    all.statistics.global_bytes_written += done.statistics.global_bytes_written;
    if (auto found = compare(number, node.deed, std::move(done.touched)); found && !race) race = std::move(found);
    device_.tell(std::move(race), done.failure);
    return done;
}

KernelFailure HostDevice::Replay::too_many_rounds(const work::Conditional& loop) const {
    const FaultInfo& fault = info(FaultCode::GraphBudget);
    return KernelFailure(
        std::vector{Diagnostic{.where = loop.where,
                               .message = fmt::format("the loops of a graph have done {} rounds, and this one goes on",
                                                      device_.options_.graph_rounds),
                               .hint = fault.hint,
                               .code = fault.name}});
}

void HostDevice::Replay::body(std::uint32_t number, const work::Conditional& its, const WorkGraph* body) {
    std::uint32_t first = first_ + graph_.nodes[number].number + 1;
    for (const auto& each : its.bodies) {
        if (each.get() == body) break;
        first += each->total;
    }
    for (std::uint64_t round = 1; body; ++round) {
        const bool is_loop = its.kind == work::Conditional::Kind::While;
        if (is_loop && ++outermost().rounds_ > device_.options_.graph_rounds)
            return keep_failure(std::make_exception_ptr(too_many_rounds(its)), {}, {});
        Replay inner(device_, piece_, *body, this, number, first);
        inner.nodes();
        all.statistics.global_bytes_read += inner.all.statistics.global_bytes_read;
        all.statistics.global_bytes_written += inner.all.statistics.global_bytes_written;
        if (inner.all.failure) {  // what would set the condition may be what has failed
            keep_failure(std::move(inner.all.failure), its.where,
                         is_loop ? fmt::format("in round {} of this loop", round) : "in the body of this node");
            return;
        }
        if (!is_loop) return;
        Done again = perform(number);
        if (again.failure) return keep_failure(std::move(again.failure), {}, {});
        body = its.chosen(again.condition);
    }
}

HostDevice::Done HostDevice::Replay::do_work(const Work& work, GridsInFlight& grids) {
    const bool is_call = std::holds_alternative<work::HostCall>(work);
    const bool takes_turns = asked_.graph->calls_program && !is_call;
    // The thread of host calls does a graph that has some: as a device, except while one is made.
    if (takes_turns) {
        Lock lock(device_.work_mutex_);
        device_.changed_.wait(lock, [&] { return !device_.is_busy_; });
        device_.is_busy_ = true;
    }
    Done done = device_.do_work(work, &grids, !is_call && is_compared_);
    if (takes_turns) {
        const Lock lock(device_.work_mutex_);
        device_.is_busy_ = false;
        device_.changed_.notify_all();
    }
    return done;
}

std::optional<Diagnostic> HostDevice::Replay::compare(std::uint32_t number, const std::shared_ptr<const Deed>& deed,
                                                      std::vector<TouchedBytes> touched) {
    if (touched.empty()) return {};
    std::optional<Diagnostic> race;
    if (has_branches_) {
        const WorkGraph::Node& node = graph_.nodes[number];
        const StreamRaces::Point its{WorkGraph::number_of(number), WorkGraph::stream_of(node.lane), *node.known,
                                     node.lane + 1};
        const auto in_branch = [](const StreamRaces::Race::Side& side, bool) {
            return fmt::format("in branch {} of a graph", side.place);
        };
        if (const auto found = branches_.add(its, deed, touched)) race = device_.finding(*found, in_branch);
    }
    if (meets_others_)
        if (auto found = outer_ ? outer_->compare(of_, deed, std::move(touched))
                                : compare_with_streams(deed, std::move(touched)))
            race = std::move(found);
    return race;
}

std::optional<Diagnostic> HostDevice::Replay::compare_with_streams(const std::shared_ptr<const Deed>& deed,
                                                                   std::vector<TouchedBytes> touched) {
    const Lock lock(device_.work_mutex_);
    return device_.compare(piece_, deed, std::move(touched));
}

void HostDevice::Replay::keep_failure(std::exception_ptr failure, const Location& where, std::string_view what) {
    if (all.failure) return;
    if (where.known()) add_note(failure, {where, std::string(what)});
    if (!outer_ && asked_.where.known())
        add_note(failure, {asked_.where, piece_.stream_number ? fmt::format("its graph was launched here, on stream {}",
                                                                            piece_.stream_number)
                                                              : "its graph was launched here"});
    all.failure = std::move(failure);
}

HostDevice::Done HostDevice::perform_graph(Lock& lock, const Piece& piece) {
    lock.unlock();
    Replay replay(*this, piece);
    replay.nodes();
    return std::move(replay.all);
}

/// What the condition is, though nothing may have set it, if the check is off or only warns.
std::uint32_t HostDevice::perform(const work::Conditional& node) {
    constexpr FaultCode code = FaultCode::UndefinedCondition;
    std::uint32_t out = 0;
    const Memory& space = memory_.space();
    space.read(node.condition, std::as_writable_bytes(std::span(&out, 1)));
    const Action action = action_about(code, options_, origin_);
    if (action == Action::Off || space.unwritten(node.condition, sizeof out).count == 0) return out;
    Diagnostic diagnostic{.severity = severity_of(action),
                          .where = node.where,
                          .message = "a conditional node of a graph, and nothing has set its condition",
                          .hint = info(code).hint,
                          .code = info(code).name};
    if (action == Action::Error) throw KernelFailure(std::vector{std::move(diagnostic)});
    if (is_new(options_, "a condition", diagnostic)) options_.warning(diagnostic);
    return out;
}

}  // namespace ikat::emulator
