// SPDX-License-Identifier: Apache-2.0
#include "runtime/graph/recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "codegen/kernel/kernel_info.hpp"
#include "runtime/exec/parts.hpp"

namespace ikat::runtime {
namespace {

using Nodes = std::vector<std::uint32_t>;  // ascending

/// The recording of this thread.
thread_local Recording::State* current = nullptr;

[[noreturn]] void refuse(const Location& where, std::string message, const char* hint) {
    throw Error(Diagnostic{.where = where, .message = std::move(message), .hint = hint});
}

void join(Nodes& to, const Nodes& from) {
    Nodes all;
    std::ranges::set_union(to, from, std::back_inserter(all));
    to = std::move(all);
}

template <class... W>
bool is_one_of(const Node& work) {
    return (std::holds_alternative<W>(work.work) || ...);
}

}  // namespace

Location Node::where() const {
    return std::visit(
        [](const auto& its) {
            if constexpr (requires { its.where; })
                return its.where;
            else
                return Location();
        },
        work);
}

namespace {

void list(const GraphContents& graph, std::vector<const GraphContents::Entry*>& out) {
    for (const GraphContents::Entry& entry : graph.entries) {
        out.push_back(&entry);
        if (const GraphContents* const body = entry.body()) list(*body, out);
    }
}

}  // namespace

std::vector<const GraphContents::Entry*> GraphContents::all() const {
    std::vector<const Entry*> out;
    list(*this, out);
    return out;
}

/// What its branches share. A body has a state of its own, and the memory of the recording.
class Recording::State final : public Counted {
public:
    State(Reference<DeviceState> device, const Location& at, Reference<const GraphContents> again, State* outer = {})
        : where(at), outer_(outer), again_(std::move(again)) {
        contents->device = std::move(device);
    }

    void take(const Node& work, Nodes& last);
    /// Whether the event has been recorded in it.
    bool has(const EventObject& event) const { return points_.contains(&event); }
    /// Throws Error if a branch is not joined to the first one.
    void check_joined(const Nodes& first) const;
    BufferPart add_condition(std::uint32_t number, const Location& at, Nodes& last);
    void add_body(const GraphContents::Control& control, const Location& at, const StreamState* stream, Nodes& last,
                  const std::function<void(const Reference<Sink>&)>& function);

    struct Branch;
    const Location where;  // of the recording in the program
    /// Nothing is added any more. Branches refer to it, so it forgets them.
    void close() {
        is_open = false;
        std::exchange(streams, {}).clear();
        std::exchange(bodies_, {}).clear();
        points_.clear();
    }

    bool is_open = true;
    Reference<GraphContents> contents = make_reference<GraphContents>();
    std::map<const StreamState*, Reference<Branch>> streams;

private:
    void add(const Node& work, Nodes& last) {
        contents->entries.push_back({work, last});
        last = {std::uint32_t(contents->entries.size() - 1)};
    }
    void add(const GraphContents& graph, Nodes& last);
    void refuse_wait_for(const node::Wait& wait) const;
    /// The memory is the graph's for as long as it exists, at one address.
    void allocate(MemoryBlock& memory, const Nodes& last);
    /// On a GPU: memory of as many bytes whose buffer has ended before what comes after these nodes, or null. On the
    /// emulator each buffer has its own, with its name and all checks.
    Reference<MemoryBlock> unused_memory(std::size_t bytes, const Nodes& last);
    void end(const MemoryBlock& memory, std::uint32_t node);
    bool is_before(std::uint32_t node, const Nodes& last) const;
    /// Memory of the recording that is next.
    Reference<MemoryBlock> next_memory(std::size_t bytes, std::string_view name);
    void hold(const Node& work) const;
    State& outermost() { return outer_ ? outer_->outermost() : *this; }
    const State& outermost() const { return outer_ ? outer_->outermost() : *this; }

