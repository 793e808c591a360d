// SPDX-License-Identifier: Apache-2.0
// A device or a stream as the target of work. A function that takes a Queue can be called with either:
//
//     void scale(const Queue& queue, float by, Buffer<float>& x) { queue.launch(k, grid(x.size(), 256), by, x, ...); }
// scale(device, 2, x); // returns when it is done, and throws errors
//     scale(stream, 2, x);     // only enqueues it; errors come with stream.synchronize()
// A Queue owns nothing: it is created by calling such a function and must not outlive the call.
#pragma once
#include <cstddef>
#include <source_location>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/launch/launch.hpp"
#include "runtime/launch/typed_launch.hpp"
#include "runtime/module.hpp"

namespace ikat::trace {
class KernelHandle;
}

namespace ikat::runtime {

class Device;
class Stream;

class Queue {
public:
    Queue(const Device& device, const std::source_location& where = std::source_location::current())
        : device_(&device), where_(where) {}
    Queue(const Stream& stream, const std::source_location& where = std::source_location::current());

    /// Runs a kernel; on a device, waits for it to finish. A parameter In, Out or InOut takes a Buffer of its element
    /// type, a scalar takes a host number that fits it. On a stream, buffers must live until the kernel has finished.
    template <class... P, class... A>
    void launch(const Kernel<P...>& kernel, const LaunchPoint& point, A&&... arguments) const {
        static_assert(sizeof...(A) == sizeof...(P), "launch: it takes one argument for each parameter of the kernel");
        if constexpr (sizeof...(A) == sizeof...(P)) {
            const KernelInfo& info = kernel.handle().info();
            std::vector<Argument> list = detail::room_for(info);
            (detail::add_argument<P>(list, arguments, info, point.where), ...);
            launch_list(kernel.handle(), point, list);
        }
    }
    /// A kernel with arguments whose types are data.
    void launch(const trace::KernelHandle& kernel, const LaunchPoint& point, std::span<const Argument> arguments) const;
    /// Runs an entry of loaded PTX, as a kernel if the PTX says what its parameters are (Module::info): buffers and
    /// views, numbers, and trivially copyable objects for parameters of bytes.
    template <class... A>
    requires(!detail::are_bytes<A...>) void launch(const Module& module, std::string_view entry,
                                                   const LaunchPoint& point, A&&... arguments) const {
        const Given list[] = {detail::given(arguments)..., {}};
        launch_given(module, entry, point, {list, sizeof...(A)});
    }
    /// The same with parameters as they lie in memory. Of PTX that says nothing of the entry, only the device's limits
    /// are checked, and the size of `parameters`.
    void launch(const Module& module, std::string_view entry, const Grid& grid, std::span<const std::byte> parameters,
                const Location& where = Location::of(std::source_location::current())) const;

    const Device& device() const { return *device_; }
    bool is_stream() const { return stream_ != nullptr; }
    /// The location in the program where the device or the stream was passed.
    Location where() const { return Location::of(where_); }

private:
    /// `launch` without the conversion to a span, which takes a compiler a sixteenth of what all of <ikat/ikat.hpp>
    /// does.
    void launch_list(const trace::KernelHandle& kernel, const LaunchPoint& point,
                     const std::vector<Argument>& arguments) const;
    void launch_given(const Module& module, std::string_view entry, const LaunchPoint& point,
                      std::span<const Given> arguments) const;
    StreamHandle handle() const;
    /// Waits for completion if launches do.
    void finish() const;

    const Device* device_;
    const Stream* stream_ = nullptr;
    std::source_location where_;
};

/// Only a device: for functions that return what they compute, and so must wait.
class DeviceQueue : public Queue {
public:
    DeviceQueue(const Device& device, const std::source_location& where = std::source_location::current())
        : Queue(device, where) {}
    template <class S>
    requires std::is_same_v<S, Stream> DeviceQueue(const S& stream) : Queue(stream) {
        static_assert(!std::is_same_v<S, Stream>,
                      "a function that returns a number waits for it: call it with a Device, or give it a buffer for "
                      "the number, which it fills on a Stream");
    }
};

}  // namespace ikat::runtime
