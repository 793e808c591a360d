// SPDX-License-Identifier: Apache-2.0
// Work as a value: what a Queue is asked to do, with all that it needs. It can be kept, looked at, changed and done
// later, on any sink (sink.hpp); memory that has ended by then is an Error.
//
//     Recorder recorder(device, Recorder::Runs::No);
//     gemm_tensor_core(recorder, A.view(m, k), B.view(k, n), C.view(m, n));
//     for (const Node& node : recorder.nodes()) queue.submit(node);
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "dsl/record/capture.hpp"
#include "runtime/event.hpp"
#include "runtime/host_buffer.hpp"
#include "runtime/launch/launch.hpp"
#include "runtime/module.hpp"

namespace ikat::runtime {

class DeviceGraph;
struct GraphContents;

namespace node {

/// A launch that has been checked. What runs is a kernel of this program, or an entry of a module.
struct Launch {
    std::optional<trace::KernelHandle> kernel{};
    Reference<const LoadedModule> module{};
    std::string entry{};
    Grid grid{};
    std::vector<Argument> arguments{};    // one for each parameter
    std::vector<std::byte> parameters{};  // in their place, for an entry of which no KernelInfo is known
    Location where{};

    /// What is known of it, or null.
    const KernelInfo* info() const;
};

/// Copies a row of bytes, or the rows of a box of two or three dimensions. The bytes of a row lie in a row.
struct Copy {
    /// A part of a buffer, of this device or another, or memory of the host, which must stay until the work is done.
    struct Place {
        BufferPart part{};
        std::byte* host = nullptr;                     // if there is no part
        std::uint64_t row_pitch = 0, plane_pitch = 0;  // in bytes
    };
    Place to{}, from{};
    std::uint64_t bytes = 0;  // of a row
    std::uint64_t rows = 1, planes = 1;
    Reference<const HostMemory> host_memory{};  // that the host's place is in, if it is page-locked
    Location where{};
};

/// Writes copies of an element of 1, 2, 4 or 8 bytes.
struct Fill {
    BufferPart to{};
    std::vector<std::byte> element{};
    Location where{};
};

/// Memory exists from here on, and no longer than to here.
struct Allocate {
    Reference<MemoryBlock> memory{};
};
struct Free {
    Reference<MemoryBlock> memory{};
};

/// Calls a function of the program.
struct HostCall {
    Reference<const HostFunction> function{};
};

/// Marks a point of the queue, and waits for the last one that was marked.
struct Record {
    Reference<const EventObject> event{};
};
struct Wait {
    Reference<const EventObject> event{};
    Location where{};
};

/// Does all nodes of a graph.
struct Graph {
    Reference<DeviceGraph> graph{};
    Reference<const GraphContents> contents{};  // runtime/graph/recording.hpp
    Location where{};
};

/// Gives a launch another argument. Throws Error, and leaves it as it is, if it cannot be launched so on the device.
void exchange(Launch& launch, std::size_t position, const Argument& argument, const Backend& device);

}  // namespace node

/// One piece of work, which may be kept and done later.
struct Node {
    std::variant<node::Launch, node::Copy, node::Fill, node::Allocate, node::Free, node::HostCall, node::Record,
                 node::Wait, node::Graph>
        work;

    /// Where the program asked for it, if that is known.
    Location where() const;
};

}  // namespace ikat::runtime
