// SPDX-License-Identifier: Apache-2.0
#include "runtime/exec/deferred.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/exec/parts.hpp"
#include "runtime/exec/queues.hpp"

namespace ikat::runtime {
namespace {

bool is_free(const Node& work) { return std::holds_alternative<node::Free>(work.work); }

struct DeferredState final : Sink {
    DeferredState(Reference<Sink> to, bool is_device) : target(std::move(to)), is_device(is_device) {}

    void take(const Node& work) override {
        if (nodes.empty() && is_free(work)) return free(work);
        if (!is_open)
            throw Error(Diagnostic{.where = work.where(),
                                   .message = "work is given to a list of deferred work that has ended",
                                   .hint = "a queue of it must not outlive it"});
        nodes.push_back(work);
    }
    bool is_asynchronous() const override { return true; }

    /// What has been noted, after which it notes from the beginning.
    std::vector<Node> taken() {
        std::exchange(run, make_reference<Deferred::Run>())->is_over = true;
        return std::exchange(nodes, {});
    }
    /// Memory that nothing has allocated has no end either.
    void free(const Node& work) const {
        if (std::get<node::Free>(work.work).memory->has_address()) target->take(work);
    }
    /// Frees what these would have freed; they are not done.
    void give_up(std::span<const Node> list) const {
        for (const Node& work : list)
            if (is_free(work)) free(work);
    }
    void perform(const Node& work) const {
        is_device ? static_cast<DeviceState&>(*target).begin(work) : target->take(work);
    }

    const Reference<Sink> target;
    const bool is_device;
    bool is_open = true;
    std::vector<Node> nodes;
    Reference<Deferred::Run> run = make_reference<Deferred::Run>();
};

DeferredState& state_of(const Reference<Sink>& sink) { return static_cast<DeferredState&>(*sink); }

/// That the program has not freed what the work uses.
void check_memory(std::span<const Node> list, const Location& where) {
    for (const Node& work : list)
        each_part(work, [&](const BufferPart& part) {
            if (part.memory->is_over())
                throw Error(Diagnostic{
                    .where = work.where().known() ? work.where() : where,
                    .message =
                        fmt::format("deferred work uses buffer '{}', which has been freed before the work is done",
                                    part.memory->name()),
                    .hint = "a buffer lives until the work that uses it has been executed"});
        });
}

}  // namespace

Deferred::Deferred(const Queue& queue)
    : device_(queue.device()),
      sink_(make_reference<DeferredState>(queue.sink(), queue.sink().get() == device_.sink().get())) {}

Deferred::~Deferred() {
    DeferredState& state = state_of(sink_);
    state.is_open = false;
    try {
        state.give_up(state.taken());
    } catch (...) {}  // the memory ends with its last reference
}

void Deferred::execute(const std::source_location& where) const {
    DeferredState& state = state_of(sink_);
    check_memory(state.nodes, Location::of(where));
    const Reference<Run> run = state.run;
    const std::vector<Node> list = state.taken();
    for (std::size_t i = 0; i < list.size(); ++i) try {
            state.perform(list[i]);
        } catch (...) {
            state.give_up(std::span(list).subspan(i + 1));
            throw;
        }
    run->is_done = true;
    if (state.is_device) device_.synchronize(where);
}

std::size_t Deferred::size() const { return state_of(sink_).nodes.size(); }

void Deferred::shrink(std::size_t size) const {
    DeferredState& state = state_of(sink_);
    size = std::min(size, state.nodes.size());  // all may have been done meanwhile
    std::vector<Node> rest(state.nodes.begin() + std::ptrdiff_t(size), state.nodes.end());
    state.nodes.resize(size);
    // Memory that was there before is freed all the same, where the list is now.
    for (const Node& work : rest)
        if (is_free(work) && std::get<node::Free>(work.work).memory->has_address()) state.take(work);
}

const Reference<Deferred::Run>& Deferred::run() const { return state_of(sink_).run; }

}  // namespace ikat::runtime
