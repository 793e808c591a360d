// SPDX-License-Identifier: Apache-2.0
// Device memory, which is the emulator's, and host memory that kernels reach.
#include <cstring>

#include "tools/cuda_driver/graphs/capture.hpp"

namespace ikat::cuda_driver {
namespace {

CUresult allocate_host(void** out, std::size_t bytes, unsigned flags) {
    return in_context("cuMemHostAlloc", [&](Driver& its, Context& context) {
        check_unsafe_call();
        require(out && bytes > 0 && flags <= all_host_flags);
        if (bytes > its.properties.memory_bytes) refuse(CUDA_ERROR_OUT_OF_MEMORY);
        try {
            *out = reinterpret_cast<void*>(its.gpu(context).device.memory().allocate_pinned(context.id, bytes, flags));
        } catch (const Error&) { refuse(CUDA_ERROR_OUT_OF_MEMORY); }
    });
}

/// Frees or unregisters page-locked memory; CUDA_ERROR `otherwise` if none of this kind begins there.
CUresult release_host(const char* function, void* memory, bool is_registered, CUresult otherwise) {
    return in_context(function, [&](Driver& its, Context&) {
        check_unsafe_call();
        emulator::OwnedMemory& home = its.gpu_at(reinterpret_cast<std::uintptr_t>(memory)).device.memory();
        if (!home.release_pinned(memory, is_registered)) refuse(otherwise);
    });
}

/// All there is to do where managed memory is to move: there is only one memory.
CUresult check_managed(const char* function, CUdeviceptr address, std::size_t bytes, CUstream stream) {
    return on_stream(function, stream, [&](Driver& its, Context&) {
        const auto buffer = its.gpu_at(address).device.memory().buffer(address);
        require(buffer.is_managed && bytes <= buffer.address + buffer.bytes - address);
    });
}

template <class T>
void put(void* to, T value) {
    std::memcpy(to, &value, sizeof value);
}

/// What is known of an address; 0, and false, where it has no such attribute.
bool pointer_attribute(Driver& its, void* to, CUpointer_attribute which, CUdeviceptr address) {
    Gpu& gpu = its.gpu_at(address);
    const auto buffer = gpu.device.memory().buffer(address);
    const auto host = gpu.device.memory().pinned(address);
    const bool is_device = buffer.context.has_value();
    const auto give = [&](bool has, auto value) { return put(to, has ? value : decltype(value){}), has; };
    switch (which) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            return give(is_device || host, is_device ? handle_of(*buffer.context)
                                           : host    ? handle_of(host->context)
                                                     : CUcontext());
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            return give(is_device || host, host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
            return give(is_device || host, host ? host->device + (address - host->begin) : address);
        case CU_POINTER_ATTRIBUTE_HOST_POINTER: return give(host || buffer.is_managed, address);
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: return give(is_device || host, 0);
        case CU_POINTER_ATTRIBUTE_IS_MANAGED: return give(is_device || host, int(buffer.is_managed));
        case CU_POINTER_ATTRIBUTE_BUFFER_ID: return give(is_device || host, host ? host->begin : buffer.address);
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return give(is_device || host, gpu.ordinal);
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return give(is_device, buffer.address);
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return give(is_device, buffer.bytes);
        case CU_POINTER_ATTRIBUTE_MAPPED: return give(true, int(is_device || host));
    }
    return give(false, 0);
}

}  // namespace

API(cuMemAlloc_v2, CUdeviceptr* address, std::size_t bytes) {
    return in_context("cuMemAlloc", [&](Driver& its, Context& context) {
        check_unsafe_call();
        require(address);
        *address = its.allocate(context, bytes);
    });
}
API(cuMemAllocPitch_v2, CUdeviceptr* address, std::size_t* pitch, std::size_t width, std::size_t height,
    unsigned element_bytes) {
    return in_context("cuMemAllocPitch", [&](Driver& its, Context& context) {
        check_unsafe_call();
        require(address && pitch && width > 0 && height > 0);
        require(element_bytes == 4 || element_bytes == 8 || element_bytes == 16);
        const std::size_t aligned = sum(width, 511) / 512 * 512;
        *address = its.allocate(context, product(aligned, height));
        *pitch = aligned;
    });
}
API(cuMemFree_v2, CUdeviceptr address) {
    if (const CUresult result = permitted("cuMemFree"); result != CUDA_SUCCESS) return result;
    const CUresult known = in_context("cuMemFree", [](Driver&, Context&) { check_unsafe_call(); });
    if (known != CUDA_SUCCESS) return known;
    if (const CUresult result = synchronise("cuMemFree"); result != CUDA_SUCCESS) return result;       // a device waits
    if (const CUresult result = drained("cuMemFree", address); result != CUDA_SUCCESS) return result;  // ... its own
    return in_context("cuMemFree", [&](Driver& its, Context&) { its.release(address); });
}
API(cuMemGetInfo_v2, std::size_t* free, std::size_t* total) {
    return in_context("cuMemGetInfo", [&](Driver& its, Context& context) {
        require(free && total);
        *total = its.properties.memory_bytes;
        *free = its.properties.memory_bytes - its.gpu(context).device.memory().used_bytes();
    });
}
API(cuMemGetAddressRange_v2, CUdeviceptr* begin, std::size_t* size, CUdeviceptr address) {
    return in_context("cuMemGetAddressRange", [&](Driver& its, Context&) {
        const auto [base, bytes] = its.gpu_at(address).device.memory().space().buffer_of(address);
        if (bytes == 0) refuse(CUDA_ERROR_NOT_FOUND);
        if (begin) *begin = base;
        if (size) *size = bytes;
    });
}

API(cuMemHostAlloc, void** memory, std::size_t bytes, unsigned flags) { return allocate_host(memory, bytes, flags); }
API(cuMemAllocHost_v2, void** memory, std::size_t bytes) { return allocate_host(memory, bytes, 0); }
API(cuMemFreeHost, void* memory) { return release_host("cuMemFreeHost", memory, false, CUDA_ERROR_INVALID_VALUE); }
API(cuMemHostGetFlags, unsigned* flags, void* memory) {
    return in_context("cuMemHostGetFlags", [&](Driver& its, Context&) {
        const auto address = reinterpret_cast<std::uintptr_t>(memory);
        const auto found = its.gpu_at(address).device.memory().pinned(address);
        require(flags && found && !found->is_registered);
        *flags = found->flags;
    });
}
API(cuMemHostRegister_v2, void* memory, std::size_t bytes, unsigned flags) {
    return in_context("cuMemHostRegister", [&](Driver& its, Context& context) {
        check_unsafe_call();
        require(memory && bytes > 0 && flags <= all_host_flags);
        sum(reinterpret_cast<std::uintptr_t>(memory), bytes);
        if (!its.gpu(context).device.memory().register_pinned(context.id, memory, bytes, flags))
            refuse(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    });
}
API(cuMemHostUnregister, void* memory) {
    return release_host("cuMemHostUnregister", memory, true, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}
API(cuMemHostGetDevicePointer_v2, CUdeviceptr* address, void* memory, unsigned flags) {
    return in_context("cuMemHostGetDevicePointer", [&](Driver& its, Context&) {
        require(address && flags == 0);
        const auto host = reinterpret_cast<std::uintptr_t>(memory);
        const auto found = its.gpu_at(host).device.memory().pinned(host);
        require(found.has_value());
        *address = found->device + (host - found->begin);
    });
}

API(cuMemAllocManaged, CUdeviceptr* address, std::size_t bytes, unsigned flags) {
    return in_context("cuMemAllocManaged", [&](Driver& its, Context& context) {
        check_unsafe_call();
        constexpr unsigned attach_global = 1, attach_host = 2;
        require(address && (flags == attach_global || flags == attach_host));
        *address = its.allocate_managed(context, bytes);
    });
}
API(cuMemPrefetchAsync, CUdeviceptr address, std::size_t bytes, CUdevice, CUstream stream) {
    return check_managed("cuMemPrefetchAsync", address, bytes, stream);
}
API(cuMemPrefetchAsync_v2, CUdeviceptr address, std::size_t bytes, CUmemLocation, unsigned, CUstream stream) {
    return check_managed("cuMemPrefetchAsync", address, bytes, stream);
}
API(cuMemAdvise, CUdeviceptr address, std::size_t bytes, unsigned, CUdevice) {
    return check_managed("cuMemAdvise", address, bytes, nullptr);
}
API(cuMemAdvise_v2, CUdeviceptr address, std::size_t bytes, unsigned, CUmemLocation) {
    return check_managed("cuMemAdvise", address, bytes, nullptr);
}
API(cuStreamAttachMemAsync, CUstream stream, CUdeviceptr address, std::size_t bytes, unsigned) {
    return check_managed("cuStreamAttachMemAsync", address, bytes, stream);
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
