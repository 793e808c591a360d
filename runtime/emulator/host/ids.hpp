// SPDX-License-Identifier: Apache-2.0
// The names of what a device has. A device never gives one twice, so what has ended is always found out.
#pragma once
#include <cstdint>

namespace ikat::emulator {

enum class ContextId : std::uint64_t {};
enum class StreamId : std::uint64_t {};
enum class EventId : std::uint64_t {};
enum class ModuleId : std::uint64_t {};

/// The stream that always exists.
inline constexpr StreamId default_stream = StreamId(0);

}  // namespace ikat::emulator
