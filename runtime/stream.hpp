// SPDX-License-Identifier: Apache-2.0
// The objects of a device besides memory and loaded PTX (module.hpp): streams and events. Each keeps its device open.
#pragma once
#include <utility>

#include "runtime/backend.hpp"

namespace ikat::runtime {

/// Owns one handle of a device. Movable, not copyable.
template <class Handle, void (Backend::*destroy)(Handle) noexcept>
class Owned {
public:
    Owned(Reference<Backend> device, Handle handle) : device_(std::move(device)), handle_(handle) {}
    ~Owned() {
        if (device_) (device_.get()->*destroy)(handle_);
    }
    Owned(Owned&& other) noexcept = default;  // leaves device_ empty
    Owned& operator=(Owned&& other) noexcept {
        std::swap(device_, other.device_);
        std::swap(handle_, other.handle_);
        return *this;
    }

    Backend& device() const {
        if (!device_) throw Error(moved_from, moved_from_hint);
        return *device_;
    }
    Handle handle() const { return device(), handle_; }

private:
    Reference<Backend> device_;
    Handle handle_;
};

using OwnedStream = Owned<StreamHandle, &Backend::destroy_stream>;

/// A point in the work of a device or a stream; made by their record().
class Event : public Owned<EventHandle, &Backend::destroy_event> {
public:
    using Owned::Owned;
    /// Waits until the work before it is done; throws its errors.
    void synchronize() const { device().synchronize(handle()); }
};

/// Device time between two events of one device. Waits for `stop`.
double elapsed_milliseconds(const Event& start, const Event& stop);

}  // namespace ikat::runtime
