// SPDX-License-Identifier: Apache-2.0
#include "runtime/graph/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "codegen/support/digest.hpp"
#include "runtime/graph/device_graph.hpp"
#include "runtime/graph/recording.hpp"

namespace ikat::runtime {
/// What all GraphExecs of a Graph share, since they share its memory.
struct GraphLaunches final : Counted {
    std::map<std::string, std::uint64_t, std::less<>> numbers;  // that the device has in memory of the graph
    Reference<Sink> last_queue{};                               // that one was launched on
    std::optional<Event> end{};                                 // of that launch
    bool is_recorded = false;  // a launch is part of a recording, which writes numbers whenever it is done
};

namespace {

/// A Queue can be made of it.
struct Target {
    const Device& of;
    Reference<Sink> to;
    const Device& device() const { return of; }
    const Reference<Sink>& sink() const { return to; }
};

Reference<const GraphContents> record(const Device& device, const GraphFunction& function, GraphParameters& parameters,
                                      const Stream* stream, const StreamState* state, const std::source_location& where,
                                      Reference<const GraphContents> again = {}) {
    Recording recording(Reference(static_cast<DeviceState*>(device.sink().get())), Location::of(where),
                        std::move(again));
    if (state) recording.attach(*state);
    const Target target{device, recording.sink()};
    function(stream ? Queue(*stream, where) : Queue(target, where), parameters);
    return recording.finish();
}

}  // namespace

Graph::Graph(const Device& device, Reference<const GraphFunction> function, const Stream* stream,
             const std::source_location& where)
    : device_(device), function_(std::move(function)), parameters_(device.pool().object()) {
    const auto* const state = stream ? static_cast<const StreamState*>(&stream->sink()) : nullptr;
    contents_ = runtime::record(device_, *function_, parameters_, stream, state, where);
    launches_ = make_reference<GraphLaunches>();
}

std::size_t Graph::nodes() const { return contents_->all().size(); }
std::size_t Graph::edges() const {
    std::size_t edges = 0;
    for (const GraphContents::Entry* const entry : contents_->all()) edges += entry->after.size();
    return edges;
}

/// What a GraphExec is a handle of.
struct GraphExecState final : Counted {
    GraphExecState(const Graph& graph, Reference<const GraphFunction> function, const GraphParameters& parameters,
                   Reference<GraphLaunches> launches)
        : device(graph.device()),
          function(std::move(function)),
          contents(graph.contents()),
          parameters(parameters),
          asked(parameters),
          launches(std::move(launches)) {}

    void instantiate();
    std::vector<GraphNode> nodes_of(const GraphContents& of, std::uint32_t& next);
    void update(const std::source_location& where);
    void launch(const Queue& queue);

    const Device device;
    const Reference<const GraphFunction> function;
    Reference<const GraphContents> contents;
    GraphParameters parameters, asked;  // as recorded, and as set since
    bool has_changed = false;           // so that it must be recorded again
    const Reference<GraphLaunches> launches;
    std::vector<std::shared_ptr<const LoadedKernel>> kernels;
    Reference<DeviceGraph> graph{};
};

void GraphExecState::instantiate() {
    std::uint32_t next = 0;
    kernels.resize(contents->all().size());
    graph = device.backend().instantiate(nodes_of(*contents, next));
}

/// The nodes of the graph or of a body, which are counted from `next` on.
std::vector<GraphNode> GraphExecState::nodes_of(const GraphContents& of, std::uint32_t& next) {
    std::vector<GraphNode> out;
    for (const GraphContents::Entry& entry : of.entries) {
        std::shared_ptr<const LoadedKernel>& kernel = kernels[next++];
        GraphNode node;
        if (const GraphContents* const body = entry.body())
            node.work = GraphNode::Conditional{entry.control->is_loop, entry.control->condition.address(),
                                               nodes_of(*body, next), entry.work.where()};
        else
            node = lowered(entry.work, *contents->device, kernel);
        node.after = entry.after;
        out.push_back(std::move(node));
    }
    return out;
}

GraphExec Graph::instantiate(const std::source_location& where) const {
    auto state = make_reference<GraphExecState>(*this, function_, parameters_, launches_);
    try {
        state->instantiate();
    } catch (const Error& error) { throw error.located(Location::of(where)); }
    return GraphExec(std::move(state));
}

namespace {

bool is_same(const BufferPart& a, const BufferPart& b) {
    return a.bytes == b.bytes && bool(a.memory) == bool(b.memory) &&
           (!a.memory || (a.memory->device() == b.memory->device() && a.address() == b.address()));
}

bool is_same(const node::Copy::Place& a, const node::Copy::Place& b) {
    return is_same(a.part, b.part) && a.host == b.host && a.row_pitch == b.row_pitch && a.plane_pitch == b.plane_pitch;
}

bool is_same(const node::Copy& a, const node::Copy& b) {
    return is_same(a.to, b.to) && is_same(a.from, b.from) && a.bytes == b.bytes && a.rows == b.rows &&
           a.planes == b.planes;
}

bool is_same(const Argument& a, const Argument& b) {
    const auto has_late_address = [](const Argument& of) { return of.mapped && of.mapped->without_address; };
    if (has_late_address(a) || has_late_address(b)) return pack({&a, 1}) == pack({&b, 1});
    return a.type == b.type && a.bits == b.bits && is_same(a.part, b.part) && std::ranges::equal(a.raw, b.raw);
}

std::string text(const Dim3& extents) { return fmt::format("{} x {} x {}", extents.x, extents.y, extents.z); }

/// What a node of the driver cannot change about a copy or a fill: between what it copies, and in how many pieces.
std::array<std::uint64_t, 3> shape_of(const Node& work) {
    if (const auto* const copy = std::get_if<node::Copy>(&work.work))
        return {copy->bytes * copy->rows == 0 ? 0 : copy->planes, bool(copy->to.host), bool(copy->from.host)};
    if (const auto* const fill = std::get_if<node::Fill>(&work.work)) return {fill->to.bytes > 0, fill->element.size()};
    return {};
}

/// Compares two recordings of one function, which have as many nodes.
struct Comparison {
    std::vector<const GraphContents::Entry*> before, now;
    Location where;

