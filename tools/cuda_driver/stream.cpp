// SPDX-License-Identifier: Apache-2.0
// Streams and events. Work is done when it is enqueued, unless functions of the program are to be waited for.
#include <algorithm>

#include "tools/cuda_driver/graphs/capture.hpp"

namespace ikat::cuda_driver {
namespace {

constexpr int greatest_priority = -5;
constexpr unsigned non_blocking = 1;

CUresult create(CUstream* out, unsigned flags, int priority) {
    return in_context("cuStreamCreate", [&](Driver& its, Context& context) {
        require(flags <= non_blocking);
        require(out);
        *out = reinterpret_cast<CUstream>(
            its.gpu(context).device.create_stream({.context = context.id,
                                                   .waits_for_default = (flags & non_blocking) == 0,
                                                   .priority = std::clamp(priority, greatest_priority, 0)}));
    });
}

CUresult record(CUevent handle, CUstream stream, unsigned flags) {
    return on_stream(
        "cuEventRecord", stream,
        [&](Driver& its, Context& context) {
            if (event_at(its, handle).context != context.id) refuse(CUDA_ERROR_INVALID_HANDLE);
            Capture* const capture = capture_of(its, context, stream);
            require(flags == 0 || (capture && flags == CU_EVENT_RECORD_EXTERNAL));
            if (capture) return record_captured(its, *capture, stream, handle, flags == CU_EVENT_RECORD_EXTERNAL);
            forget_captured(handle);
            its.device_of(id_of(stream)).run(id_of(stream), emulator::work::Record{id_of(handle)}, true);
        },
        InCapture::IsANode);
}

/// An event of any context that can be used.
emulator::Event event_of(Driver& its, CUevent handle) {
    const emulator::Event event = event_at(its, handle);
    check_usable(its.context(event.context));
    return event;
}

/// The work before it is done, or whether it is: the program knows that now.
CUresult wait(const char* function, CUevent handle, bool is_query) {
    if (const CUresult result = permitted(function); result != CUDA_SUCCESS) return result;
    const CUresult result = initialised(function, [&](Driver& its) {
        event_of(its, handle);
        check_not_captured(handle);
        if (is_query) check_unsafe_call();
    });
    if (result != CUDA_SUCCESS) return result;
    return is_query ? query(function, handle) : synchronise(function, handle);
}

using Known = std::optional<emulator::Stream>;  // nothing of the legacy one

/// A call about a stream of any context: what it has been given is done.
template <class Body>
CUresult about(const char* function, CUstream stream, Body body) {
    return initialised(function, [&](Driver& its) { body(context_of(its, stream), stream_at(its, stream)); });
}

CUresult wait(const char* function, CUstream stream, bool is_query) {
    if (const CUresult result = permitted(function); result != CUDA_SUCCESS) return result;
    const CUresult known =
        initialised(function, [&](Driver& its) { check_not_captured(its, context_of(its, stream), stream); });
    if (known != CUDA_SUCCESS) return known;
    const CUresult result = is_query ? query(function, stream) : synchronise(function, stream);
    if (result != CUDA_SUCCESS) return result;
    return about(function, stream, [](Context&, const Known&) {});
}

CUresult get_context(CUstream stream, CUcontext* out) {
    return about("cuStreamGetCtx", stream, [&](Context& context, const Known&) {
        require(out);
        *out = handle_of(context.id);
    });
}

}  // namespace

API(cuStreamCreate, CUstream* stream, unsigned flags) { return create(stream, flags, 0); }
API(cuStreamCreateWithPriority, CUstream* stream, unsigned flags, int priority) {
    return create(stream, flags, priority);
}
API(cuStreamDestroy_v2, CUstream stream) {
    return initialised("cuStreamDestroy", [&](Driver& its) {
        if (reinterpret_cast<std::uintptr_t>(stream) <= per_thread_stream) refuse(CUDA_ERROR_INVALID_HANDLE);
        forget_captured(id_of(stream));
        if (!its.device_of(id_of(stream)).destroy(id_of(stream))) refuse(CUDA_ERROR_INVALID_HANDLE);
    });
}
API(cuStreamSynchronize, CUstream stream) { return wait("cuStreamSynchronize", stream, false); }
API(cuStreamQuery, CUstream stream) { return wait("cuStreamQuery", stream, true); }
API(cuStreamWaitEvent, CUstream stream, CUevent event, unsigned flags) {
    return on_stream(
        "cuStreamWaitEvent", stream,
        [&](Driver& its, Context& context) {
            event_at(its, event);
            Capture* const capture = capture_of(its, context, stream);
            require(flags == 0 || (capture && flags == CU_EVENT_WAIT_EXTERNAL));
            if (wait_captured(its, capture, stream, event, flags == CU_EVENT_WAIT_EXTERNAL)) return;
            emulator::HostDevice &own = its.device_of(id_of(stream)), &other = its.device_of(id_of(event));
            emulator::work::Wait work{id_of(event)};
            if (&own != &other) own.link(other), work.elsewhere = other.done(work.event);
            own.run(id_of(stream), std::move(work), true);
        },
        InCapture::IsANode);
}
API(cuStreamGetFlags, CUstream stream, unsigned* flags) {
    return about("cuStreamGetFlags", stream, [&](Context&, const Known& its) {
        require(flags);
        *flags = its && !its->waits_for_default ? non_blocking : 0;
    });
}
API(cuStreamGetPriority, CUstream stream, int* priority) {
    return about("cuStreamGetPriority", stream, [&](Context&, const Known& its) {
        require(priority);
        *priority = its ? its->priority : 0;
    });
}
API(cuStreamGetId, CUstream stream, unsigned long long* id) {
    return about("cuStreamGetId", stream, [&](Context&, const Known&) {
        require(id);
        *id = std::max(std::uintptr_t(id_of(stream)), legacy_stream);
    });
}
API(cuStreamGetCtx, CUstream stream, CUcontext* context) { return get_context(stream, context); }
API(cuStreamGetCtx_v2, CUstream stream, CUcontext* context, void** green_context) {
    if (green_context) *green_context = nullptr;  // there are none
    return get_context(stream, context);
}
API(cuStreamGetDevice, CUstream stream, CUdevice* device) {
    return about("cuStreamGetDevice", stream, [&](Context& context, const Known&) {
        require(device);
        *device = context.device;
    });
}
API(cuEventCreate, CUevent* event, unsigned flags) {
    return in_context("cuEventCreate", [&](Driver& its, Context& context) {
        require(event);
        *event = reinterpret_cast<CUevent>(its.gpu(context).device.create_event(
            {.context = context.id, .is_timed = (flags & CU_EVENT_DISABLE_TIMING) == 0}));
    });
}
API(cuEventDestroy_v2, CUevent event) {
    return initialised("cuEventDestroy", [&](Driver& its) {
        forget_captured(event);
        if (!its.device_of(id_of(event)).destroy(id_of(event))) refuse(CUDA_ERROR_INVALID_HANDLE);
    });
}
API(cuEventRecord, CUevent event, CUstream stream) { return record(event, stream, 0); }
API(cuEventRecordWithFlags, CUevent event, CUstream stream, unsigned flags) { return record(event, stream, flags); }
API(cuEventQuery, CUevent event) { return wait("cuEventQuery", event, true); }
API(cuEventSynchronize, CUevent event) { return wait("cuEventSynchronize", event, false); }
API(cuEventElapsedTime, float* milliseconds, CUevent start, CUevent end) {
    return initialised("cuEventElapsedTime", [&](Driver& its) {
        require(milliseconds);
        const emulator::Event a = event_of(its, start), b = event_of(its, end);
        check_not_captured(start);
        check_not_captured(end);
        if (!a.time || !b.time || !a.is_timed || !b.is_timed) refuse(CUDA_ERROR_INVALID_HANDLE);
        *milliseconds = std::chrono::duration<float, std::milli>(*b.time - *a.time).count();
    });
}
ALIAS(cuEventElapsedTime_v2, cuEventElapsedTime);

}  // namespace ikat::cuda_driver