    struct Point {
        Reference<const EventObject> event;
        Nodes nodes;
    };
    struct End {
        Node work;
        Nodes* last;
    };
    State* const outer_;                                        // of a body, which is recorded while that waits
    std::vector<End> ends_;                                     // of buffers, in a body, for which they have to wait
    std::map<const MemoryBlock*, Reference<MemoryBlock>> own_;  // of buffers, the memory that they have here
    struct Unused {
        Reference<MemoryBlock> memory;
        std::uint32_t end;  // the node that ends its last buffer
    };
    std::vector<Unused> unused_;
    std::map<const EventObject*, Point> points_;  // their last recordings
    // Of the outermost one:
    std::vector<Reference<Sink>> bodies_;  // that have ended, whose queues the program may have kept
    std::set<const MemoryBlock*> over_;    // memory that has been freed
    const Reference<const GraphContents> again_;
};

/// Where the queue of a recording puts its work.
struct Recording::State::Branch final : Sink {
    explicit Branch(Reference<State> of, Reference<StreamState> is = {})
        : state(std::move(of)), stream(std::move(is)) {}
    void take(const Node& work) override { state->take(work, last); }
    bool is_asynchronous() const override { return true; }

    const Reference<State> state;
    const Reference<StreamState> stream;  // that it is, if it is one
    Nodes last;                           // what its next node comes after
};

void Recording::State::take(const Node& work, Nodes& last) {
    if (!is_open) {
        if (is_one_of<node::Free>(work)) return;  // the graph has the memory
        refuse(work.where().known() ? work.where() : where, "a queue of a recording is given work after it has ended",
               "the queue must not outlive the function that was recorded");
    }
    if (current && current != this) {
        if (is_one_of<node::Free>(work)) return ends_.push_back({work, &last});
        refuse(work.where().known() ? work.where() : where,
               "a queue is given work while a body of its graph is recorded", "give it to the queue of the body");
    }
    if (const auto* const record = std::get_if<node::Record>(&work.work)) {
        record->event->is_of_graph = true;
        points_[record->event.get()] = {record->event, last};
    } else if (const auto* const wait = std::get_if<node::Wait>(&work.work)) {
        const auto found = points_.find(wait->event.get());
        if (found == points_.end()) refuse_wait_for(*wait);
        join(last, found->second.nodes);
    } else if (const auto* const graph = std::get_if<node::Graph>(&work.work)) {
        add(*graph->contents, last);
    } else {
        if (const auto* const allocation = std::get_if<node::Allocate>(&work.work)) allocate(*allocation->memory, last);
        hold(work);
        add(work, last);
        if (const auto* const its = std::get_if<node::Free>(&work.work)) end(*its->memory, last.front());
    }
}

void Recording::State::refuse_wait_for(const node::Wait& wait) const {
    const Location& at = wait.where.known() ? wait.where : where;
    for (const State* outer = outer_; outer; outer = outer->outer_)
        if (outer->has(*wait.event))
            refuse(at, "a body of a graph waits for an event from outside of it",
                   "let the queue wait for it before the body");
    refuse(at, "what is recorded waits for an event that was not recorded in it",
           "let the stream that launches the graph wait for it, before the launch");
}

void Recording::State::check_joined(const Nodes& first) const {
    const std::vector<GraphContents::Entry>& entries = contents->entries;
    std::vector<bool> is_joined(entries.size());
    for (const std::uint32_t last : first) is_joined[last] = true;
    for (std::size_t i = entries.size(); i-- > 0;) {
        // A buffer may end where nobody waits: what uses it is before that.
        if (!is_joined[i] && is_one_of<node::Free>(entries[i].work)) continue;
        if (!is_joined[i])
            refuse(entries[i].work.where().known() ? entries[i].work.where() : where,
                   "work of a stream that the recording does not wait for",
                   outer_ ? "let the queue of the body wait for it before that ends: body.wait(stream.record())"
                          : "let the queue wait for it before the recording ends: queue.wait(stream.record())");
        for (const std::uint32_t before : entries[i].after) is_joined[before] = true;
    }
}

BufferPart Recording::State::add_condition(std::uint32_t number, const Location& at, Nodes& last) {
    Reference<MemoryBlock> memory = next_memory(sizeof number, "condition");
    memory->keep();
    const BufferPart part{memory, 0, sizeof number};
    outermost().contents->memory.push_back(std::move(memory));
    const auto bytes = std::as_bytes(std::span(&number, 1));
    take({node::Fill{part, {bytes.begin(), bytes.end()}, at}}, last);
    return part;
}

void Recording::State::add_body(const GraphContents::Control& control, const Location& at, const StreamState* stream,
                                Nodes& last, const std::function<void(const Reference<Sink>&)>& function) {
    if (current != this)
        refuse(at, "a queue is given a body while another body of its graph is recorded",
               "give it to the queue of the other body");
    const bool is_own = std::ranges::any_of(outermost().contents->memory, [&](const auto& memory) {
        return memory.get() == control.condition.memory.get();
    });
    if (!is_own)
        refuse(at, "a body of a graph has a condition of another graph, or of an earlier recording",
               "make it in the function that is recorded: graph_condition(queue, 1)");
    const auto body = make_reference<State>(contents->device, at, Reference<const GraphContents>(), this);
    const auto first = make_reference<Branch>(body);
    outermost().bodies_.push_back(first);
    if (stream) body->streams.emplace(stream, first);
    {
        struct Inside {
            State &body, &outer;
            ~Inside() {
                current = &outer;
                body.close();
            }
        };
        current = body.get();
        const Inside inside{*body, *this};
        function(first);
        body->check_joined(first->last);
    }
    contents->entries.push_back({{node::Graph{{}, body->contents, at}}, last, control});
    last = {std::uint32_t(contents->entries.size() - 1)};
    for (const End& end : std::exchange(ends_, {})) {
        join(*end.last, last);
        take(end.work, *end.last);
    }
}

/// The nodes of a graph that is launched.
void Recording::State::add(const GraphContents& graph, Nodes& last) {
    const auto first = std::uint32_t(contents->entries.size());
    std::set<std::uint32_t> ends;
    for (const GraphContents::Entry& entry : graph.entries) {
        GraphContents::Entry added{entry.work, entry.after.empty() ? last : entry.after, entry.control};
        if (!entry.after.empty())
            for (std::uint32_t& before : added.after) ends.erase(before += first);
        ends.insert(std::uint32_t(contents->entries.size()));
        contents->entries.push_back(std::move(added));
    }
    std::vector<Reference<MemoryBlock>>& all = outermost().contents->memory;
    all.insert(all.end(), graph.memory.begin(), graph.memory.end());
    if (!ends.empty()) last.assign(ends.begin(), ends.end());
}

Reference<MemoryBlock> Recording::State::next_memory(std::size_t bytes, std::string_view name) {
    const State& its = outermost();
    const std::size_t number = its.contents->memory.size();
    if (!its.again_) return make_reference<MemoryBlock>(contents->device->pool, bytes, name);
    const std::vector<Reference<MemoryBlock>>& before = its.again_->memory;
    if (number >= before.size() || before[number]->bytes() != bytes)
        refuse(where, fmt::format("the graph allocates other memory than before: {} bytes of '{}'", bytes, name),
               "a number that decides about memory cannot change: record another graph");
    return before[number];
}

void Recording::State::allocate(MemoryBlock& memory, const Nodes& last) {
    Reference<MemoryBlock> its;
    if (!outermost().again_) its = unused_memory(memory.bytes(), last);
    if (!its) its = next_memory(memory.bytes(), memory.name());
    memory.share(its);
    own_[&memory] = its;
    outermost().contents->memory.push_back(std::move(its));
}

Reference<MemoryBlock> Recording::State::unused_memory(std::size_t bytes, const Nodes& last) {
    const auto found = std::ranges::find_if(
        unused_, [&](const Unused& each) { return each.memory->bytes() == bytes && is_before(each.end, last); });
    if (found == unused_.end()) return {};
    Reference<MemoryBlock> out = std::move(found->memory);
    unused_.erase(found);
    return out;
}

void Recording::State::end(const MemoryBlock& memory, std::uint32_t node) {
    outermost().over_.insert(&memory);
    const auto its = own_.find(&memory);
    if (its == own_.end()) return;
    if (contents->device->backend->properties().kind == DeviceKind::Cuda)
        unused_.push_back({std::move(its->second), node});
    own_.erase(its);
}

bool Recording::State::is_before(std::uint32_t node, const Nodes& last) const {
    std::set<std::uint32_t> open(last.begin(), last.end());  // those before a node have lower numbers
    while (!open.empty() && *open.rbegin() > node) {
        const std::vector<std::uint32_t>& after = contents->entries[*open.rbegin()].after;
        open.erase(std::prev(open.end()));
        open.insert(after.begin(), after.end());
    }
    return !open.empty() && *open.rbegin() == node;
}

void Recording::State::hold(const Node& work) const {
    each_part(work, [&](const BufferPart& part) {
        if (outermost().over_.contains(part.memory.get()))
            refuse(work.where().known() ? work.where() : where,
                   fmt::format("what is recorded uses buffer '{}', which has been freed in the recording",
                               part.memory->name()),
                   freed_hint);
        part.memory->keep();
    });
}

Recording::Recording(Reference<DeviceState> device, const Location& where, Reference<const GraphContents> again)
    : state_(make_reference<State>(std::move(device), where, std::move(again))),
      sink_(make_reference<State::Branch>(state_)) {
    if (current)
        throw Error(Diagnostic{.where = where,
                               .message = "a graph is recorded while this thread records another",
                               .hint = "record it before, and launch it on the queue of the other",
                               .notes = {{current->where, "the other is recorded here"}}});
    current = state_.get();
}

Recording::~Recording() {
    if (current == state_.get()) current = nullptr;
    state_->close();
}

void Recording::attach(const StreamState& stream) {
    state_->streams.emplace(&stream, Reference<State::Branch>(static_cast<State::Branch*>(sink_.get())));
}

Reference<const GraphContents> Recording::finish() {
    current = nullptr;
    state_->close();
    state_->check_joined(static_cast<const State::Branch&>(*sink_).last);
    return state_->contents;
}

bool Recording::is_active() { return current != nullptr; }

Sink* Recording::branch_of(StreamState& stream, const Node& work) {
    if (!current) return nullptr;
    if (const auto found = current->streams.find(&stream); found != current->streams.end()) return found->second.get();
    const auto* const wait = std::get_if<node::Wait>(&work.work);
    if (wait && stream.device.get() == current->contents->device.get() && current->has(*wait->event))
        return current->streams.emplace(&stream, make_reference<State::Branch>(Reference(current), Reference(&stream)))
            .first->second.get();
    if (is_one_of<node::Allocate, node::Free>(work)) return nullptr;
    refuse(work.where().known() ? work.where() : current->where,
           "a stream that is no part of a recording is given work while a graph is recorded",
           "it becomes one by waiting for an event of the recording: stream.wait(queue.record())");
}

/// What the branch comes after next, and the stream that it is given by; throws Error if it is none.
static std::pair<Recording::State::Branch*, const StreamState*> branch_at(Sink& sink, const Location& where) {
    const auto* const stream = dynamic_cast<const StreamState*>(&sink);
    auto* branch = dynamic_cast<Recording::State::Branch*>(&sink);
    if (stream && current)
        if (const auto found = current->streams.find(stream); found != current->streams.end())
            branch = found->second.get();
    if (!branch || !branch->state->is_open)
        refuse(where, "a condition or a body of a graph, where no graph is recorded",
               "call it with the queue of a recording: Graph::record(device, [&](const Queue& q) { … })");
    return {branch, stream};
}

BufferPart Recording::add_condition(Sink& sink, std::uint32_t number, const Location& where) {
    State::Branch& branch = *branch_at(sink, where).first;
    return branch.state->add_condition(number, where, branch.last);
}

void Recording::add_body(Sink& sink, const GraphContents::Control& control, const Location& where,
                         const std::function<void(const Reference<Sink>&)>& function) {
    const auto [branch, stream] = branch_at(sink, where);
    branch->state->add_body(control, where, stream, branch->last, function);
}

void Recording::refuse_other(const Node& work) {
    if (!current || is_one_of<node::Allocate, node::Free>(work)) return;
    refuse(work.where().known() ? work.where() : current->where,
           "a device is given work, for which it would wait, while a graph is recorded",
           "give it to the queue of the recording");
}

void Recording::refuse_wait(const char* what, const Location& where) {
    if (current)
        refuse(where.known() ? where : current->where, fmt::format("{} while a graph is recorded", what),
               "nothing has run yet: it belongs before the recording, or after a launch of the graph");
}

}  // namespace ikat::runtime
