// SPDX-License-Identifier: Apache-2.0
// Streams and events. Work is done when it is enqueued, so waiting only checks the arguments, and an event is a time.
#include <algorithm>

#include "tools/cuda_driver/state.hpp"

namespace ikat::cuda_driver {
namespace {

constexpr int greatest_priority = -5;

CUresult create(CUstream* out, unsigned flags, int priority) {
    return in_context("cuStreamCreate", [&](Driver& its, Context& context) {
        require(flags <= 1);
        its.give(out, its.streams, Stream{&context, flags, std::clamp(priority, greatest_priority, 0)});
    });
}

/// The event, which must be of the current context.
Event& event_of(Driver& its, CUevent handle, const Context& context) {
    Event& event = its.events.at(handle);
    if (event.context != &context) refuse(CUDA_ERROR_INVALID_HANDLE);
    return event;
}

CUresult record(CUevent handle, CUstream stream) {
    return on_stream("cuEventRecord", stream, [&](Driver& its, Context& context) {
        event_of(its, handle, context).time = std::chrono::steady_clock::now();
    });
}

CUresult query_event(CUevent handle) {
    return in_context("cuEventQuery", [&](Driver& its, Context& context) { event_of(its, handle, context); });
}

CUresult check_stream(const char* function, CUstream stream) {
    return on_stream(function, stream, [](Driver&, Context&) {});
}

}  // namespace

API(cuStreamCreate, CUstream* stream, unsigned flags) { return create(stream, flags, 0); }
API(cuStreamCreateWithPriority, CUstream* stream, unsigned flags, int priority) {
    return create(stream, flags, priority);
}
API(cuStreamDestroy_v2, CUstream stream) {
    return initialised("cuStreamDestroy", [&](Driver& its) {
        its.streams.at(stream);
        its.streams.remove(stream);
    });
}
API(cuStreamSynchronize, CUstream stream) { return check_stream("cuStreamSynchronize", stream); }
ALIAS(cuStreamSynchronize_ptsz, cuStreamSynchronize);
API(cuStreamQuery, CUstream stream) { return check_stream("cuStreamQuery", stream); }
ALIAS(cuStreamQuery_ptsz, cuStreamQuery);
API(cuStreamWaitEvent, CUstream stream, CUevent event, unsigned) {
    return on_stream("cuStreamWaitEvent", stream, [&](Driver& its, Context&) { its.events.at(event); });
}
ALIAS(cuStreamWaitEvent_ptsz, cuStreamWaitEvent);
API(cuStreamGetFlags, CUstream stream, unsigned* flags) {
    return in_context("cuStreamGetFlags", [&](Driver&, Context&) {
        require(flags);
        const Stream* const its = stream_of(stream);
        *flags = its ? its->flags : 0;
    });
}
ALIAS(cuStreamGetFlags_ptsz, cuStreamGetFlags);
API(cuStreamGetPriority, CUstream stream, int* priority) {
    return in_context("cuStreamGetPriority", [&](Driver&, Context&) {
        require(priority);
        const Stream* const its = stream_of(stream);
        *priority = its ? its->priority : 0;
    });
}
ALIAS(cuStreamGetPriority_ptsz, cuStreamGetPriority);
API(cuStreamGetId, CUstream stream, unsigned long long* id) {
    return on_stream("cuStreamGetId", stream, [&](Driver&, Context&) {
        require(id);
        *id = reinterpret_cast<std::uintptr_t>(stream);
    });
}
ALIAS(cuStreamGetId_ptsz, cuStreamGetId);
API(cuStreamGetCtx, CUstream stream, CUcontext* context) {
    return on_stream("cuStreamGetCtx", stream, [&](Driver&, Context&) {
        require(context);
        *context = current_handle();
    });
}
ALIAS(cuStreamGetCtx_ptsz, cuStreamGetCtx);
API(cuStreamGetDevice, CUstream stream, CUdevice* device) {
    return on_stream("cuStreamGetDevice", stream, [&](Driver&, Context&) {
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
API(cuStreamAddCallback, CUstream stream, CUstreamCallback callback, void* data, unsigned flags) {
    const CUresult result =
        on_stream("cuStreamAddCallback", stream, [&](Driver&, Context&) { require(callback && flags == 0); });
    if (result == CUDA_SUCCESS) callback(stream, result, data);
    return result;
}
ALIAS(cuStreamAddCallback_ptsz, cuStreamAddCallback);
API(cuLaunchHostFunc, CUstream stream, CUhostFn callback, void* data) {
    const CUresult result =
        on_stream("cuLaunchHostFunc", stream, [&](Driver&, Context&) { require(callback != nullptr); });
    if (result == CUDA_SUCCESS) callback(data);
    return result;
}
ALIAS(cuLaunchHostFunc_ptsz, cuLaunchHostFunc);

API(cuEventCreate, CUevent* event, unsigned flags) {
    return in_context("cuEventCreate", [&](Driver& its, Context& context) {
        its.give(event, its.events, Event{&context, flags, {}});
    });
}
API(cuEventDestroy_v2, CUevent event) {
    return initialised("cuEventDestroy", [&](Driver& its) {
        its.events.at(event);
        its.events.remove(event);
    });
}
API(cuEventRecord, CUevent event, CUstream stream) { return record(event, stream); }
ALIAS(cuEventRecord_ptsz, cuEventRecord);
API(cuEventRecordWithFlags, CUevent event, CUstream stream, unsigned) { return record(event, stream); }
ALIAS(cuEventRecordWithFlags_ptsz, cuEventRecordWithFlags);
API(cuEventQuery, CUevent event) { return query_event(event); }
API(cuEventSynchronize, CUevent event) { return query_event(event); }
API(cuEventElapsedTime, float* milliseconds, CUevent start, CUevent end) {
    return in_context("cuEventElapsedTime", [&](Driver& its, Context& context) {
        require(milliseconds);
        const Event &a = event_of(its, start, context), &b = event_of(its, end, context);
        if (!a.time || !b.time || (a.flags | b.flags) & CU_EVENT_DISABLE_TIMING) refuse(CUDA_ERROR_INVALID_HANDLE);
        *milliseconds = std::chrono::duration<float, std::milli>(*b.time - *a.time).count();
    });
}
ALIAS(cuEventElapsedTime_v2, cuEventElapsedTime);

}  // namespace ikat::cuda_driver
