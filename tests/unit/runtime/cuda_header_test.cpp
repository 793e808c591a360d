// SPDX-License-Identifier: Apache-2.0
// Our declarations of the driver API compared with <cuda.h>, if it is installed: the values of enumerators and, for
// each function, the number, size and kind of its parameters. The compiler does the check; the program only reports it.
#include "tests/catch.hpp"
#if __has_include(<cuda.h>)
#include "runtime/cuda/driver.hpp"  // before the macros of cuda.h

#include <cuda.h>

#include <cstddef>
#include <type_traits>

// Newer headers rename this function with a macro and declare only the new one. Drivers of all versions have the one
// without a suffix, with the same type.
using ElapsedTime = decltype(cuEventElapsedTime);
#undef cuEventElapsedTime
extern "C" ElapsedTime cuEventElapsedTime;

namespace ikat::tests {
namespace {

namespace cuda = runtime::cuda;

/// Whether a value of one type can be passed where the other is expected, as far as the machine is concerned.
template <class A, class B>
constexpr bool same_passing() {
    if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>) {
        using P = std::remove_cv_t<std::remove_pointer_t<A>>;
        using Q = std::remove_cv_t<std::remove_pointer_t<B>>;
        constexpr bool opaque = std::is_class_v<P> && std::is_class_v<Q>;
        if constexpr (std::is_function_v<P>)
            return std::is_same_v<P, Q>;
        else if constexpr (opaque || (std::is_void_v<P> && std::is_void_v<Q>))
            return true;
        else
            return same_passing<P, Q>();
    } else {
        return !std::is_pointer_v<A> && !std::is_pointer_v<B> && sizeof(A) == sizeof(B) &&
               std::is_floating_point_v<A> == std::is_floating_point_v<B>;
    }
}

template <class Ours, class Theirs>
inline constexpr bool same_function = false;
template <class R, class... A, class S, class... B>
requires(sizeof...(A) ==
         sizeof...(B)) inline constexpr bool same_function<R (*)(A...), S (*)(B...)> = same_passing<R, S>() &&
                                                                                       (same_passing<A, B>() && ...);

#define FUNCTION(symbol, ...) \
    static_assert(same_function<decltype(cuda::Driver::symbol), decltype(&::symbol)>, #symbol);
#include "runtime/cuda/driver.def"

#define SAME(ours, theirs) static_assert(unsigned(cuda::ours) == unsigned(theirs), #theirs)
SAME(Result::Success, CUDA_SUCCESS);
SAME(Result::InvalidValue, CUDA_ERROR_INVALID_VALUE);
SAME(Result::OutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
SAME(Result::NoDevice, CUDA_ERROR_NO_DEVICE);
SAME(Result::InvalidPtx, CUDA_ERROR_INVALID_PTX);
SAME(Result::UnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SAME(Result::NotFound, CUDA_ERROR_NOT_FOUND);
SAME(Result::IllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(Result::LaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT);
SAME(Result::Assert, CUDA_ERROR_ASSERT);
SAME(Result::HardwareStackError, CUDA_ERROR_HARDWARE_STACK_ERROR);
SAME(Result::IllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION);
SAME(Result::MisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS);
SAME(Result::InvalidAddressSpace, CUDA_ERROR_INVALID_ADDRESS_SPACE);
SAME(Result::InvalidPc, CUDA_ERROR_INVALID_PC);
SAME(Result::LaunchFailed, CUDA_ERROR_LAUNCH_FAILED);

SAME(DeviceAttribute::MaxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(DeviceAttribute::MaxBlockDimX, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
SAME(DeviceAttribute::MaxBlockDimY, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
SAME(DeviceAttribute::MaxBlockDimZ, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
SAME(DeviceAttribute::MaxGridDimX, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
SAME(DeviceAttribute::MaxGridDimY, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
SAME(DeviceAttribute::MaxGridDimZ, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
SAME(DeviceAttribute::MaxSharedMemoryPerBlock, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
SAME(DeviceAttribute::WarpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
SAME(DeviceAttribute::MultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(DeviceAttribute::ComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(DeviceAttribute::ComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(DeviceAttribute::MaxSharedMemoryPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);

SAME(FunctionAttribute::SharedSizeBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME(FunctionAttribute::MaxDynamicSharedSizeBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);

SAME(BoxCopy::MemoryType::Host, CU_MEMORYTYPE_HOST);
SAME(BoxCopy::MemoryType::Device, CU_MEMORYTYPE_DEVICE);

SAME(MemoryAccess::Location::Device, CU_MEM_LOCATION_TYPE_DEVICE);
SAME(MemoryAccess::Flags::None, CU_MEM_ACCESS_FLAGS_PROT_NONE);
SAME(MemoryAccess::Flags::ReadWrite, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

SAME(LaunchAttribute::Id::ProgrammaticStreamSerialization, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);

SAME(NodeParameters::Type::Conditional, CU_GRAPH_NODE_TYPE_CONDITIONAL);
SAME(ConditionalNode::Type::If, CU_GRAPH_COND_TYPE_IF);
SAME(ConditionalNode::Type::While, CU_GRAPH_COND_TYPE_WHILE);
SAME(EdgeData::programmatic, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
SAME(EdgeData::programmatic_port, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);

SAME(JitOption::ErrorLogBuffer, CU_JIT_ERROR_LOG_BUFFER);
SAME(JitOption::ErrorLogBufferSizeBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);

SAME(launch_param_end, CU_LAUNCH_PARAM_END_AS_INT);
SAME(launch_param_buffer_pointer, CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT);
SAME(launch_param_buffer_size, CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT);
#undef SAME

#define PLACE(ours, theirs)                                                                   \
    static_assert(offsetof(cuda::BoxCopy, ours) == offsetof(CUDA_MEMCPY3D, theirs), #theirs); \
    static_assert(offsetof(cuda::BoxCopy, ours) == offsetof(CUDA_MEMCPY3D_PEER, theirs), #theirs)
PLACE(from.x, srcXInBytes);
PLACE(from.type, srcMemoryType);
PLACE(from.host, srcHost);
PLACE(from.device, srcDevice);
PLACE(from.pitch, srcPitch);
PLACE(from.height, srcHeight);
PLACE(to.x, dstXInBytes);
PLACE(to.type, dstMemoryType);
PLACE(to.host, dstHost);
PLACE(to.device, dstDevice);
PLACE(to.pitch, dstPitch);
PLACE(to.height, dstHeight);
PLACE(width, WidthInBytes);
PLACE(height, Height);
PLACE(depth, Depth);
#undef PLACE

#define PLACE(ours, theirs) \
    static_assert(offsetof(cuda::LaunchConfig, ours) == offsetof(CUlaunchConfig, theirs), #theirs)
PLACE(grid_x, gridDimX);
PLACE(grid_z, gridDimZ);
PLACE(block_x, blockDimX);
PLACE(block_z, blockDimZ);
PLACE(shared_bytes, sharedMemBytes);
PLACE(stream, hStream);
PLACE(attributes, attrs);
PLACE(attribute_count, numAttrs);
#undef PLACE
static_assert(sizeof(cuda::LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(cuda::LaunchAttribute, number) == offsetof(CUlaunchAttribute, value));
static_assert(sizeof(cuda::LaunchAttribute) == sizeof(CUlaunchAttribute));

#define PLACE(ours, theirs) \
    static_assert(offsetof(cuda::NodeParameters, ours) == offsetof(CUgraphNodeParams, theirs), #theirs)
PLACE(type, type);
PLACE(conditional.handle, conditional.handle);
PLACE(conditional.type, conditional.type);
PLACE(conditional.size, conditional.size);
PLACE(conditional.bodies, conditional.phGraph_out);
PLACE(conditional.context, conditional.ctx);
PLACE(end, reserved2);
#undef PLACE
static_assert(offsetof(cuda::MemoryAccess, device) == offsetof(CUmemAccessDesc, location.id));
static_assert(offsetof(cuda::MemoryAccess, flags) == offsetof(CUmemAccessDesc, flags));
static_assert(sizeof(cuda::MemoryAccess) == sizeof(CUmemAccessDesc));
static_assert(sizeof(cuda::NodeParameters) == sizeof(CUgraphNodeParams));
static_assert(sizeof(cuda::EdgeData) == sizeof(CUgraphEdgeData));
static_assert(offsetof(cuda::EdgeData, type) == offsetof(CUgraphEdgeData, type));

static_assert(offsetof(cuda::BoxCopy, from.context) == offsetof(CUDA_MEMCPY3D_PEER, srcContext));
static_assert(offsetof(cuda::BoxCopy, to.context) == offsetof(CUDA_MEMCPY3D_PEER, dstContext));

TEST_CASE("our declarations of the driver are those of cuda.h") { SUCCEED("checked when this file was compiled"); }

}  // namespace
}  // namespace ikat::tests
#else
#include <cstdio>
#include <cstdlib>

TEST_CASE("our declarations of the driver are those of cuda.h") {
    std::puts("skipped: no cuda.h");
    std::exit(77);
}
#endif
