// SPDX-License-Identifier: Apache-2.0
// A point in the work of a device.
#pragma once
#include <source_location>
#include <utility>

#include "runtime/backend.hpp"

namespace ikat::runtime {

/// What an Event is a handle of. It keeps its device open.
struct EventObject final : Counted {
    explicit EventObject(Reference<Backend> on) : device(std::move(on)), handle(device->create_event()) {}
    ~EventObject() override { device->destroy_event(handle); }
    /// Throws Error if its last recording belongs to a graph, which no call can wait for.
    void check_is_of_stream(const Location& where) const;
    const Reference<Backend> device;
    const EventHandle handle;
    mutable bool is_of_graph = false;
};

/// A point in the work of a device or a stream, the last at which it was recorded; made by their record().
class Event {
public:
    explicit Event(Reference<const EventObject> object) : object_(std::move(object)) {}

    /// Waits until the work before it is done; throws its errors.
    void synchronize(const std::source_location& where = std::source_location::current()) const;
    /// Whether the work before it is done; throws its errors if it is.
    bool query(const std::source_location& where = std::source_location::current()) const;
    /// Throws Error if the event was moved from.
    const Reference<const EventObject>& object() const {
        if (!object_) throw Error(moved_from, moved_from_hint);
        return object_;
    }

private:
    Reference<const EventObject> object_;
};

/// Device time between two events of one device. Waits for `stop`.
double elapsed_milliseconds(const Event& start, const Event& stop);

}  // namespace ikat::runtime
