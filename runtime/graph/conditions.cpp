// SPDX-License-Identifier: Apache-2.0
#include "runtime/graph/conditions.hpp"

#include "runtime/graph/recording.hpp"

namespace ikat::runtime {

GraphCondition graph_condition(const Queue& queue, std::uint32_t number, const std::source_location& where) {
    return GraphCondition(Recording::add_condition(*queue.sink(), number, Location::of(where)));
}

namespace {

/// A Queue can be made of it.
struct OfBody {
    const Device& of;
    const Reference<Sink>& to;
    const Device& device() const { return of; }
    const Reference<Sink>& sink() const { return to; }
};

}  // namespace

void detail::record_body(const Queue& queue, const GraphCondition& condition, bool is_loop,
                         const std::function<void(const Queue&)>& body, const std::source_location& where) {
    Recording::add_body(*queue.sink(), {is_loop, condition.part()}, Location::of(where),
                        [&](const Reference<Sink>& sink) {
                            body(Queue(OfBody{queue.device(), sink}, where));
                        });
}

}  // namespace ikat::runtime
