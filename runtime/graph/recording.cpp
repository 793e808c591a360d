// SPDX-License-Identifier: Apache-2.0
#include "runtime/graph/recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
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

/// What its branches share.
class Recording::State final : public Counted {
public:
    State(Reference<DeviceState> device, const Location& at, Reference<const GraphContents> again)
        : where(at), again_(std::move(again)) {
        contents->device = std::move(device);
    }

    void take(const Node& work, Nodes& last);
    /// Whether the event has been recorded in it.
    bool has(const EventObject& event) const { return points_.contains(&event); }

    struct Branch;
    const Location where;  // of the recording in the program
    /// Nothing is added any more. Branches refer to it, so it forgets them.
    void close() {
        is_open = false;
        std::exchange(streams, {}).clear();
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
    void allocate(MemoryBlock& memory);
    void hold(const Node& work) const;

    struct Point {
        Reference<const EventObject> event;
        Nodes nodes;
    };
    std::map<const EventObject*, Point> points_;  // their last recordings
    std::set<const MemoryBlock*> over_;           // memory that it has freed
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
    if (const auto* const record = std::get_if<node::Record>(&work.work)) {
        record->event->is_of_graph = true;
        points_[record->event.get()] = {record->event, last};
    } else if (const auto* const wait = std::get_if<node::Wait>(&work.work)) {
        const auto found = points_.find(wait->event.get());
        if (found == points_.end())
            refuse(wait->where.known() ? wait->where : where,
                   "what is recorded waits for an event that was not recorded in it",
                   "let the stream that launches the graph wait for it, before the launch");
        join(last, found->second.nodes);
    } else if (const auto* const graph = std::get_if<node::Graph>(&work.work)) {
        add(*graph->contents, last);
    } else {
        if (const auto* const allocation = std::get_if<node::Allocate>(&work.work)) allocate(*allocation->memory);
        hold(work);
        if (const auto* const end = std::get_if<node::Free>(&work.work)) over_.insert(end->memory.get());
        add(work, last);
    }
}

/// The nodes of a graph that is launched.
void Recording::State::add(const GraphContents& graph, Nodes& last) {
    const auto first = std::uint32_t(contents->entries.size());
    std::set<std::uint32_t> ends;
    for (const GraphContents::Entry& entry : graph.entries) {
        GraphContents::Entry added{entry.work, entry.after.empty() ? last : entry.after};
        if (!entry.after.empty())
            for (std::uint32_t& before : added.after) ends.erase(before += first);
        ends.insert(std::uint32_t(contents->entries.size()));
        contents->entries.push_back(std::move(added));
    }
    contents->memory.insert(contents->memory.end(), graph.memory.begin(), graph.memory.end());
    if (!ends.empty()) last.assign(ends.begin(), ends.end());
}

/// The memory is the graph's for as long as it exists, at one address.
void Recording::State::allocate(MemoryBlock& memory) {
    const std::size_t number = contents->memory.size();
    Reference<MemoryBlock> its;
    if (again_) {
        if (number >= again_->memory.size() || again_->memory[number]->bytes() != memory.bytes())
            refuse(where,
                   fmt::format("the graph allocates other memory than before: {} bytes of '{}'", memory.bytes(),
                               memory.name()),
                   "a number that decides about memory cannot change: record another graph");
        its = again_->memory[number];
    } else {
        its = make_reference<MemoryBlock>(contents->device->pool, memory.bytes(), memory.name());
    }
    memory.share(its);
    contents->memory.push_back(std::move(its));
}

void Recording::State::hold(const Node& work) const {
    each_part(work, [&](const BufferPart& part) {
        if (over_.contains(part.memory.get()))
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
    const std::vector<GraphContents::Entry>& entries = state_->contents->entries;
    std::vector<bool> is_joined(entries.size());
    for (const std::uint32_t last : static_cast<const State::Branch&>(*sink_).last) is_joined[last] = true;
    for (std::size_t i = entries.size(); i-- > 0;) {
        // A buffer may end where nobody waits: what uses it is before that.
        if (!is_joined[i] && is_one_of<node::Free>(entries[i].work)) continue;
        if (!is_joined[i])
            refuse(entries[i].work.where().known() ? entries[i].work.where() : state_->where,
                   "work of a stream that the recording does not wait for",
                   "let the queue wait for it before the recording ends: queue.wait(stream.record())");
        for (const std::uint32_t before : entries[i].after) is_joined[before] = true;
    }
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
