// SPDX-License-Identifier: Apache-2.0
// The memory that a function of the library needs between its launches.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/device.hpp"

namespace ikat::stdlib {

/// What a caller gives a function to work in; nothing, and on a device the function takes memory of the device's.
using WorkspaceSlice = runtime::BufferSlice<std::uint8_t>;

/// Hands out the memory that was given, piece by piece, or memory of the device that lives as long as this does. Throws
/// Error where too little is given, and on a stream where nothing is: its work goes on when the function has returned.
class Workspace {
public:
    Workspace(const runtime::Queue& queue, std::string_view function, const WorkspaceSlice& given, std::uint64_t bytes);

    template <runtime::Element T>
    runtime::BufferSlice<T> take(std::uint64_t count) {
        return runtime::BufferSlice<T>(take_bytes(count * sizeof(T)));
    }
    static constexpr std::uint64_t alignment = 16;
    /// What a piece takes: kernels that read it want it aligned.
    static constexpr std::uint64_t rounded(std::uint64_t bytes) {
        return (bytes + alignment - 1) / alignment * alignment;
    }

private:
    runtime::BufferPart take_bytes(std::uint64_t bytes);

    std::optional<runtime::Buffer<std::uint8_t>> own_;
    WorkspaceSlice rest_;
};

}  // namespace ikat::stdlib
