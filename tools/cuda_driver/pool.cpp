// SPDX-License-Identifier: Apache-2.0
// Memory pools. Each allocation is a buffer of its own, so that what is beyond its end or after its release is found;
// a pool only counts: what is used, and what a driver would have reserved for it.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "tools/cuda_driver/graphs/capture.hpp"
#include "tools/cuda_driver/pool.hpp"

namespace ikat::cuda_driver {
namespace {

Pool& pool_at(Driver& its, CUmemoryPool handle) {
    Pool* const pool = its.pools.find(handle);
    if (!pool || pool->is_destroyed) refuse(CUDA_ERROR_INVALID_VALUE, "there is no such memory pool");
    return *pool;
}

void check_location(const CUmemLocation* location, unsigned type) {
    require(location && (type == CU_MEM_ALLOCATION_TYPE_PINNED));
    if (location->type == CU_MEM_LOCATION_TYPE_HOST || location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA)
        refuse(CUDA_ERROR_NOT_SUPPORTED, "pools of memory of the host are not emulated", "use cuMemHostAlloc");
    require(location->type == CU_MEM_LOCATION_TYPE_DEVICE);
    check_device(location->id);
}

CUresult get_pool(const char* name, CUmemoryPool* out, CUdevice device, std::uintptr_t Gpu::*which) {
    return initialised(name, [&](Driver& its) {
        const Gpu& gpu = its.gpu(device);
        require(out);
        *out = reinterpret_cast<CUmemoryPool>(gpu.*which);
    });
}

CUresult get_pool(const char* name, CUmemoryPool* out, const CUmemLocation* location, unsigned type,
                  std::uintptr_t Gpu::*which) {
    return initialised(name, [&](Driver& its) {
        check_location(location, type);
        require(out);
        *out = reinterpret_cast<CUmemoryPool>(its.gpu(location->id).*which);
    });
}

void set_current(Driver& its, CUdevice device, CUmemoryPool pool) {
    require(pool_at(its, pool).props.location.id == device);
    its.gpu(device).current_pool = reinterpret_cast<std::uintptr_t>(pool);
}

CUresult allocate(const char* name, CUdeviceptr* out, std::size_t bytes, std::optional<CUmemoryPool> asked,
                  CUstream stream) {
    return on_stream(
        name, stream,
        [&](Driver& its, Context& context) {
            require(out);
            const auto handle = asked.value_or(reinterpret_cast<CUmemoryPool>(its.gpu(context).current_pool));
            Pool& pool = pool_at(its, handle);
            if (pool.props.location.id != context.device)
                refuse(CUDA_ERROR_NOT_SUPPORTED, "a stream gets memory from a pool of another device",
                       "take it on a stream of that device");
            if (Capture* const capture = capture_of(its, context, stream)) {
                CUDA_MEM_ALLOC_NODE_PARAMS params{.poolProps = pool.props,
                                                  .accessDescs = nullptr,
                                                  .accessDescCount = 0,
                                                  .bytesize = bytes,
                                                  .dptr = 0};
                params.poolProps.maxSize = 0;
                capture->add(id_of(stream), alloc_node(its, *capture->graph, params));
                *out = params.dptr;
                return;
            }
            if (pool.props.maxSize != 0 && bytes > pool.props.maxSize - std::min(pool.props.maxSize, pool.used))
                refuse(CUDA_ERROR_OUT_OF_MEMORY, fmt::format("the pool has at most {} bytes, of which {} are used",
                                                             pool.props.maxSize, pool.used));
            *out = its.allocate(context, bytes);
            its.gpu(context).device.run(id_of(stream), emulator::work::Allocate{*out, bytes}, true);
            its.pooled[*out] = {reinterpret_cast<std::uintptr_t>(handle), bytes};
            pool.used += bytes;
            pool.used_high = std::max(pool.used_high, pool.used);
            pool.reserved = std::max(pool.reserved, pool.used);
            pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
        },
        InCapture::IsANode);
}

/// Attributes of a pool up to this one are an int, the others 64 bits.
bool is_narrow(CUmemPool_attribute attribute) { return attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES; }

void get(const Pool& pool, CUmemPool_attribute attribute, void* value) {
    const auto put = [&](auto number) { std::memcpy(value, &number, sizeof number); };
    switch (attribute) {
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: return put(pool.threshold);
        case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: return put(pool.reserved);
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: return put(pool.reserved_high);
        case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: return put(pool.used);
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH: return put(pool.used_high);
        default: require(attribute >= 1 && is_narrow(attribute)); return put(pool.reuse[attribute - 1]);
    }
}

void set(Pool& pool, CUmemPool_attribute attribute, const void* value) {
    std::uint64_t wide = 0;
    if (attribute < CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES) refuse(CUDA_ERROR_INVALID_VALUE);
    std::memcpy(&wide, value, is_narrow(attribute) ? sizeof(int) : sizeof wide);
    switch (attribute) {
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: pool.threshold = wide; return;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
            if (wide != 0) refuse(CUDA_ERROR_INVALID_VALUE, "a mark is only set to 0");
            (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? pool.used_high : pool.reserved_high) =
                attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? pool.used : pool.reserved;
            return;
        default: require(is_narrow(attribute)); pool.reuse[attribute - 1] = wide != 0;
    }
}

/// Whether a device may use the memory of a pool.
unsigned access_of(const Pool& pool, const CUmemLocation& location) {
    if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CU_MEM_ACCESS_FLAGS_PROT_NONE;
    check_device(location.id);
    const bool may = location.id == pool.props.location.id || pool.users.contains(location.id);
    return may ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

/// What devices may from now on do with the memory of a pool.
void set_access(Pool& pool, std::span<const CUmemAccessDesc> access) {
    std::set<CUdevice> users = pool.users;
    for (const auto& [location, flags] : access) {
        require(location.type == CU_MEM_LOCATION_TYPE_DEVICE);
        check_device(location.id);
        if (flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
            refuse(CUDA_ERROR_NOT_SUPPORTED, "memory of a pool is read and written, or neither");
        require(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE || flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
        const bool is_allowed = flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        if (location.id != pool.props.location.id)
            is_allowed ? void(users.insert(location.id)) : void(users.erase(location.id));
        else if (!is_allowed)
            refuse(CUDA_ERROR_INVALID_VALUE, "the device that a pool is on reads and writes it");
    }
    pool.users = std::move(users);
}

/// What a driver gives back to the system, down to so much.
void trim(Pool& pool, std::uint64_t kept) { pool.reserved = std::max(pool.used, std::min(pool.reserved, kept)); }

}  // namespace

void note_pool_free(Driver& its, CUdeviceptr address) {
    const auto found = its.pooled.find(address);
    if (found == its.pooled.end()) return;
    const auto [handle, bytes] = found->second;
    its.pooled.erase(found);
    Pool* const pool = its.pools.find(handle);
    if (!pool) return;
    pool->used -= bytes;
    if (pool->is_destroyed && pool->used == 0) its.pools.remove(handle);
}

void trim_pools(Driver& its) {
    its.pools.for_each([](Pool& pool) { trim(pool, pool.threshold); });
}

API(cuMemAllocAsync, CUdeviceptr* address, std::size_t bytes, CUstream stream) {
    return allocate("cuMemAllocAsync", address, bytes, {}, stream);
}
API(cuMemAllocFromPoolAsync, CUdeviceptr* address, std::size_t bytes, CUmemoryPool pool, CUstream stream) {
    return allocate("cuMemAllocFromPoolAsync", address, bytes, pool, stream);
}
API(cuMemFreeAsync, CUdeviceptr address, CUstream stream) {
    return on_stream(
        "cuMemFreeAsync", stream,
        [&](Driver& its, Context& context) {
            if (Capture* const capture = capture_of(its, context, stream)) {
                capture->add(id_of(stream), free_node(*capture->graph, address));
                return;
            }
            Gpu& gpu = its.gpu(context);
            const auto buffer = gpu.device.memory().buffer(address);
            require(address == 0 || (buffer.context && buffer.address == address));
            if (address == 0) return;
            gpu.device.run(id_of(stream), emulator::work::Free{address, buffer.bytes}, true);
            note_freed(address);
            note_pool_free(its, address);
        },
        InCapture::IsANode);
}

API(cuMemPoolCreate, CUmemoryPool* out, const CUmemPoolProps* props) {
    return initialised("cuMemPoolCreate", [&](Driver& its) {
        require(out && props);
        check_location(&props->location, props->allocType);
        if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
            refuse(CUDA_ERROR_NOT_SUPPORTED, "memory is not shared with other processes",
                   "ask for CU_MEM_HANDLE_TYPE_NONE");
        for (const unsigned char each : props->reserved) require(each == 0);
        its.give(out, its.pools, Pool{.props = *props});
    });
}
API(cuMemPoolDestroy, CUmemoryPool handle) {
    return initialised("cuMemPoolDestroy", [&](Driver& its) {
        Pool& pool = pool_at(its, handle);
        const auto number = reinterpret_cast<std::uintptr_t>(handle);
        Gpu& gpu = its.gpu(pool.props.location.id);
        if (number == gpu.default_pool) refuse(CUDA_ERROR_INVALID_VALUE, "the default pool cannot be destroyed");
        if (gpu.current_pool == number) gpu.current_pool = gpu.default_pool;
        pool.is_destroyed = true;  // what it has stays until that is freed
        if (pool.used == 0) its.pools.remove(handle);
    });
}
API(cuDeviceGetDefaultMemPool, CUmemoryPool* pool, CUdevice device) {
    return get_pool("cuDeviceGetDefaultMemPool", pool, device, &Gpu::default_pool);
}
API(cuDeviceGetMemPool, CUmemoryPool* pool, CUdevice device) {
    return get_pool("cuDeviceGetMemPool", pool, device, &Gpu::current_pool);
}
API(cuDeviceSetMemPool, CUdevice device, CUmemoryPool pool) {
    return initialised("cuDeviceSetMemPool", [&](Driver& its) {
        check_device(device);
        set_current(its, device, pool);
    });
}
API(cuMemGetDefaultMemPool, CUmemoryPool* pool, CUmemLocation* location, unsigned type) {
    return get_pool("cuMemGetDefaultMemPool", pool, location, type, &Gpu::default_pool);
}
API(cuMemGetMemPool, CUmemoryPool* pool, CUmemLocation* location, unsigned type) {
    return get_pool("cuMemGetMemPool", pool, location, type, &Gpu::current_pool);
}
API(cuMemSetMemPool, CUmemLocation* location, unsigned type, CUmemoryPool pool) {
    return initialised("cuMemSetMemPool", [&](Driver& its) {
        check_location(location, type);
        set_current(its, location->id, pool);
    });
}
API(cuMemPoolGetAttribute, CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
    return initialised("cuMemPoolGetAttribute", [&](Driver& its) {
        require(value);
        get(pool_at(its, pool), attribute, value);
    });
}
API(cuMemPoolSetAttribute, CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
    return initialised("cuMemPoolSetAttribute", [&](Driver& its) {
        require(value);
        set(pool_at(its, pool), attribute, value);
    });
}
API(cuMemPoolTrimTo, CUmemoryPool pool, std::size_t kept) {
    return initialised("cuMemPoolTrimTo", [&](Driver& its) { trim(pool_at(its, pool), kept); });
}
API(cuMemPoolSetAccess, CUmemoryPool handle, const CUmemAccessDesc* access, std::size_t count) {
    return when_idle("cuMemPoolSetAccess", [&](Driver& its) {
        Pool& pool = pool_at(its, handle);
        require(access || count == 0);
        set_access(pool, {access, count});
        its.update_peers();
    });
}
API(cuMemPoolGetAccess, unsigned* flags, CUmemoryPool pool, CUmemLocation* location) {
    return initialised("cuMemPoolGetAccess", [&](Driver& its) {
        require(flags && location);
        *flags = access_of(pool_at(its, pool), *location);
    });
}

}  // namespace ikat::cuda_driver
