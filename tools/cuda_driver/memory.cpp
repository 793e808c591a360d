// SPDX-License-Identifier: Apache-2.0
// Device memory, which is the emulator's, page-locked host memory, and pools.
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "tools/cuda_driver/state.hpp"

namespace ikat::cuda_driver {
namespace {

CUdeviceptr allocate(Driver& its, Context& context, std::size_t bytes) {
    require(bytes > 0);
    try {
        const CUdeviceptr address = its.memory.allocate(bytes);
        context.memory.insert(address);
        return address;
    } catch (const Error&) { refuse(CUDA_ERROR_OUT_OF_MEMORY); }
}

void release(Driver& its, Context& context, CUdeviceptr address) {
    if (address == 0) return;
    require(context.memory.contains(address));
    its.release(context, address);
}

std::uint64_t used_bytes(const Driver& its, const Context& context) {
    std::uint64_t sum = 0;
    for (const CUdeviceptr address : context.memory) sum += its.memory.buffer_of(address).bytes;
    return sum;
}

CUresult allocate_host(void** out, std::size_t bytes, unsigned flags) {
    return in_context("cuMemHostAlloc", [&](Driver&, Context& context) {
        require(out && bytes > 0);
        const std::size_t page = std::size_t(sysconf(_SC_PAGESIZE));
        void* const memory = std::aligned_alloc(page, (bytes + page - 1) / page * page);
        if (!memory) refuse(CUDA_ERROR_OUT_OF_MEMORY);
        context.host_memory[memory] = flags;
        *out = memory;
    });
}

CUresult allocate_async(const char* function, CUdeviceptr* address, std::size_t bytes, CUstream stream) {
    return on_stream(function, stream, [&](Driver& its, Context& context) {
        require(address);
        *address = allocate(its, context, bytes);
    });
}

CUresult default_pool(const char* function, CUmemoryPool* pool, CUdevice device) {
    return initialised(function, [&](Driver& its) {
        if (device != 0) refuse(CUDA_ERROR_INVALID_DEVICE);
        require(pool);
        *pool = reinterpret_cast<CUmemoryPool>(its.default_pool);
    });
}

/// Attributes of a pool up to this one are an int, the others 64 bits.
bool is_narrow(CUmemPool_attribute attribute) { return attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES; }

CUresult pool_attribute(const char* function, CUmemoryPool pool, CUmemPool_attribute attribute, void* value,
                        bool write) {
    return initialised(function, [&](Driver& its) {
        require(value && attribute >= 1 && attribute <= CU_MEMPOOL_ATTR_USED_MEM_HIGH);
        std::uint64_t& stored = its.pools.at(pool).attributes[attribute];
        const std::size_t bytes = is_narrow(attribute) ? sizeof(int) : sizeof stored;
        if (write)
            std::memcpy(&stored, value, bytes);
        else
            std::memcpy(value, &stored, bytes);
    });
}

template <class T>
void put(void* to, T value) {
    std::memcpy(to, &value, sizeof value);
}

/// What is known of an address. False if there is no such attribute of it.
bool pointer_attribute(Driver& its, void* to, CUpointer_attribute which, CUdeviceptr address) {
    const auto [begin, bytes] = its.memory.buffer_of(address);
    const Context& context = current_context();
    const bool is_host = context.host_memory.contains(reinterpret_cast<void*>(address));
    if (!bytes && !is_host) return false;
    switch (which) {
        case CU_POINTER_ATTRIBUTE_CONTEXT: return put(to, current_handle()), true;
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            return put(to, is_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE), true;
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return !is_host && (put(to, address), true);
        case CU_POINTER_ATTRIBUTE_HOST_POINTER: return is_host && (put(to, address), true);
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        case CU_POINTER_ATTRIBUTE_IS_MANAGED: return put(to, 0), true;
        case CU_POINTER_ATTRIBUTE_BUFFER_ID: return put(to, is_host ? address : begin), true;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return put(to, 0), true;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return !is_host && (put(to, begin), true);
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return !is_host && (put(to, std::size_t(bytes)), true);
        case CU_POINTER_ATTRIBUTE_MAPPED: return put(to, !is_host), true;
    }
    return false;
}

}  // namespace

API(cuMemAlloc_v2, CUdeviceptr* address, std::size_t bytes) {
    return in_context("cuMemAlloc", [&](Driver& its, Context& context) {
        require(address);
        *address = allocate(its, context, bytes);
    });
}
API(cuMemAllocPitch_v2, CUdeviceptr* address, std::size_t* pitch, std::size_t width, std::size_t height,
    unsigned element_bytes) {
    return in_context("cuMemAllocPitch", [&](Driver& its, Context& context) {
        require(address && pitch && width > 0 && height > 0);
        require(element_bytes == 4 || element_bytes == 8 || element_bytes == 16);
        *pitch = (width + 511) / 512 * 512;
        *address = allocate(its, context, *pitch * height);
    });
}
API(cuMemFree_v2, CUdeviceptr address) {
    return in_context("cuMemFree", [&](Driver& its, Context& context) { release(its, context, address); });
}
API(cuMemGetInfo_v2, std::size_t* free, std::size_t* total) {
    return in_context("cuMemGetInfo", [&](Driver& its, Context& context) {
        require(free && total);
        *total = its.memory_bytes;
        *free = its.memory_bytes - std::min(its.memory_bytes, used_bytes(its, context));
    });
}
API(cuMemGetAddressRange_v2, CUdeviceptr* begin, std::size_t* size, CUdeviceptr address) {
    return in_context("cuMemGetAddressRange", [&](Driver& its, Context&) {
        const auto [base, bytes] = its.memory.buffer_of(address);
        if (bytes == 0) refuse(CUDA_ERROR_NOT_FOUND);
        if (begin) *begin = base;
        if (size) *size = bytes;
    });
}

API(cuMemHostAlloc, void** memory, std::size_t bytes, unsigned flags) { return allocate_host(memory, bytes, flags); }
API(cuMemAllocHost_v2, void** memory, std::size_t bytes) { return allocate_host(memory, bytes, 0); }
API(cuMemFreeHost, void* memory) {
    return in_context("cuMemFreeHost", [&](Driver&, Context& context) {
        require(context.host_memory.erase(memory) == 1);
        std::free(memory);
    });
}
API(cuMemHostGetFlags, unsigned* flags, void* memory) {
    return in_context("cuMemHostGetFlags", [&](Driver&, Context& context) {
        const auto found = context.host_memory.find(memory);
        require(flags && found != context.host_memory.end());
        *flags = found->second;
    });
}
API(cuMemHostRegister_v2, void* memory, std::size_t bytes, unsigned) {
    return in_context("cuMemHostRegister", [&](Driver&, Context& context) {
        require(memory && bytes > 0);
        if (!context.registered.try_emplace(memory, bytes).second) refuse(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    });
}
API(cuMemHostUnregister, void* memory) {
    return in_context("cuMemHostUnregister", [&](Driver&, Context& context) {
        if (context.registered.erase(memory) == 0) refuse(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    });
}

API(cuMemAllocAsync, CUdeviceptr* address, std::size_t bytes, CUstream stream) {
    return allocate_async("cuMemAllocAsync", address, bytes, stream);
}
ALIAS(cuMemAllocAsync_ptsz, cuMemAllocAsync);
API(cuMemAllocFromPoolAsync, CUdeviceptr* address, std::size_t bytes, CUmemoryPool, CUstream stream) {
    return allocate_async("cuMemAllocFromPoolAsync", address, bytes, stream);
}
ALIAS(cuMemAllocFromPoolAsync_ptsz, cuMemAllocFromPoolAsync);
API(cuMemFreeAsync, CUdeviceptr address, CUstream stream) {
    return on_stream("cuMemFreeAsync", stream, [&](Driver& its, Context& context) { release(its, context, address); });
}
ALIAS(cuMemFreeAsync_ptsz, cuMemFreeAsync);
API(cuDeviceGetDefaultMemPool, CUmemoryPool* pool, CUdevice device) {
    return default_pool("cuDeviceGetDefaultMemPool", pool, device);
}
API(cuDeviceGetMemPool, CUmemoryPool* pool, CUdevice device) {
    return default_pool("cuDeviceGetMemPool", pool, device);
}
API(cuMemPoolGetAttribute, CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
    return pool_attribute("cuMemPoolGetAttribute", pool, attribute, value, false);
}
API(cuMemPoolSetAttribute, CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
    return pool_attribute("cuMemPoolSetAttribute", pool, attribute, value, true);
}
API(cuMemPoolTrimTo, CUmemoryPool pool, std::size_t) {
    return initialised("cuMemPoolTrimTo", [&](Driver& its) { its.pools.at(pool); });
}

API(cuPointerGetAttribute, void* value, CUpointer_attribute which, CUdeviceptr address) {
    return in_context("cuPointerGetAttribute",
                      [&](Driver& its, Context&) { require(value && pointer_attribute(its, value, which, address)); });
}
API(cuPointerGetAttributes, unsigned count, CUpointer_attribute* which, void** values, CUdeviceptr address) {
    return in_context("cuPointerGetAttributes", [&](Driver& its, Context&) {
        require(which && values);
        for (unsigned i = 0; i < count; ++i)
            if (!pointer_attribute(its, values[i], which[i], address)) put(values[i], 0);
    });
}

}  // namespace ikat::cuda_driver
