// SPDX-License-Identifier: Apache-2.0
// A device or a stream as the target of work. A function that takes a Queue can be called with either:
//
//     void scale(const Queue& queue, float by, Buffer<float>& x) { queue.launch(k, grid(x.size(), 256), by, x, ...); }
// scale(device, 2, x); // returns when it is done, and throws errors
//     scale(stream, 2, x);     // only enqueues it; errors come with stream.synchronize()
// With a Recorder (runtime/exec/recorder.hpp), what it does is noted. A Queue owns nothing: it is created by calling
// such a function and must not outlive the call.
#pragma once
#include <concepts>
#include <cstddef>
#include <source_location>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/event.hpp"
#include "runtime/exec/sink.hpp"
#include "runtime/launch/launch.hpp"
#include "runtime/launch/typed_launch.hpp"
#include "runtime/module.hpp"

namespace ikat::trace {
class KernelHandle;
}

namespace ikat::runtime {

namespace detail {

template <class F>
class Called final : public HostFunction {
public:
    explicit Called(F function) : function_(std::move(function)) {}
    void operator()() const override { function_(); }

private:
    mutable F function_;
};

}  // namespace detail

class Device;
class Stream;
struct HostPart;
struct MutableHostPart;
struct MutableTensorView;
struct TensorView;

/// A device or a stream, to which a function gives work. Functions throw Error; on a stream, what a kernel did wrong
/// comes with the stream's synchronize().
class Queue {
public:
    Queue(const Device& device, const std::source_location& where = std::source_location::current());
    Queue(const Stream& stream, const std::source_location& where = std::source_location::current());
    /// Of anything else that has a device and a sink, such as a Recorder.
    template <class S>
    requires requires(const S& of) { of.device(), of.sink(); }
    Queue(const S& of, const std::source_location& where = std::source_location::current())
        : device_(&of.device()), sink_(of.sink().get()), where_(where) {}

    /// Runs a kernel; on a device, waits for it to finish. A parameter In, Out or InOut takes a Buffer of its element
    /// type, a scalar takes a host number that fits it. On a stream, buffers must live until the kernel has finished.
    /// Arguments are in order, or by name: arg("x", x), arg("n", 300); then they are compared with the parameters when
    /// the launch is called, and not by the C++ compiler.
    template <class... P, class... A>
    void launch(const Kernel<P...>& kernel, const LaunchPoint& point, A&&... arguments) const {
        constexpr bool by_name = (detail::is_named<std::remove_cvref_t<A>> || ...);
        static_assert(by_name || sizeof...(A) == sizeof...(P),
                      "launch: it takes one argument for each parameter of the kernel");
        if constexpr (by_name) {
            std::vector<Given> list;
            (detail::give(list, arguments), ...);
            launch_given(kernel.handle(), point, list);
        } else if constexpr (sizeof...(A) == sizeof...(P)) {
            detail::ArgumentList list(kernel.handle().info(), point.where);
            (detail::add_argument<P>(list, arguments), ...);
            launch_list(kernel.handle(), point, list.take());
        }
    }
    /// A kernel with arguments whose types are data.
    void launch(const trace::KernelHandle& kernel, const LaunchPoint& point, std::span<const Argument> arguments) const;
    /// Runs an entry of loaded PTX, as a kernel if the PTX says what its parameters are (Module::info): buffers and
    /// views, numbers, and trivially copyable objects for parameters of bytes.
    template <class... A>
    requires(!detail::are_bytes<A...>) void launch(const Module& module, std::string_view entry,
                                                   const LaunchPoint& point, A&&... arguments) const {
        std::vector<Given> list;
        (detail::give(list, arguments), ...);
        launch_given(module, entry, point, list);
    }
    /// The same with parameters as they lie in memory. Of PTX that says nothing of the entry, only the device's limits
    /// are checked, and the size of `parameters`.
    void launch(const Module& module, std::string_view entry, const Grid& grid, std::span<const std::byte> parameters,
                const Location& where = Location::of(std::source_location::current())) const;

