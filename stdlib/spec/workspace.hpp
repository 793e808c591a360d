// SPDX-License-Identifier: Apache-2.0
// The memory that a function of the library needs between its launches.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/device.hpp"
#include "runtime/launch/roles.hpp"

namespace ikat::stdlib {

using runtime::check_roles;
using runtime::OperandRole;
using runtime::Role;

/// Memory that the caller gives a function to work in. If it is empty, the function allocates its own from the queue.
using WorkspaceSlice = runtime::BufferSlice<std::uint8_t>;

/// Hands out the given memory piece by piece, or memory of the queue, for the work that is enqueued as long as this
/// object lives. Throws Error if too little is given.
class Workspace {
public:
    Workspace(const runtime::Queue& queue, std::string_view function, const WorkspaceSlice& given, std::uint64_t bytes);

    /// The next `count` elements.
    template <runtime::Element T>
    runtime::BufferSlice<T> take(std::uint64_t count) {
        return runtime::BufferSlice<T>(take_bytes(count * sizeof(T)));
    }
    static constexpr std::uint64_t alignment = 16;
    /// The bytes that a piece takes: each piece is aligned.
    static constexpr std::uint64_t rounded(std::uint64_t bytes) {
        return (bytes + alignment - 1) / alignment * alignment;
    }

private:
    runtime::BufferPart take_bytes(std::uint64_t bytes);

    std::optional<runtime::Buffer<std::uint8_t>> own_;
    WorkspaceSlice rest_;
};

}  // namespace ikat::stdlib
