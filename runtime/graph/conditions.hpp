// SPDX-License-Identifier: Apache-2.0
// Bodies of a graph that are done, or done again, as a number in memory says, which kernels set
// (dsl/kernel/condition.hpp).
//
//     Graph graph = Graph::record(device, [&](const Queue& q) {
//         const GraphCondition more = graph_condition(q, 1);
//         graph_while(q, more, [&](const Queue& body) { body.launch(step, grid(n, 256), x, n, more); });
//     });
//
// A body is recorded once, as the graph is, by its own queue. Other streams become branches of it by an event of that,
// and end as such in it. It may have bodies itself.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <source_location>
#include <utility>

#include "runtime/queue.hpp"

namespace ikat::runtime {

/// The number that decides about a body: 0, or another one. Copies are the same one.
class GraphCondition {
public:
    explicit GraphCondition(BufferPart part) : part_(std::move(part)) {}
    /// Its 32 bits. A kernel takes it as a Condition, or as a buffer of one std::uint32_t.
    const BufferPart& part() const { return part_; }

private:
    BufferPart part_;
};

/// A condition in memory of the graph that is recorded. The queue sets it to the number where it is then, at each
/// launch, and in a body at each round. Throws Error if nothing is recorded.
GraphCondition graph_condition(const Queue& queue, std::uint32_t number,
                               const std::source_location& where = std::source_location::current());

namespace detail {

void record_body(const Queue& queue, const GraphCondition& condition, bool is_loop,
                 const std::function<void(const Queue&)>& body, const std::source_location& where);

}  // namespace detail

/// What body(queue) gives its queue is done once at this point if the condition is not 0 then. Throws Error if nothing
/// is recorded, for a condition of another graph, and for what a graph cannot have.
template <std::invocable<const Queue&> F>
void graph_if(const Queue& queue, const GraphCondition& condition, F&& body,
              const std::source_location& where = std::source_location::current()) {
    detail::record_body(queue, condition, false, std::ref(body), where);
}
/// ... is done as long as the condition is not 0, which is looked at before each round.
template <std::invocable<const Queue&> F>
void graph_while(const Queue& queue, const GraphCondition& condition, F&& body,
                 const std::source_location& where = std::source_location::current()) {
    detail::record_body(queue, condition, true, std::ref(body), where);
}

namespace detail {

template <>
struct Memory<GraphCondition> {
    static constexpr int rank = 1;
    static constexpr bool is_const = false;
    using element = std::uint32_t;
    static BufferPart part(const GraphCondition& given) { return given.part(); }
};

}  // namespace detail
}  // namespace ikat::runtime
