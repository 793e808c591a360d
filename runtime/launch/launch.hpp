// SPDX-License-Identifier: Apache-2.0
// An untyped launch, the common part of the typed launch of Device and of the command line. The arguments carry their
// types as data; the kernel's contracts and requirements are checked here, at each launch.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/ir/type.hpp"
#include "codegen/support/reference.hpp"
#include "runtime/backend.hpp"
#include "runtime/view.hpp"

namespace ikat {
struct KernelInfo;
}

namespace ikat::runtime {

struct MappedTensor;
struct RawBytes;

/// A host number.
struct HostScalar {
    enum class Kind : std::uint8_t { Signed, Unsigned, Floating } kind{};
    std::uint64_t integer = 0;  // Signed: two's complement
    double floating = 0;
};

/// The number as `type` has it in memory: an integer for any type that can hold its value, a floating-point number
/// rounded to nearest for any floating-point type; nothing if it does not fit.
std::optional<std::uint64_t> bits_of(const HostScalar& number, ir::Type type);
std::string to_string(const HostScalar& number);

/// A scalar, a buffer or a part of one, or raw bytes.
struct Argument {
    ir::Type type = ir::Type::Void;  // of the scalar, or of the buffer's elements
    std::uint64_t bits = 0;          // of the scalar, in the low bits; the others are 0
    BufferPart part{};               // of the buffer

    std::span<const std::byte> raw{};        // of type u8, read when the launch is called
    std::uint32_t alignment = 0;             // of the raw bytes
    Reference<const MappedTensor> mapped{};  // if these are the map of a tensor, what it is of
    Reference<const RawBytes> own{};         // if these are the argument's own

    bool is_buffer() const { return bool(part.memory); }
    /// What it is of a buffer, or is the map of; null for others.
    const BufferPart* memory() const;
    std::uint64_t elements() const { return part.bytes / info(type).bytes; }  // of the buffer's part
};

/// Raw bytes that an argument keeps.
struct RawBytes final : Counted {
    explicit RawBytes(std::span<const std::byte> of) : bytes(of.begin(), of.end()) {}
    std::vector<std::byte> bytes;
};
/// Makes its raw bytes, if there are any, the argument's own.
void own_bytes(Argument& argument);

/// The map of a tensor and the memory that it is of.
struct MappedTensor final : Counted {
    MappedTensor(const Argument& buffer, const TensorMapBytes& bytes) : buffer(buffer), bytes(bytes) {}
    Argument buffer;
    alignas(64) TensorMapBytes bytes;
    /// Of memory that had no address yet: the map, whose bytes are made by each launch.
    Reference<const Counted> without_address{};
};

/// A grid and the location of the launch in the program. Converted from a Grid where a launch is called.
struct LaunchPoint {
    Grid grid;
    Location where;
    LaunchPoint(const Grid& grid, const std::source_location& where = std::source_location::current())
        : grid(grid), where(Location::of(where)) {}
    LaunchPoint(const Grid& grid, const Location& where) : grid(grid), where(where) {}
};

/// Enough blocks of `threads_per_block` threads for one thread per element.
Grid grid(std::uint64_t elements, std::uint32_t threads_per_block);

/// Throws Error unless the arguments match the kernel's parameters in number and types.
void check_arguments(const KernelInfo& kernel, std::span<const Argument> arguments, const Location& where);

/// The hint for a buffer of another device, to which kernels have no access.
inline constexpr const char* not_here_hint =
    "a kernel runs where its buffers are: upload the data to this device, copy it, or use enable_peer_access()";

/// Throws Error with all mistakes in a launch: number and types of the arguments, the kernel's contracts
/// and launch bounds, the device's limits, an `in` buffer that overlaps one that is written.
void check_launch(const KernelInfo& kernel, const LaunchPoint& point, std::span<const Argument> arguments,
                  const Backend& device);

/// The same for parameters that are given as bytes: their number, contracts of numbers, alignments of addresses, and
/// the grid. Sizes of buffers are not known.
void check_launch(const KernelInfo& kernel, const LaunchPoint& point, std::span<const std::byte> parameters,
                  const Backend& device);

/// Throws Error for a grid that the device cannot run, whatever the kernel.
void check_limits(std::string_view entry, const Grid& grid, const DeviceProperties& device);

/// An argument whose parameter is found when the launch is called: a number, a buffer or a part of one, an object, or
/// nothing, for an optional parameter.
struct Given {
    enum class Kind : std::uint8_t { Number, Memory, Object, Nothing } kind{};
    std::string name{};  // of its parameter; empty: the one that comes next
    HostScalar number{};
    // Memory:
    ir::Type element = ir::Type::Void;  // Void: a structure
    std::uint32_t element_bytes = 0;
    bool is_const = false;
    BufferPart part{};
    std::span<const std::uint64_t> extents{}, pitches{};  // of a view; else none
    std::span<const std::byte> object{};
};

/// The arguments for a kernel's parameters. Throws Error, naming the parameter, for one that does not fit its own, for
/// a name that the kernel does not have, and for a parameter that is given twice or not at all.
std::vector<Argument> match(const KernelInfo& kernel, std::span<const Given> given, const Location& where);

/// What a kernel is given of its buffers, for the emulator's checks.
std::vector<emulator::LaunchView> views_of(const KernelInfo& kernel, std::span<const Argument> arguments);

/// The arguments packed for an entry: each at its natural alignment, raw bytes at theirs.
std::vector<std::byte> pack(std::span<const Argument> arguments);

}  // namespace ikat::runtime
