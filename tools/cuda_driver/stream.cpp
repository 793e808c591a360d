// SPDX-License-Identifier: Apache-2.0
// Streams and events. Work is done when it is enqueued, so waiting only checks the arguments, and an event is a time.
#include <algorithm>

#include "tools/cuda_driver/state.hpp"

namespace ikat::cuda_driver {
namespace {

constexpr int greatest_priority = -5;
constexpr unsigned non_blocking = 1;

CUresult create(CUstream* out, unsigned flags, int priority) {
    return in_context("cuStreamCreate", [&](Driver& its, Context& context) {
        require(flags <= non_blocking);
        require(out);
        *out = reinterpret_cast<CUstream>(
            its.device.create_stream({.context = context.id,
                                      .waits_for_default = (flags & non_blocking) == 0,
                                      .priority = std::clamp(priority, greatest_priority, 0)}));
    });
}

CUresult record(CUevent handle, CUstream stream) {
    return on_stream("cuEventRecord", stream, [&](Driver& its, Context& context) {
        if (event_at(its, handle).context != context.id) refuse(CUDA_ERROR_INVALID_HANDLE);
        its.device.run(id_of(stream), emulator::work::Record{id_of(handle)}, true);
    });
}

/// An event of any context that can be used.
emulator::Event event_of(Driver& its, CUevent handle) {
    const emulator::Event event = event_at(its, handle);
    check_usable(its.context(event.context));
    return event;
}

/// The work before it is done: the program knows that now.
CUresult wait(const char* function, CUevent handle) {
    const CUresult result = initialised(function, [&](Driver& its) { event_of(its, handle); });
    return result == CUDA_SUCCESS ? synchronise(function, handle) : result;
}

using Known = std::optional<emulator::Stream>;  // nothing of those that always exist

/// A call about a stream of any context: what it has been given is done.
template <class Body>
CUresult about(const char* function, CUstream stream, Body body) {
    return initialised(function, [&](Driver& its) { body(context_of(its, stream), stream_at(its, stream)); });
}

CUresult wait(const char* function, CUstream stream) {
    if (const CUresult result = synchronise(function, stream); result != CUDA_SUCCESS) return result;
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
        if (!its.device.destroy(id_of(stream))) refuse(CUDA_ERROR_INVALID_HANDLE);
    });
}
API(cuStreamSynchronize, CUstream stream) { return wait("cuStreamSynchronize", stream); }
ALIAS(cuStreamSynchronize_ptsz, cuStreamSynchronize);
API(cuStreamQuery, CUstream stream) { return wait("cuStreamQuery", stream); }
ALIAS(cuStreamQuery_ptsz, cuStreamQuery);
API(cuStreamWaitEvent, CUstream stream, CUevent event, unsigned) {
    return on_stream("cuStreamWaitEvent", stream, [&](Driver& its, Context&) {
        event_at(its, event);
        its.device.run(id_of(stream), emulator::work::Wait{id_of(event)}, true);
    });
}
ALIAS(cuStreamWaitEvent_ptsz, cuStreamWaitEvent);
API(cuStreamGetFlags, CUstream stream, unsigned* flags) {
    return about("cuStreamGetFlags", stream, [&](Context&, const Known& its) {
        require(flags);
        *flags = its && !its->waits_for_default ? non_blocking : 0;
    });
}
ALIAS(cuStreamGetFlags_ptsz, cuStreamGetFlags);
API(cuStreamGetPriority, CUstream stream, int* priority) {
    return about("cuStreamGetPriority", stream, [&](Context&, const Known& its) {
        require(priority);
        *priority = its ? its->priority : 0;
    });
}
ALIAS(cuStreamGetPriority_ptsz, cuStreamGetPriority);
API(cuStreamGetId, CUstream stream, unsigned long long* id) {
    return about("cuStreamGetId", stream, [&](Context&, const Known&) {
        require(id);
        *id = std::max(reinterpret_cast<std::uintptr_t>(stream), legacy_stream);
    });
}
ALIAS(cuStreamGetId_ptsz, cuStreamGetId);
API(cuStreamGetCtx, CUstream stream, CUcontext* context) { return get_context(stream, context); }
ALIAS(cuStreamGetCtx_ptsz, cuStreamGetCtx);
API(cuStreamGetCtx_v2, CUstream stream, CUcontext* context, void** green_context) {
    if (green_context) *green_context = nullptr;  // there are none
    return get_context(stream, context);
}
ALIAS(cuStreamGetCtx_v2_ptsz, cuStreamGetCtx_v2);
API(cuStreamGetDevice, CUstream stream, CUdevice* device) {
    return about("cuStreamGetDevice", stream, [&](Context&, const Known&) {
        require(device);
        *device = 0;
    });
}
ALIAS(cuStreamGetDevice_ptsz, cuStreamGetDevice);
API(cuStreamIsCapturing, CUstream stream, int* status) {
    return on_stream("cuStreamIsCapturing", stream, [&](Driver&, Context&) {
        require(status);
        *status = 0;  // no stream is
    });
}
ALIAS(cuStreamIsCapturing_ptsz, cuStreamIsCapturing);
API(cuThreadExchangeStreamCaptureMode, int* mode) {
    return initialised("cuThreadExchangeStreamCaptureMode", [&](Driver&) {
        require(mode);
        thread_local int current = 0;
        std::swap(current, *mode);
    });
}
API(cuEventCreate, CUevent* event, unsigned flags) {
    return in_context("cuEventCreate", [&](Driver& its, Context& context) {
        require(event);
        *event = reinterpret_cast<CUevent>(
            its.device.create_event({.context = context.id, .is_timed = (flags & CU_EVENT_DISABLE_TIMING) == 0}));
    });
}
API(cuEventDestroy_v2, CUevent event) {
    return initialised("cuEventDestroy", [&](Driver& its) {
        if (!its.device.destroy(id_of(event))) refuse(CUDA_ERROR_INVALID_HANDLE);
    });
}
API(cuEventRecord, CUevent event, CUstream stream) { return record(event, stream); }
ALIAS(cuEventRecord_ptsz, cuEventRecord);
API(cuEventRecordWithFlags, CUevent event, CUstream stream, unsigned) { return record(event, stream); }
ALIAS(cuEventRecordWithFlags_ptsz, cuEventRecordWithFlags);
API(cuEventQuery, CUevent event) { return wait("cuEventQuery", event); }
API(cuEventSynchronize, CUevent event) { return wait("cuEventSynchronize", event); }
API(cuEventElapsedTime, float* milliseconds, CUevent start, CUevent end) {
    return initialised("cuEventElapsedTime", [&](Driver& its) {
        require(milliseconds);
        const emulator::Event a = event_of(its, start), b = event_of(its, end);
        if (!a.time || !b.time || !a.is_timed || !b.is_timed) refuse(CUDA_ERROR_INVALID_HANDLE);
        *milliseconds = std::chrono::duration<float, std::milli>(*b.time - *a.time).count();
    });
}
ALIAS(cuEventElapsedTime_v2, cuEventElapsedTime);

}  // namespace ikat::cuda_driver
