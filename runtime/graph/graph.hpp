// SPDX-License-Identifier: Apache-2.0
// Work that is recorded once and launched many times, as one piece of work of a stream.
//
//     Graph graph = Graph::record(device, [&](const Queue& q) {
//         rmsnorm(q, x.view(rows, n), weights, y.view(rows, n));
//         q.launch(scale, grid(n, 256), 2.0f, y, n);
//     });
//     const GraphExec exec = graph.instantiate();
//     for (int step = 0; step < steps; ++step) exec.launch(stream);
//
// The function is called once, and nothing of what it gives the queue runs: kernels, copies, fills, functions of the
// program, and buffers of the queue, whose memory the graph keeps at one address. Other streams take part once they
// wait for an event of the queue, and until the queue waits for one of theirs. What waits, returns a number to the
// host, or gives other streams work is an Error there. A graph holds its kernels and the memory of buffers that it
// uses, whatever their owners do.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/device.hpp"
#include "runtime/graph/parameters.hpp"

namespace ikat::runtime {

struct GraphContents;
class GraphExec;
struct GraphLaunches;

/// What is recorded; called again when a parameter changes.
class GraphFunction : public Counted {
public:
    virtual void operator()(const Queue& queue, GraphParameters& parameters) const = 0;
};

namespace detail {

template <class F>
class Recorded final : public GraphFunction {
public:
    explicit Recorded(F function) : function_(std::move(function)) {}
    void operator()(const Queue& queue, GraphParameters& parameters) const override {
        if constexpr (std::invocable<F&, const Queue&, GraphParameters&>)
            function_(queue, parameters);
        else
            function_(queue);
    }

private:
    mutable F function_;
};

template <class F>
class Captured final : public GraphFunction {
public:
    explicit Captured(F function) : function_(std::move(function)) {}
    void operator()(const Queue&, GraphParameters&) const override { function_(); }

private:
    mutable F function_;
};

}  // namespace detail

/// A recording. It may be copied, and what is instantiated of it needs it no longer. All GraphExecs of it share the
/// memory that it allocates, so each launch waits for the last one of any of them.
class Graph {
public:
    /// What f(queue) or f(queue, parameters) gives the queue. Throws Error for what cannot be part of a graph, and if
    /// another stream is not joined. A function with parameters is called again when one changes: what it refers to
    /// must live as long.
    template <class F>
    requires std::invocable<F&, const Queue&> || std::invocable<F&, const Queue&, GraphParameters&>
    static Graph record(const Device& device, F f,
                        const std::source_location& where = std::source_location::current()) {
        return Graph(device, make_reference<detail::Recorded<F>>(std::move(f)), nullptr, where);
    }
    /// What f() gives a stream; nothing of it runs.
    template <std::invocable F>
    static Graph capture(const Stream& stream, F f,
                         const std::source_location& where = std::source_location::current()) {
        return Graph(stream.device_, make_reference<detail::Captured<F>>(std::move(f)), &stream, where);
    }

    /// Compiles its kernels and makes it ready to be launched. Throws Error for what the device cannot run.
    GraphExec instantiate(const std::source_location& where = std::source_location::current()) const;

    /// How many nodes it has, and how many pairs of which one comes after the other at once.
    std::size_t nodes() const;
    std::size_t edges() const;
    /// The graph for Graphviz, as JSON ({"nodes":[{"id","kind","name","after",...}]}), and as a picture.
    std::string dot() const;
    std::string json() const;
    std::string svg() const;

    const Device& device() const { return device_; }
    const Reference<const GraphContents>& contents() const { return contents_; }

private:
    Graph(const Device& device, Reference<const GraphFunction> function, const Stream* stream,
          const std::source_location& where);

    Device device_;
    Reference<const GraphFunction> function_;
    Reference<const GraphContents> contents_;
    GraphParameters parameters_;
    Reference<GraphLaunches> launches_{};
};

struct GraphExecState;

/// A graph that can be launched. Copies are handles of the same one. Not thread-safe.
class GraphExec {
public:
    explicit GraphExec(Reference<GraphExecState> state) : state_(std::move(state)) {}

    /// Enqueues all of it, after its own last launch, or, on a device, waits for its end. In a recording its nodes
    /// become those of the other graph. Parameters that were set count from here on; throws Error as update() does.
    void launch(const Queue& queue) const;

    /// Gives a parameter another value, for later launches. Throws Error if there is none of that name, and for a value
    /// of another kind.
    template <class T>
    requires detail::is_number<T>
    void set(std::string_view name, T value,
             const std::source_location& where = std::source_location::current()) const {
        set_number(name, detail::host_scalar(value), Location::of(where));
    }
    template <class T>
    void set(std::string_view name, const BufferSlice<T>& value,
             const std::source_location& where = std::source_location::current()) const {
        set_buffer(name, ir::type_of<std::remove_const_t<T>>, sizeof(T), value.part(), Location::of(where));
    }
    template <Element T>
    void set(std::string_view name, Buffer<T>& value,
             const std::source_location& where = std::source_location::current()) const {
        set(name, BufferSlice<T>(value), where);
    }
    /// Records it again with the parameters that were set, if any need that. Throws Error, and everything is as after
    /// the last update, if a launch is not possible so, or if kernels, grids or what nodes come after would differ.
    void update(const std::source_location& where = std::source_location::current()) const;

private:
    void set_number(std::string_view name, const HostScalar& value, const Location& where) const;
    void set_buffer(std::string_view name, ir::Type type, std::uint32_t bytes, const BufferPart& part,
                    const Location& where) const;

    Reference<GraphExecState> state_;
};

}  // namespace ikat::runtime