    /// Copies the elements of an array of up to three dimensions whose last one is dense, between memory of this device
    /// or from another. Throws Error if types or extents differ.
    void copy(const MutableTensorView& to, const TensorView& from) const;
    /// Copies all elements of an array as in copy() from or to page-locked memory of the host
    /// (runtime/host_buffer.hpp), where rows follow each other; quantised weights are bytes there. On a stream, that
    /// memory must neither change nor be read before the copy is done. Throws Error if types or numbers of elements
    /// differ.
    void upload_async(const MutableTensorView& to, const HostPart& from) const;
    void download_async(const MutableHostPart& to, const TensorView& from) const;
    /// Writes `value` to all elements.
    template <class T>
    void fill(const BufferSlice<T>& to, std::type_identity_t<T> value) const {
        fill(to.part(), std::as_bytes(std::span(&value, 1)));
    }
    template <Element T>
    void fill(Buffer<T>& to, std::type_identity_t<T> value) const {
        fill(BufferSlice<T>(to), value);
    }
    /// `size` uninitialised elements of the device's pool for what follows in the queue. The memory ends where the
    /// queue is when the buffer ends: work before that may use it.
    template <Element T>
    Buffer<T> buffer(std::size_t size, std::string_view name = {}) const {
        return Buffer<T>(allocate(size, sizeof(T), name));
    }
    /// Calls a function of the program, which must not use the device. On a stream, what it throws comes with
    /// synchronize(), and what follows waits for it.
    template <std::invocable F>
    void call(F function) const {
        call(Reference<const HostFunction>(make_reference<detail::Called<F>>(std::move(function))));
    }
    /// A point of the queue, and that what follows waits for such a point, of this queue or another.
    Event record() const;
    void record(const Event& event) const;
    void wait(const Event& event) const;

    /// Work as a value (runtime/exec/node.hpp).
    void submit(const Node& work) const;

    const Device& device() const { return *device_; }
    /// Whether work may continue when the function that enqueues it has returned.
    bool is_stream() const { return sink_->is_asynchronous(); }
    /// Where its work goes.
    Reference<Sink> sink() const { return Reference<Sink>(sink_); }
    /// The location in the program where the device or the stream was passed.
    Location where() const { return Location::of(where_); }
    const std::source_location& source_location() const { return where_; }

private:
    /// `launch` without the conversion to a span, which takes a compiler a sixteenth of what all of <ikat/ikat.hpp>
    /// does.
    void launch_list(const trace::KernelHandle& kernel, const LaunchPoint& point,
                     std::vector<Argument>&& arguments) const;
    void launch_given(const Module& module, std::string_view entry, const LaunchPoint& point,
                      std::span<const Given> arguments) const;
    void launch_given(const trace::KernelHandle& kernel, const LaunchPoint& point,
                      std::span<const Given> arguments) const;
    void fill(const BufferPart& to, std::span<const std::byte> element) const;
    Allocation allocate(std::size_t count, std::size_t element_bytes, std::string_view name) const;
    void call(Reference<const HostFunction> function) const;

    const Device* device_;
    Sink* sink_;
    std::source_location where_;
};

/// The launches and other work of an object of which a Queue can be made.
template <class Target>
class Launcher {
public:
    /// Runs a kernel. A parameter In, Out or InOut takes a Buffer of its element type, a scalar takes a host number
    /// that fits it. A device waits for it to finish; on a stream, the buffers must live until it has.
    template <class... P, class... A>
    void launch(const Kernel<P...>& kernel, const LaunchPoint& point, A&&... arguments) const {
        queue().launch(kernel, point, arguments...);
    }
    /// A kernel with arguments whose types are data.
    void launch(const trace::KernelHandle& kernel, const LaunchPoint& point,
                std::span<const Argument> arguments) const {
        queue().launch(kernel, point, arguments);
    }
    /// Runs an entry of loaded PTX, with arguments as for a kernel, or with its parameters as bytes; see Queue.
    template <class... A>
    requires(!detail::are_bytes<A...>) void launch(const Module& module, std::string_view entry,
                                                   const LaunchPoint& point, A&&... arguments) const {
        queue().launch(module, entry, point, arguments...);
    }
    void launch(const Module& module, std::string_view entry, const Grid& grid, std::span<const std::byte> parameters,
                const Location& where = Location::of(std::source_location::current())) const {
        queue().launch(module, entry, grid, parameters, where);
    }

    /// As those of a Queue.
    void copy(const MutableTensorView& to, const TensorView& from,
              const std::source_location& where = std::source_location::current()) const {
        queue(where).copy(to, from);
    }
    void upload_async(const MutableTensorView& to, const HostPart& from,
                      const std::source_location& where = std::source_location::current()) const {
        queue(where).upload_async(to, from);
    }
    void download_async(const MutableHostPart& to, const TensorView& from,
                        const std::source_location& where = std::source_location::current()) const {
        queue(where).download_async(to, from);
    }
    template <Element T>
    void fill(Buffer<T>& to, std::type_identity_t<T> value,
              const std::source_location& where = std::source_location::current()) const {
        queue(where).fill(to, value);
    }
    template <class T>
    void fill(const BufferSlice<T>& to, std::type_identity_t<T> value,
              const std::source_location& where = std::source_location::current()) const {
        queue(where).fill(to, value);
    }
    template <std::invocable F>
    void call(F function) const {
        queue().call(std::move(function));
    }

private:
    Queue queue(const std::source_location& where = std::source_location::current()) const {
        return {static_cast<const Target&>(*this), where};
    }
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