    void check(std::size_t i) const;
    /// Whether a node is the same in both.
    bool is_same_work(std::size_t i) const;

private:
    [[noreturn]] void refuse(std::size_t i, const std::string& what) const {
        throw Error(Diagnostic{.where = where,
                               .message = fmt::format("the graph cannot be updated: node {}: {}", i, what),
                               .hint = "numbers that choose kernels, grids or memory cannot change: record a graph of "
                                       "its own for these",
                               .notes = {{now[i]->work.where(), "it was recorded here"}}});
    }
};

void Comparison::check(std::size_t i) const {
    const GraphContents::Entry &a = *before[i], &b = *now[i];
    const std::string was = words(a.work), is = words(b.work);
    const bool is_launch = std::holds_alternative<node::Launch>(b.work.work);
    if (a.work.work.index() != b.work.work.index() || (is_launch && was != is))
        refuse(i, fmt::format("{} instead of {}", is, was));
    if (shape_of(a.work) != shape_of(b.work)) refuse(i, fmt::format("{} instead of {}, in other pieces", is, was));
    if (a.after != b.after) refuse(i, fmt::format("{} comes after other nodes", is));
    if (a.control && b.control) {
        const std::size_t old = a.body()->entries.size(), count = b.body()->entries.size();
        if (old != count) refuse(i, fmt::format("the body has {} nodes instead of {}", count, old));
        if (a.control->is_loop != b.control->is_loop || !is_same(a.control->condition, b.control->condition))
            refuse(i, "a body that another condition decides about, or in another way");
    }
    const auto *const first = std::get_if<node::Launch>(&a.work.work),
                      *second = std::get_if<node::Launch>(&b.work.work);
    if (!first) return;
    const bool is_same_kernel = bool(first->kernel) == bool(second->kernel) &&
                                (first->kernel ? first->kernel->digest() == second->kernel->digest()
                                               : first->module.get() == second->module.get());
    if (!is_same_kernel) refuse(i, fmt::format("another {}", is));
    const Grid &old = first->grid, &grid = second->grid;
    if (old.blocks != grid.blocks)
        refuse(i, fmt::format("{} with {} blocks instead of {}", is, text(grid.blocks), text(old.blocks)));
    if (old != grid)
        refuse(i, fmt::format("{} with blocks of {} threads and {} bytes instead of {} and {}", is, text(grid.threads),
                              grid.dynamic_shared_bytes, text(old.threads), old.dynamic_shared_bytes));
}

bool Comparison::is_same_work(std::size_t i) const {
    const Node &a = before[i]->work, &b = now[i]->work;
    if (now[i]->control) return true;
    if (const auto* const first = std::get_if<node::Launch>(&a.work)) {
        const auto& second = std::get<node::Launch>(b.work);
        return first->parameters == second.parameters &&
               std::ranges::equal(first->arguments, second.arguments,
                                  [](const Argument& x, const Argument& y) { return is_same(x, y); });
    }
    if (const auto* const first = std::get_if<node::Fill>(&a.work)) {
        const auto& second = std::get<node::Fill>(b.work);
        return first->element == second.element && is_same(first->to, second.to);
    }
    if (const auto* const first = std::get_if<node::Copy>(&a.work))
        return is_same(*first, std::get<node::Copy>(b.work));
    const auto address = [](const Node& of) {
        const auto* const begin = std::get_if<node::Allocate>(&of.work);
        const auto* const end = std::get_if<node::Free>(&of.work);
        return begin ? begin->memory->address() : end ? end->memory->address() : 0;
    };
    return address(a) != 0 && address(a) == address(b);
}

}  // namespace

void GraphExecState::update(const std::source_location& where) {
    if (!has_changed) return;
    if (Recording::is_active())
        throw Error(Diagnostic{.where = Location::of(where),
                               .message = "a graph whose parameters were set is launched while another is recorded",
                               .hint = "call its update() before: it is recorded again then"});
    has_changed = false;
    GraphParameters tried = std::exchange(asked, parameters);
    Reference<const GraphContents> now =
        record(device, *function, tried, nullptr, nullptr, where, Reference<const GraphContents>(contents));
    const Comparison comparison{contents->all(), now->all(), Location::of(where)};
    if (comparison.now.size() != comparison.before.size())
        throw Error(Diagnostic{.where = comparison.where,
                               .message = fmt::format("the graph cannot be updated: it has {} nodes instead of {}",
                                                      comparison.now.size(), comparison.before.size()),
                               .hint = "numbers that choose kernels, grids or memory cannot change: record a graph of "
                                       "its own for these"});
    std::vector<std::pair<std::uint32_t, GraphNode>> changes;
    for (std::uint32_t i = 0; i < comparison.now.size(); ++i) {
        comparison.check(i);
        if (!comparison.is_same_work(i))
            changes.emplace_back(i, lowered(comparison.now[i]->work, *now->device, kernels[i]));
    }
    for (auto& [node, work] : changes) graph->update(node, std::move(work));
    contents = std::move(now);
    parameters = tried;
    asked = std::move(tried);
}

/// On another queue than before it waits for the launch there; numbers that changed are written first. A recording or a
/// Recorder does it more than once, or never.
void GraphExecState::launch(const Queue& queue) {
    Reference<Sink> to = queue.sink();
    const bool is_stream = dynamic_cast<const StreamState*>(to.get()) != nullptr;
    const bool is_done = !Recording::is_active() && (is_stream || to.get() == device.sink().get());
    GraphLaunches& all = *launches;
    all.is_recorded = all.is_recorded || !is_done;
    if (is_done && all.end && all.last_queue.get() != to.get()) queue.wait(*all.end);
    for (const GraphParameter& parameter : asked.list()) {
        if (parameter.kind != GraphParameter::Kind::DeviceNumber) continue;
        const auto has = all.numbers.find(parameter.name);
        if (!all.is_recorded && has != all.numbers.end() && has->second == parameter.bits) continue;
        std::vector<std::byte> element(parameter.bytes);
        std::memcpy(element.data(), &parameter.bits, element.size());
        queue.submit({node::Fill{parameter.part, std::move(element), queue.where()}});
        if (is_done) all.numbers[parameter.name] = parameter.bits;
    }
    queue.submit({node::Graph{graph, contents, queue.where()}});
    if (!is_done) return;
    all.end.reset();
    if (!is_stream) return;
    all.end = queue.record();
    all.last_queue = std::move(to);
}

void GraphExec::launch(const Queue& queue) const {
    state_->update(queue.source_location());
    state_->launch(queue);
}

void GraphExec::update(const std::source_location& where) const { state_->update(where); }

void GraphExec::set_number(std::string_view name, const HostScalar& value, const Location& where) const {
    GraphExecState& its = *state_;
    GraphParameter& parameter = its.asked.find(name, where);
    const std::uint64_t before = parameter.bits;
    its.asked.set(parameter, value, where);
    if (parameter.bits == before) return;
    if (parameter.kind == GraphParameter::Kind::DeviceNumber) {
        its.parameters.find(name, where).bits = parameter.bits;
    } else {
        its.has_changed = true;
    }
}

void GraphExec::set_buffer(std::string_view name, ir::Type type, std::uint32_t bytes, const BufferPart& part,
                           const Location& where) const {
    GraphExecState& its = *state_;
    GraphParameter& parameter = its.asked.find(name, where);
    const BufferPart before = parameter.part;
    its.asked.set(parameter, type, bytes, part, where);
    if (!is_same(before, parameter.part)) its.has_changed = true;
}

}  // namespace ikat::runtime
