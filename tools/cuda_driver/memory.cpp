// SPDX-License-Identifier: Apache-2.0
// Device memory, which is the emulator's, host memory that kernels reach, and pools.
#include <unistd.h>

#include <cstring>

#include "tools/cuda_driver/state.hpp"

namespace ikat::cuda_driver {
namespace {

CUresult allocate_host(void** out, std::size_t bytes, unsigned flags) {
    return in_context("cuMemHostAlloc", [&](Driver& its, Context& context) {
        require(out && bytes > 0 && flags <= all_host_flags);
        if (bytes > its.properties.memory_bytes) refuse(CUDA_ERROR_OUT_OF_MEMORY);
        CUdeviceptr address = 0;
        try {
            address = its.memory.allocate_mapped(bytes, "page-locked memory");
        } catch (const Error&) { refuse(CUDA_ERROR_OUT_OF_MEMORY); }
        its.host_ranges[address] = {&context, bytes, flags, false, address};
        *out = reinterpret_cast<void*>(address);
    });
}

/// The page-locked range that begins there, if it is registered or not as asked; else `otherwise`.
auto range_at(Driver& its, void* memory, bool is_registered, CUresult otherwise) {
    const auto found = its.host_ranges.find(reinterpret_cast<std::uintptr_t>(memory));
    if (found == its.host_ranges.end() || found->second.is_registered != is_registered) refuse(otherwise);
    return found;
}

CUresult allocate_async(const char* function, CUdeviceptr* address, std::size_t bytes, CUstream stream) {
    return on_stream(function, stream, [&](Driver& its, Context& context) {
        require(address);
        *address = its.allocate(context, bytes);
    });
}

/// All there is to do where managed memory is to move: there is only one memory.
CUresult check_managed(const char* function, CUdeviceptr address, std::size_t bytes, CUstream stream) {
    return on_stream(function, stream, [&](Driver& its, Context&) {
        const auto [begin, size] = its.memory.buffer_of(address);
        require(its.managed.contains(begin) && bytes <= begin + size - address);
    });
}

CUresult default_pool(const char* function, CUmemoryPool* pool, CUdevice device) {
    return initialised(function, [&](Driver& its) {
        check_device(device);
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
        if (attribute >= CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) stored = its.used_bytes;  // nothing sets these
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

/// What is known of an address; 0, and false, where it has no such attribute.
bool pointer_attribute(Driver& its, void* to, CUpointer_attribute which, CUdeviceptr address) {
    const auto [begin, bytes] = its.memory.buffer_of(address);
    const auto host = its.host_range(address);
    const bool is_host = host != its.host_ranges.end();
    const auto owner = its.allocations.find(begin);
    const bool is_device = owner != its.allocations.end();
    const bool is_managed = its.managed.contains(begin);
    const auto give = [&](bool has, auto value) { return put(to, has ? value : decltype(value){}), has; };
    switch (which) {
        case CU_POINTER_ATTRIBUTE_CONTEXT: {
            const Context* const context = is_device ? owner->second : is_host ? host->second.context : nullptr;
            return give(context, context ? context->handle : nullptr);
        }
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            return give(is_device || is_host, is_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
            return give(is_device || is_host, is_host ? host->second.device + (address - host->first) : address);
        case CU_POINTER_ATTRIBUTE_HOST_POINTER: return give(is_host || is_managed, address);
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: return give(is_device || is_host, 0);
        case CU_POINTER_ATTRIBUTE_IS_MANAGED: return give(is_device || is_host, int(is_managed));
        case CU_POINTER_ATTRIBUTE_BUFFER_ID: return give(is_device || is_host, is_host ? host->first : begin);
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return give(is_device || is_host, 0);
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return give(is_device, begin);
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return give(is_device, bytes);
        case CU_POINTER_ATTRIBUTE_MAPPED: return give(true, int(is_device || is_host));
    }
    return give(false, 0);
}

}  // namespace

API(cuMemAlloc_v2, CUdeviceptr* address, std::size_t bytes) {
    return in_context("cuMemAlloc", [&](Driver& its, Context& context) {
        require(address);
        *address = its.allocate(context, bytes);
    });
}
API(cuMemAllocPitch_v2, CUdeviceptr* address, std::size_t* pitch, std::size_t width, std::size_t height,
    unsigned element_bytes) {
    return in_context("cuMemAllocPitch", [&](Driver& its, Context& context) {
        require(address && pitch && width > 0 && height > 0);
        require(element_bytes == 4 || element_bytes == 8 || element_bytes == 16);
        const std::size_t aligned = sum(width, 511) / 512 * 512;
        *address = its.allocate(context, product(aligned, height));
        *pitch = aligned;
    });
}
API(cuMemFree_v2, CUdeviceptr address) {
    return in_context("cuMemFree", [&](Driver& its, Context&) { its.release(address); });
}
API(cuMemGetInfo_v2, std::size_t* free, std::size_t* total) {
    return in_context("cuMemGetInfo", [&](Driver& its, Context&) {
        require(free && total);
        *total = its.properties.memory_bytes;
        *free = its.properties.memory_bytes - its.used_bytes;
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
    return in_context("cuMemFreeHost", [&](Driver& its, Context&) {
        const auto found = range_at(its, memory, false, CUDA_ERROR_INVALID_VALUE);
        its.release_host(found->second);
        its.host_ranges.erase(found);
    });
}
API(cuMemHostGetFlags, unsigned* flags, void* memory) {
    return in_context("cuMemHostGetFlags", [&](Driver& its, Context&) {
        const auto found = its.host_range(reinterpret_cast<std::uintptr_t>(memory));
        require(flags && found != its.host_ranges.end() && !found->second.is_registered);
        *flags = found->second.flags;
    });
}
API(cuMemHostRegister_v2, void* memory, std::size_t bytes, unsigned flags) {
    return in_context("cuMemHostRegister", [&](Driver& its, Context& context) {
        require(memory && bytes > 0 && flags <= all_host_flags);
        const auto begin = reinterpret_cast<std::uintptr_t>(memory);
        const auto next = its.host_ranges.lower_bound(begin);
        const bool overlaps = its.host_range(begin) != its.host_ranges.end() ||
                              (next != its.host_ranges.end() && next->first < sum(begin, bytes));
        if (overlaps) refuse(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
        const std::uintptr_t offset = begin % std::uintptr_t(sysconf(_SC_PAGESIZE));
        void* const page = reinterpret_cast<void*>(begin - offset);
        const CUdeviceptr device = its.memory.adopt(page, sum(offset, bytes), "registered memory") + offset;
        its.host_ranges[begin] = {&context, bytes, flags, true, device};
    });
}
API(cuMemHostUnregister, void* memory) {
    return in_context("cuMemHostUnregister", [&](Driver& its, Context&) {
        const auto found = range_at(its, memory, true, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
        its.release_host(found->second);
        its.host_ranges.erase(found);
    });
}
API(cuMemHostGetDevicePointer_v2, CUdeviceptr* address, void* memory, unsigned flags) {
    return in_context("cuMemHostGetDevicePointer", [&](Driver& its, Context&) {
        require(address && flags == 0);
        const auto host = reinterpret_cast<std::uintptr_t>(memory);
        const auto found = its.host_range(host);
        require(found != its.host_ranges.end());
        *address = found->second.device + (host - found->first);
    });
}

API(cuMemAllocManaged, CUdeviceptr* address, std::size_t bytes, unsigned flags) {
    return in_context("cuMemAllocManaged", [&](Driver& its, Context& context) {
        constexpr unsigned attach_global = 1, attach_host = 2;
        require(address && (flags == attach_global || flags == attach_host));
        *address = its.allocate_managed(context, bytes);
    });
}
API(cuMemPrefetchAsync, CUdeviceptr address, std::size_t bytes, CUdevice, CUstream stream) {
    return check_managed("cuMemPrefetchAsync", address, bytes, stream);
}
ALIAS(cuMemPrefetchAsync_ptsz, cuMemPrefetchAsync);
API(cuMemPrefetchAsync_v2, CUdeviceptr address, std::size_t bytes, CUmemLocation, unsigned, CUstream stream) {
    return check_managed("cuMemPrefetchAsync", address, bytes, stream);
}
ALIAS(cuMemPrefetchAsync_v2_ptsz, cuMemPrefetchAsync_v2);
API(cuMemAdvise, CUdeviceptr address, std::size_t bytes, unsigned, CUdevice) {
    return check_managed("cuMemAdvise", address, bytes, nullptr);
}
API(cuMemAdvise_v2, CUdeviceptr address, std::size_t bytes, unsigned, CUmemLocation) {
    return check_managed("cuMemAdvise", address, bytes, nullptr);
}
API(cuStreamAttachMemAsync, CUstream stream, CUdeviceptr address, std::size_t bytes, unsigned) {
    return check_managed("cuStreamAttachMemAsync", address, bytes, stream);
}
ALIAS(cuStreamAttachMemAsync_ptsz, cuStreamAttachMemAsync);

API(cuMemAllocAsync, CUdeviceptr* address, std::size_t bytes, CUstream stream) {
    return allocate_async("cuMemAllocAsync", address, bytes, stream);
}
ALIAS(cuMemAllocAsync_ptsz, cuMemAllocAsync);
API(cuMemAllocFromPoolAsync, CUdeviceptr* address, std::size_t bytes, CUmemoryPool pool, CUstream stream) {
    const CUresult known = initialised("cuMemAllocFromPoolAsync", [&](Driver& its) { its.pools.at(pool); });
    return known == CUDA_SUCCESS ? allocate_async("cuMemAllocFromPoolAsync", address, bytes, stream) : known;
}
ALIAS(cuMemAllocFromPoolAsync_ptsz, cuMemAllocFromPoolAsync);
API(cuMemFreeAsync, CUdeviceptr address, CUstream stream) {
    return on_stream("cuMemFreeAsync", stream, [&](Driver& its, Context&) { its.release(address); });
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
        for (unsigned i = 0; i < count; ++i) {
            require(values[i]);
            pointer_attribute(its, values[i], which[i], address);
        }
    });
}

}  // namespace ikat::cuda_driver
