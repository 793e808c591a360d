// SPDX-License-Identifier: Apache-2.0
// What a stream is given to do, as values. They say where memory is and own all else that they need, so that they can
// be done later than they were made.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/emulator/host/ids.hpp"
#include "runtime/emulator/host/program.hpp"

namespace ikat::emulator {

class LoadedModule;
struct WorkGraph;

namespace work {

struct Launch {
    Launch(std::shared_ptr<LoadedModule> of, ContextId in, const emulator::Launch& asked)
        : module(std::move(of)),
          context(in),
          entry(asked.entry),
          parameters(asked.parameters.begin(), asked.parameters.end()),
          shape(asked) {}
    emulator::Launch launch() const {
        emulator::Launch out = shape;
        out.entry = entry;
        out.parameters = parameters;
        return out;
    }

    std::shared_ptr<LoadedModule> module;
    ContextId context;  // whose heap its malloc has
    std::string entry;
    std::vector<std::byte> parameters;
    Location where{};  // in the program, if that is known

private:
    emulator::Launch shape;  // without those two
};

/// Writes all of a .global or .const variable.
struct SetVariable {
    std::shared_ptr<LoadedModule> module;
    std::string name;
    std::vector<std::byte> contents;
};

/// One end of a copy: memory of the host, or an address of the device.
struct Place {
    std::byte* host = nullptr;
    std::uint64_t device = 0;

    Place at(std::size_t bytes) const { return {host ? host + bytes : nullptr, host ? 0 : device + bytes}; }
};
inline Place on_host(const void* memory) { return {static_cast<std::byte*>(const_cast<void*>(memory)), 0}; }
inline Place on_device(std::uint64_t address) { return {nullptr, address}; }

/// Copies a row of bytes, or the rows of a box. Memory of the host stays as it is until the stream has finished.
struct Copy {
    /// Bytes from one row to the next, and from one plane to the next.
    struct Pitch {
        std::size_t row = 0, plane = 0;
    };
    Place to, from;  // of the first row
    std::size_t bytes = 0;
    std::size_t rows = 1, planes = 1;
    Pitch to_pitch{}, from_pitch{};
    Location where{};
    bool keeps_host = false;  // the program has promised that nobody changes memory of the host before it is done
    // The memory that an address is of, if it is another device's.
    std::shared_ptr<Memory::State> to_elsewhere{}, from_elsewhere{};
};

/// Writes `count` elements to a row, or to rows that are `pitch` bytes apart.
struct Fill {
    std::uint64_t to = 0;
    std::vector<std::byte> element;
    std::size_t count = 0;
    std::size_t rows = 1, pitch = 0;
    Location where{};
};

/// Memory is there from here on, if it was reserved (OwnedMemory::reserve) and is not there yet. No work before it uses
/// it.
struct Allocate {
    std::uint64_t address = 0, bytes = 0;
};

/// Frees memory, which no work after it uses.
struct Free {
    std::uint64_t address = 0, bytes = 0;
};

/// Marks a point of the stream.
struct Record {
    EventId event;
};

/// What follows on the stream waits for the last recording that the event was asked for before.
struct Wait {
    EventId event;
    std::shared_ptr<const std::atomic<bool>> elsewhere{};  // whether it is done, if it is of another device
};

/// Memory of a graph begins or ends: what was written there is gone. Of no bytes it does nothing.
struct Renew {
    std::uint64_t address = 0, bytes = 0;
};

/// A node of a graph that does one of its bodies, or none, as the 32 bits at an address say.
struct Conditional {
    enum class Kind : std::uint8_t { If, While, Switch } kind{};
    std::uint64_t condition = 0;                             // its address
    std::vector<std::shared_ptr<const WorkGraph>> bodies{};  // If: for all numbers but 0; and for 0, if there is one
    Location where{};

    /// The body that is done for a number; nullptr: none.
    const WorkGraph* chosen(std::uint32_t number) const;
};

/// All nodes of a graph (work_graph.hpp), one at a time.
struct Graph {
    std::shared_ptr<const WorkGraph> graph;
    Location where{};  // of the launch in the program
    std::vector<std::optional<std::uint64_t>>
        checksums{};  // of what nodes copy from the host, by their numbers; empty: not known
};

/// Calls the program, on a thread that does nothing else: the program's own threads may wait for what is called.
struct HostCall {
    std::function<void()> function;
};

}  // namespace work

using Work = std::variant<work::Launch, work::SetVariable, work::Copy, work::Fill, work::Allocate, work::Free,
                          work::Record, work::Wait, work::HostCall, work::Renew, work::Graph, work::Conditional>;

}  // namespace ikat::emulator
