// SPDX-License-Identifier: Apache-2.0
// The part of the CUDA driver API that the runtime uses, declared here and found with dlopen: building needs no CUDA
// toolkit, and programs also run without a driver.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/backend.hpp"

namespace ikat::runtime::cuda {

using DeviceId = int;
using DevicePointer = unsigned long long;
using Context = struct ContextObject*;
using Module = struct ModuleObject*;
using Function = struct FunctionObject*;
using Stream = struct StreamObject*;
using Event = struct EventObject*;
using CudaGraph = struct GraphObject*;
using GraphExec = struct GraphExecObject*;
using Node = struct NodeObject*;
using MemoryPool = struct MemoryPoolObject*;

/// The values of CUresult that the runtime distinguishes.
enum class Result : unsigned {
    Success = 0,
    InvalidValue = 1,
    OutOfMemory = 2,
    NoDevice = 100,
    InvalidPtx = 218,
    UnsupportedPtxVersion = 222,
    NotFound = 500,
    NotReady = 600,
    PeerAccessAlreadyEnabled = 704,
    PeerAccessNotEnabled = 705,
    IllegalAddress = 700,
    LaunchTimeout = 702,
    Assert = 710,
    HardwareStackError = 714,
    IllegalInstruction = 715,
    MisalignedAddress = 716,
    InvalidAddressSpace = 717,
    InvalidPc = 718,
    LaunchFailed = 719,
};

enum class DeviceAttribute : unsigned {
    MaxThreadsPerBlock = 1,
    MaxBlockDimX = 2,
    MaxBlockDimY = 3,
    MaxBlockDimZ = 4,
    MaxGridDimX = 5,
    MaxGridDimY = 6,
    MaxGridDimZ = 7,
    MaxSharedMemoryPerBlock = 8,
    WarpSize = 10,
    MultiprocessorCount = 16,
    ComputeCapabilityMajor = 75,
    ComputeCapabilityMinor = 76,
    MaxSharedMemoryPerBlockOptin = 97,
};

enum class FunctionAttribute : unsigned { SharedSizeBytes = 1, MaxDynamicSharedSizeBytes = 8 };

enum class JitOption : unsigned {
    ErrorLogBuffer = 5,
    ErrorLogBufferSizeBytes = 6,
};

/// Keys of cuLaunchKernel's `extra` list.
inline constexpr std::uintptr_t launch_param_end = 0, launch_param_buffer_pointer = 1, launch_param_buffer_size = 2;

/// The map of a tensor, as the driver encodes it.
struct alignas(64) TensorMap {
    std::byte bytes[128];
};

/// A copy of a box between two contexts, or within one.
struct BoxCopy {
    enum class MemoryType : unsigned { Host = 1, Device = 2 };
    struct End {
        std::size_t x = 0, y = 0, z = 0, level = 0;
        MemoryType type{};
        void* host = nullptr;
        DevicePointer device = 0;
        void* array = nullptr;
        Context context = nullptr;          // of a copy between contexts
        std::size_t pitch = 0, height = 0;  // bytes of a row, rows of a plane
    };
    End from, to;
    std::size_t width = 0, height = 1, depth = 1;  // bytes, rows, planes
};

/// What a device may do with a pool's memory.
struct MemoryAccess {
    enum class Location : unsigned { Device = 1 };
    enum class Flags : unsigned { None = 0, ReadWrite = 3 };
    Location location = Location::Device;
    DeviceId device = 0;
    Flags flags{};
};

/// What a launch is asked for besides its shape.
struct LaunchAttribute {
    enum class Id : unsigned { ProgrammaticStreamSerialization = 6 };
    Id id{};
    char pad[4]{};
    union {
        char bytes[64]{};
        int number;
    };
};
struct LaunchConfig {
    unsigned grid_x = 1, grid_y = 1, grid_z = 1;
    unsigned block_x = 1, block_y = 1, block_z = 1;
    unsigned shared_bytes = 0;
    Stream stream = nullptr;
    LaunchAttribute* attributes = nullptr;
    unsigned attribute_count = 0;
};

/// The parameters of a graph's nodes.
struct KernelNode {
    Function function = nullptr;
    unsigned grid[3]{}, block[3]{};
    unsigned shared_bytes = 0;
    void** parameters = nullptr;
    void** extra = nullptr;
    void* kernel = nullptr;
    Context context = nullptr;
};
struct MemsetNode {
    DevicePointer to = 0;
    std::size_t pitch = 0;  // bytes between rows
    unsigned value = 0, element_bytes = 1;
    std::size_t width = 1, height = 1;  // elements of a row, rows
};
struct HostNode {
    void (*function)(void*) = nullptr;
    void* data = nullptr;
};
struct ConditionalNode {
    enum class Type : unsigned { If = 0, While = 1 };
    std::uint64_t handle;
    Type type;
    unsigned size;
    CudaGraph* bodies;  // the driver's array of as many
    Context context;
};
/// The parameters of a node of any type, for cuGraphAddNode.
struct NodeParameters {
    enum class Type : unsigned { Conditional = 13 };
    Type type{};
    int pad[3]{};
    union {
        long long words[29]{};
        ConditionalNode conditional;
    };
    long long end = 0;
};
/// Of an edge: that its end may begin before the kernel at its start has ended.
struct EdgeData {
    static constexpr unsigned char programmatic_port = 1, programmatic = 1;
    unsigned char from_port = 0, to_port = 0, type = 0, pad[5]{};
};

/// The driver's functions, one pointer each. Made by load_driver.
struct Driver {
#define FUNCTION(symbol, ...) Result (*symbol)(__VA_ARGS__) = nullptr;
#include "runtime/cuda/driver.def"

    /// "CUDA_ERROR_INVALID_VALUE (invalid argument)"
    std::string text(Result result) const;
    /// Throws Error unless result is Success: "`doing` failed: CUDA_ERROR_...". KernelError if the result means that a
    /// kernel failed while it ran.
    void check(Result result, std::string_view doing) const;
};

/// Whether a result means that a kernel failed while it ran. The context is unusable afterwards.
bool is_kernel_failure(Result result);

/// The library that load_driver looks for: IKAT_CUDA_DRIVER, else "libcuda.so.1".
std::string driver_path();

/// Loads and initialises the driver. Throws Error if the library is missing, lacks a function or does not initialise.
/// The library stays loaded.
std::shared_ptr<const Driver> load_driver(const std::string& path);

}  // namespace ikat::runtime::cuda
