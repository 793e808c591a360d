// SPDX-License-Identifier: Apache-2.0
// Work that is noted and done later, all at once:
//
//     Deferred later(stream);
//     auto between = Queue(later).buffer<float>(n);     // has no address yet
//     softmax(later, x, between);
//     later.execute();                                  // enqueues all of it, memory included
//
// What is wrong with a call is thrown by it, before anything has run. Memory is allocated and freed where the calls say
// so, in the order of the queue, so that later work gets the memory of earlier work.
#pragma once
#include <cstddef>
#include <source_location>

#include "runtime/device.hpp"
#include "runtime/exec/node.hpp"

namespace ikat::runtime {

/// Notes work for a device, a stream or another sink. What has been noted and not been done is forgotten with it.
class Deferred {
public:
    /// Work that is done together.
    struct Run final : Counted {
        bool is_done = false;  // or has been enqueued
        bool is_over = false;  // it is not noted any more
    };

    explicit Deferred(const Queue& queue);
    Deferred(const Deferred&) = delete;
    Deferred& operator=(const Deferred&) = delete;
    ~Deferred();

    /// Does what has been noted; a device waits for its end, and throws the errors of its kernels. Throws Error, and
    /// does nothing, if memory that it uses has been freed by the program.
    void execute(const std::source_location& where = std::source_location::current()) const;

    /// How many nodes have been noted and not been done.
    std::size_t size() const;
    /// Forgets those after the first ones.
    void shrink(std::size_t size) const;
    /// What the next execute() does.
    const Reference<Run>& run() const;

    const Device& device() const { return device_; }
    const Reference<Sink>& sink() const { return sink_; }

private:
    Device device_;
    Reference<Sink> sink_;
};

}  // namespace ikat::runtime
