// SPDX-License-Identifier: Apache-2.0
// Contexts: the primary one of the device, which its users share, and a program's own. Each thread has a stack of them.
#include "runtime/emulator/core/memory/memory.hpp"
#include "tools/cuda_driver/graphs/capture.hpp"

namespace ikat::cuda_driver {
namespace {

/// Makes the context the current one of this thread, in place of that which is.
void replace_current(CUcontext context) {
    if (!context_stack().empty()) context_stack().pop();
    if (context) context_stack().push(context);
}

Context& alive(Driver& its, CUcontext handle) {
    Context* const context = its.contexts.find(handle);
    if (!context) refuse(CUDA_ERROR_INVALID_CONTEXT);
    if (!its.gpu(*context).device.is_alive(context->id)) refuse(CUDA_ERROR_CONTEXT_IS_DESTROYED);
    return *context;
}

/// The same for a call that takes nullptr for the current context.
Context& alive_or_current(Driver& its, CUcontext handle) { return alive(its, handle ? handle : current_handle()); }

void start(Context& context, unsigned flags) {
    context.flags = flags;
    context.limits = {{CU_LIMIT_STACK_SIZE, 1024},
                      {CU_LIMIT_PRINTF_FIFO_SIZE, 1 << 20},
                      {CU_LIMIT_MALLOC_HEAP_SIZE, emulator::default_heap_bytes}};
}

CUresult create(CUcontext* out, unsigned flags, CUdevice device) {
    return initialised("cuCtxCreate", [&](Driver& its) {
        check_device(device);
        require(flags <= 0xff);
        require(out);
        const emulator::ContextId id = its.gpu(device).device.create_context();
        start(its.contexts.add(std::uintptr_t(id), {.id = id, .device = device}), flags);
        *out = handle_of(id);
        context_stack().push(*out);
    });
}

Context& primary(Driver& its, const Gpu& gpu) { return its.context(gpu.device.primary()); }
bool is_active(const Gpu& gpu) { return gpu.device.is_alive(gpu.device.primary()); }

}  // namespace

API(cuDevicePrimaryCtxRetain, CUcontext* context, CUdevice device) {
    return initialised("cuDevicePrimaryCtxRetain", [&](Driver& its) {
        Gpu& gpu = its.gpu(device);
        require(context);
        if (!is_active(gpu)) start(primary(its, gpu), gpu.primary_flags);
        gpu.device.retain_primary();
        *context = handle_of(gpu.device.primary());
    });
}
API(cuDevicePrimaryCtxRelease_v2, CUdevice device) {
    const auto release = [&](Driver& its) {
        Gpu& gpu = its.gpu(device);
        if (!gpu.device.release_primary()) refuse(CUDA_ERROR_INVALID_CONTEXT);
        if (!is_active(gpu)) its.end(primary(its, gpu));
    };
    bool is_last = false;
    const CUresult result = initialised("cuDevicePrimaryCtxRelease", [&](Driver& its) {
        is_last = its.gpu(device).device.primary_users() == 1;
        if (!is_last) release(its);
    });
    return is_last ? when_idle("cuDevicePrimaryCtxRelease", release) : result;
}
API(cuDevicePrimaryCtxReset_v2, CUdevice device) {
    return when_idle("cuDevicePrimaryCtxReset", [&](Driver& its) { its.end(primary(its, its.gpu(device))); });
}
API(cuDevicePrimaryCtxSetFlags_v2, CUdevice device, unsigned flags) {
    return initialised("cuDevicePrimaryCtxSetFlags", [&](Driver& its) {
        Gpu& gpu = its.gpu(device);
        gpu.primary_flags = flags;
        primary(its, gpu).flags = flags;
    });
}
API(cuDevicePrimaryCtxGetState, CUdevice device, unsigned* flags, int* active) {
    return initialised("cuDevicePrimaryCtxGetState", [&](Driver& its) {
        const Gpu& gpu = its.gpu(device);
        require(flags && active);
        *flags = gpu.primary_flags;
        *active = is_active(gpu);
    });
}

API(cuCtxCreate_v2, CUcontext* context, unsigned flags, CUdevice device) { return create(context, flags, device); }
API(cuCtxCreate_v3, CUcontext* context, void*, int, unsigned flags, CUdevice device) {
    return create(context, flags, device);
}
API(cuCtxCreate_v4, CUcontext* context, void*, unsigned flags, CUdevice device) {
    return create(context, flags, device);
}
API(cuCtxDestroy_v2, CUcontext context) {
    return when_idle("cuCtxDestroy", [&](Driver& its) {
        Context& gone = alive(its, context);
        if (gone.id == its.gpu(gone).device.primary())
            refuse(CUDA_ERROR_INVALID_CONTEXT, "the primary context cannot be destroyed",
                   "release it with cuDevicePrimaryCtxRelease");
        its.end(gone);  // other threads may still have it: it stays known, as one that was destroyed
        if (current_handle() == context) context_stack().pop();
    });
}
API(cuCtxSetCurrent, CUcontext context) {
    return initialised("cuCtxSetCurrent", [&](Driver& its) {
        if (context) alive(its, context);
        replace_current(context);
    });
}
API(cuCtxGetCurrent, CUcontext* context) {
    return initialised("cuCtxGetCurrent", [&](Driver&) {
        require(context);
        *context = current_handle();
    });
}
API(cuCtxPushCurrent_v2, CUcontext context) {
    return initialised("cuCtxPushCurrent", [&](Driver& its) {
        alive(its, context);
        context_stack().push(context);
    });
}
API(cuCtxPopCurrent_v2, CUcontext* context) {
    return initialised("cuCtxPopCurrent", [&](Driver&) {
        if (context_stack().empty()) refuse(CUDA_ERROR_INVALID_CONTEXT);
        if (context) *context = current_handle();
        context_stack().pop();
    });
}
API(cuCtxGetDevice_v2, CUdevice* device, CUcontext context) {
    return initialised("cuCtxGetDevice", [&](Driver& its) {
        require(device);
        *device = alive_or_current(its, context).device;
    });
}
API(cuCtxGetDevice, CUdevice* device) { return cuCtxGetDevice_v2(device, nullptr); }
API(cuCtxSynchronize, void) {
    if (const CUresult result = permitted("cuCtxSynchronize"); result != CUDA_SUCCESS) return result;
    const CUresult known =
        in_context("cuCtxSynchronize", [](Driver&, Context& context) { check_not_captured(context); });
    if (known != CUDA_SUCCESS) return known;
    if (const CUresult result = synchronise("cuCtxSynchronize"); result != CUDA_SUCCESS) return result;
    return in_context("cuCtxSynchronize", [](Driver&, Context&) {});
}
API(cuCtxSynchronize_v2, CUcontext context) {
    if (!context) return cuCtxSynchronize();
    const CUresult known =
        initialised("cuCtxSynchronize", [&](Driver& its) { check_not_captured(alive(its, context)); });
    if (known != CUDA_SUCCESS) return known;
    if (const CUresult result = synchronise("cuCtxSynchronize"); result != CUDA_SUCCESS) return result;
    return initialised("cuCtxSynchronize", [&](Driver& its) { check_usable(alive(its, context)); });
}
API(cuCtxGetFlags, unsigned* flags) {
    return in_context("cuCtxGetFlags", [&](Driver&, Context& context) {
        require(flags);
        *flags = context.flags;
    });
}
API(cuCtxSetFlags, unsigned flags) {
    return in_context("cuCtxSetFlags", [&](Driver&, Context& context) { context.flags = flags; });
}
API(cuCtxGetId, CUcontext context, unsigned long long* id) {
    return initialised("cuCtxGetId", [&](Driver& its) {
        require(id);
        *id = std::uint64_t(alive_or_current(its, context).id);
    });
}
API(cuCtxGetApiVersion, CUcontext context, unsigned* version) {
    return initialised("cuCtxGetApiVersion", [&](Driver& its) {
        require(version);
        alive_or_current(its, context);
        *version = 3020;
    });
}
API(cuCtxGetLimit, std::size_t* value, CUlimit limit) {
    return in_context("cuCtxGetLimit", [&](Driver&, Context& context) {
        require(value);
        if (limit >= CU_LIMIT_MAX) refuse(CUDA_ERROR_UNSUPPORTED_LIMIT);
        *value = context.limits[limit];
    });
}
API(cuCtxSetLimit, CUlimit limit, std::size_t value) {
    return in_context("cuCtxSetLimit", [&](Driver& its, Context& context) {
        if (limit >= CU_LIMIT_MAX) refuse(CUDA_ERROR_UNSUPPORTED_LIMIT);
        if (limit == CU_LIMIT_MALLOC_HEAP_SIZE && value > its.properties.memory_bytes) refuse(CUDA_ERROR_OUT_OF_MEMORY);
        context.limits[limit] = value;
        if (limit == CU_LIMIT_MALLOC_HEAP_SIZE) its.gpu(context).device.set_heap_bytes(context.id, value);
    });
}
API(cuCtxGetCacheConfig, int* config) {
    return in_context("cuCtxGetCacheConfig", [&](Driver&, Context& context) {
        require(config);
        *config = context.cache_config;
    });
}
API(cuCtxSetCacheConfig, int config) {
    return in_context("cuCtxSetCacheConfig", [&](Driver&, Context& context) { context.cache_config = config; });
}
API(cuCtxGetSharedMemConfig, int* config) {
    return in_context("cuCtxGetSharedMemConfig", [&](Driver&, Context& context) {
        require(config);
        *config = context.bank_config;
    });
}
API(cuCtxSetSharedMemConfig, int config) {
    return in_context("cuCtxSetSharedMemConfig", [&](Driver&, Context& context) { context.bank_config = config; });
}
API(cuCtxAttach, CUcontext* context, unsigned flags) {
    return in_context("cuCtxAttach", [&](Driver&, Context& current) {
        require(context && flags == 0);
        ++current.attached;
        *context = handle_of(current.id);
    });
}
API(cuCtxDetach, CUcontext context) {
    unsigned left = 0;
    const CUresult result = initialised("cuCtxDetach", [&](Driver& its) { left = --alive(its, context).attached; });
    return result == CUDA_SUCCESS && left == 0 ? cuCtxDestroy_v2(context) : result;
}
API(cuCtxGetStreamPriorityRange, int* least, int* greatest) {
    return in_context("cuCtxGetStreamPriorityRange", [&](Driver&, Context&) {
        if (least) *least = 0;
        if (greatest) *greatest = -5;
    });
}

namespace {

/// Between the current context and another one. Contexts of one device are no peers.
CUresult change_access(const char* name, CUcontext handle, bool is_enabled) {
    return when_idle(name, [&](Driver& its) {
        Context& context = current_context();
        const Context& peer = alive(its, handle);
        if (&peer == &context) refuse(CUDA_ERROR_INVALID_CONTEXT);
        if (peer.device == context.device)
            refuse(is_enabled ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
        if (is_enabled == context.peers.contains(peer.id))
            refuse(is_enabled ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
        if (is_enabled)
            context.peers.insert(peer.id);
        else
            context.peers.erase(peer.id);
        its.update_peers();
    });
}

}  // namespace

API(cuCtxEnablePeerAccess, CUcontext peer, unsigned flags) {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return change_access("cuCtxEnablePeerAccess", peer, true);
}
API(cuCtxDisablePeerAccess, CUcontext peer) { return change_access("cuCtxDisablePeerAccess", peer, false); }

}  // namespace ikat::cuda_driver
