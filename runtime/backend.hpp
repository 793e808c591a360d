// SPDX-License-Identifier: Apache-2.0
// What the runtime asks of a device, without types: the one virtual interface of the project. runtime/cuda and
// runtime/emulator implement it; Device, Buffer, Stream and Event are what programs use.
//
// Addresses are device addresses. Handles are the implementation's own and mean nothing to another device. Every
// operation on a stream happens after the earlier ones on that stream; `default_stream` also waits for all others.
// All functions may be called from several threads.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/support/diagnostic.hpp"
#include "codegen/support/reference.hpp"

namespace ikat::runtime {

enum class DeviceKind : std::uint8_t { Emulator, Cuda };
inline constexpr std::string_view device_kind_names[] = {"emulator", "cuda"};

/// Extents of a grid in blocks, or of a block in threads.
struct Dim3 {
    std::uint32_t x = 1, y = 1, z = 1;
    constexpr std::uint64_t count() const { return std::uint64_t(x) * y * z; }
    bool operator==(const Dim3&) const = default;
};

/// How many blocks of how many threads run, and the bytes of dynamic shared memory that each block gets:
/// Grid{{blocks_x, blocks_y}, {threads_x, threads_y}, bytes}. A grid without blocks runs nothing.
struct Grid {
    Dim3 blocks{}, threads{};
    std::uint32_t dynamic_shared_bytes = 0;
    bool operator==(const Grid&) const = default;
};

struct DeviceProperties {
    std::string name;
    DeviceKind kind = DeviceKind::Emulator;
    std::uint32_t compute_major = 0, compute_minor = 0;  // compute capability
    std::string target;                                  // what kernels are compiled for: "sm_90"
    std::uint32_t multiprocessors = 0;
    std::uint32_t warp_size = 32;
    std::uint64_t memory_bytes = 0;
    std::uint32_t max_threads_per_block = 0;
    Dim3 max_blocks{}, max_threads{};      // per dimension
    std::uint32_t shared_bytes = 0;        // per block, static and dynamic together
    std::uint32_t shared_bytes_optin = 0;  // per block, of which dynamic memory beyond shared_bytes
};

/// The kernel itself did something wrong while it ran: an access out of bounds, a failed check, a deadlock. Other
/// Errors of the runtime mean that nothing was run.
class KernelError : public Error {
public:
    using Error::Error;
};

/// What is said of a device, buffer, module, stream or event that has nothing behind it.
inline constexpr const char* moved_from = "a device, buffer, module, stream or event is used after it was moved from";
inline constexpr const char* moved_from_hint = "std::move hands it over: use the object that it was moved to";

enum class ModuleHandle : std::uint64_t {};
enum class StreamHandle : std::uint64_t {};
enum class EventHandle : std::uint64_t {};
inline constexpr StreamHandle default_stream = StreamHandle(0);

/// PTX to load. `name` stands for a file name in messages; source_lines, if given, holds by PTX line (index 0 unused)
/// the line of the kernel's source. `is_foreign`: not made by our compiler, so it is checked as a driver would.
struct PtxText {
    std::string_view text;
    std::string_view name;
    std::vector<Location> source_lines{};
    bool is_foreign = false;
};

struct RawLaunch {
    std::string_view entry;
    Grid grid{};
    std::span<const std::byte> parameters{};  // laid out as the entry's .param list: each at its natural alignment
};

class Backend : public Counted {
public:
    virtual const DeviceProperties& properties() const = 0;

    /// Throws Error when there is no memory. The name is for messages.
    virtual std::uint64_t allocate(std::size_t bytes, std::string_view name) = 0;
    virtual void release(std::uint64_t address) noexcept = 0;
    virtual void rename(std::uint64_t address, std::string_view name) = 0;

    /// `from` must stay as it is until the stream is synchronized.
    virtual void write(std::uint64_t to, std::span<const std::byte> from, StreamHandle stream) = 0;
    /// Has finished when it returns.
    virtual void read(std::uint64_t from, std::span<std::byte> to, StreamHandle stream) = 0;
    virtual void copy(std::uint64_t to, std::uint64_t from, std::size_t bytes, StreamHandle stream) = 0;
    /// Writes `count` copies of `element` (1, 2, 4 or 8 bytes).
    virtual void fill(std::uint64_t to, std::span<const std::byte> element, std::size_t count, StreamHandle stream) = 0;

    /// Throws Error for PTX that the device does not take, with the place in the PTX and the device's log.
    virtual ModuleHandle load(const PtxText& ptx) = 0;
    virtual void unload(ModuleHandle module) noexcept = 0;
    virtual void launch(ModuleHandle module, const RawLaunch& launch, StreamHandle stream) = 0;
    /// Writes all of a .global or .const variable. Throws Error where there is none of that name and size.
    virtual void set_variable(ModuleHandle module, std::string_view name, std::span<const std::byte> contents) = 0;

    virtual StreamHandle create_stream() = 0;
    virtual void destroy_stream(StreamHandle stream) noexcept = 0;
    /// Waits until everything on the stream is done; throws what went wrong there.
    virtual void synchronize(StreamHandle stream) = 0;

    virtual EventHandle record(StreamHandle stream) = 0;
    virtual void destroy_event(EventHandle event) noexcept = 0;
    virtual void synchronize(EventHandle event) = 0;
    virtual double milliseconds(EventHandle start, EventHandle stop) = 0;
};

}  // namespace ikat::runtime
