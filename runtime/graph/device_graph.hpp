// SPDX-License-Identifier: Apache-2.0
// A graph as a backend takes it: nodes that own what they need, and what each comes after.
#pragma once
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "runtime/backend.hpp"

namespace ikat::runtime {

struct GraphNode {
    struct Empty {};
    struct Launch {
        ModuleHandle module{};
        std::string entry;
        Grid grid{};
        std::vector<std::byte> parameters;
        std::vector<emulator::LaunchView> views;
        bool begins_early = false;
        Location where{};

        RawLaunch raw() const { return {entry, grid, parameters, views, begins_early, where}; }
    };
    struct Fill {
        std::uint64_t to = 0;
        std::vector<std::byte> element;
        std::size_t count = 0;
        Location where{};
    };
    struct Call {
        Reference<const HostFunction> function;
    };
    /// Memory begins or ends: what it held before is gone.
    struct Renew {
        std::uint64_t address = 0, bytes = 0;
    };
    /// A body that is done if the 32 bits at an address are not 0, or as long as they are not.
    struct Conditional {
        bool is_loop = false;
        std::uint64_t condition = 0;
        std::vector<GraphNode> body{};
        Location where{};
    };
    std::variant<Empty, Launch, RawCopy, Fill, Call, Renew, Conditional> work{};
    std::vector<std::uint32_t> after{};  // nodes before it in the list
};

/// Work of a device that is launched as one, any number of times. Not thread-safe.
class DeviceGraph : public Counted {
public:
    /// As one piece of work of the stream.
    virtual void launch(StreamHandle stream, const Location& where) = 0;
    /// Gives a node other memory, numbers or sizes for later launches; a kernel and its grid stay. Nodes are counted
    /// with those of bodies, each before its own.
    virtual void update(std::uint32_t node, GraphNode work) = 0;
};

}  // namespace ikat::runtime
