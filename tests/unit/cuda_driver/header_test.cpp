// SPDX-License-Identifier: Apache-2.0
// The stand-in's declarations compared with <cuda.h>, if that is installed. The compiler does the check; the program
// only reports it.
#include "tests/catch.hpp"
#if __has_include(<cuda.h>)
#include <cstddef>

#include "tools/cuda_driver/abi.hpp"

#include <cuda.h>

namespace ikat::tests {
namespace {

namespace ours = cuda_driver;

#define RESULT(value, name, text) static_assert(int(ours::name) == int(::name), #name);
#include "tools/cuda_driver/results.def"
#undef RESULT
#define DEVICE_ATTRIBUTE(value, name, ...) static_assert(int(ours::name) == int(::name), #name);
#include "tools/cuda_driver/device_attributes.def"
#undef DEVICE_ATTRIBUTE

#define SAME(name) static_assert(long(ours::name) == long(::name), #name)
SAME(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
SAME(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
SAME(CU_FUNC_ATTRIBUTE_NUM_REGS);
SAME(CU_FUNC_ATTRIBUTE_PTX_VERSION);
SAME(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
SAME(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA);
SAME(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
SAME(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH);
SAME(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
SAME(CU_FUNC_ATTRIBUTE_MAX);
SAME(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES);
SAME(CU_JIT_ERROR_LOG_BUFFER);
SAME(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME(CU_MEMORYTYPE_HOST);
SAME(CU_MEMORYTYPE_DEVICE);
SAME(CU_MEMORYTYPE_ARRAY);
SAME(CU_MEMORYTYPE_UNIFIED);
SAME(CU_POINTER_ATTRIBUTE_CONTEXT);
SAME(CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(CU_POINTER_ATTRIBUTE_BUFFER_ID);
SAME(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
SAME(CU_POINTER_ATTRIBUTE_MAPPED);
SAME(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
SAME(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
SAME(CU_EVENT_DISABLE_TIMING);
SAME(CU_LIMIT_STACK_SIZE);
SAME(CU_LIMIT_MALLOC_HEAP_SIZE);
SAME(CU_LIMIT_MAX);
SAME(CU_EVENT_INTERPROCESS);
SAME(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT);
SAME(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT);
SAME(CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE);
SAME(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
SAME(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES);
SAME(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
SAME(CU_MEMPOOL_ATTR_USED_MEM_HIGH);
SAME(CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
SAME(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
#undef SAME
#undef CU_LAUNCH_PARAM_BUFFER_POINTER
#undef CU_LAUNCH_PARAM_BUFFER_SIZE
static_assert(ours::CU_LAUNCH_PARAM_BUFFER_POINTER == CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT);
static_assert(ours::CU_LAUNCH_PARAM_BUFFER_SIZE == CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT);
static_assert(ours::legacy_stream == 1 && ours::per_thread_stream == 2);

#define SAME_SIZE(type) \
    static_assert(sizeof(ours::type) == sizeof(::type) && alignof(ours::type) == alignof(::type), #type)
#define SAME_PLACE(type, member) static_assert(offsetof(ours::type, member) == offsetof(::type, member), #member)
static_assert(sizeof(ours::CUtensorMap) == sizeof(::CUtensorMap));  // of 64 or, in newer headers, 128 bytes' alignment
SAME_SIZE(CUuuid);
SAME_SIZE(CUlaunchAttribute);
SAME_PLACE(CUlaunchAttribute, value);
SAME_SIZE(CUlaunchConfig);
SAME_PLACE(CUlaunchConfig, sharedMemBytes);
SAME_PLACE(CUlaunchConfig, hStream);
SAME_PLACE(CUlaunchConfig, attrs);
SAME_PLACE(CUlaunchConfig, numAttrs);
SAME_SIZE(CUDA_MEMCPY2D);
SAME_PLACE(CUDA_MEMCPY2D, srcDevice);
SAME_PLACE(CUDA_MEMCPY2D, dstHost);
SAME_PLACE(CUDA_MEMCPY2D, Height);
SAME_SIZE(CUDA_MEMCPY3D);
SAME_PLACE(CUDA_MEMCPY3D, srcHeight);
SAME_PLACE(CUDA_MEMCPY3D, dstDevice);
SAME_PLACE(CUDA_MEMCPY3D, Depth);
SAME_SIZE(CUDA_MEMCPY3D_PEER);
SAME_PLACE(CUDA_MEMCPY3D_PEER, srcContext);
SAME_PLACE(CUDA_MEMCPY3D_PEER, dstContext);
SAME_PLACE(CUDA_MEMCPY3D_PEER, Depth);
#undef SAME_SIZE
#undef SAME_PLACE

TEST_CASE("the stand-in's declarations are those of cuda.h") { SUCCEED("checked when this file was compiled"); }

}  // namespace
}  // namespace ikat::tests
#endif
