// SPDX-License-Identifier: Apache-2.0
#include "runtime/event.hpp"

#include "runtime/graph/recording.hpp"

namespace ikat::runtime {

void EventObject::check_is_of_stream(const Location& where) const {
    if (is_of_graph)
        throw Error(Diagnostic{.where = where,
                               .message = "an event is waited for that was last recorded in a graph",
                               .hint = "record it on the stream that launches the graph, after the launch"});
}

void Event::synchronize(const std::source_location& where) const {
    Recording::refuse_wait("a wait for an event", Location::of(where));
    object()->check_is_of_stream(Location::of(where));
    object()->device->synchronize(object()->handle);
}

bool Event::query(const std::source_location& where) const {
    Recording::refuse_wait("a query of an event", Location::of(where));
    object()->check_is_of_stream(Location::of(where));
    return object()->device->query(object()->handle);
}

}  // namespace ikat::runtime
