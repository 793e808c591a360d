// SPDX-License-Identifier: Apache-2.0
// Default streams: the legacy one, and one for each thread and context, which is made when it is first used and ends
// with the thread or the context. Like other streams it waits for the legacy one. Programs that mean it by a null
// handle call the functions here, which copy.cpp has for copies and fills.
#include "tools/cuda_driver/graphs/capture.hpp"

namespace ikat::cuda_driver {
namespace {

using OwnStreams = std::map<CUcontext, emulator::StreamId>;

/// What a thread has. A program may call when its thread's objects have ended: then there are none, and new ones stay.
thread_local OwnStreams* own_streams = nullptr;
struct Cleaner {
    ~Cleaner() {
        if (!own_streams) return;
        const std::lock_guard lock(driver().mutex);
        for (const auto& [context, stream] : *own_streams) {
            forget_captured(stream);
            driver().device_of(stream).destroy(stream);
        }
        delete own_streams;
        own_streams = nullptr;
    }
};

emulator::StreamId own_stream(CUcontext context) {
    thread_local const Cleaner cleaner;
    if (!own_streams) own_streams = new OwnStreams;
    emulator::HostDevice& device = driver().current_gpu().device;
    emulator::StreamId& its = (*own_streams)[context];
    if (!device.find(its)) its = device.create_stream({.context = emulator::ContextId(std::uintptr_t(context))});
    return its;
}

}  // namespace

emulator::StreamId id_of(CUstream stream) {
    const auto handle = reinterpret_cast<std::uintptr_t>(stream);
    if (handle > per_thread_stream) return emulator::StreamId(handle);
    const CUcontext context = current_handle();
    if (handle != per_thread_stream || !context) return emulator::default_stream;
    const auto id = emulator::ContextId(reinterpret_cast<std::uintptr_t>(context));
    return driver().current_gpu().device.is_alive(id) ? own_stream(context) : emulator::default_stream;
}

#define PER_THREAD(symbol, parameters, ...) \
    extern "C" CUresult symbol parameters;  \
    extern "C" __attribute__((visibility("default"))) CUresult symbol##_ptsz parameters { return symbol(__VA_ARGS__); }

PER_THREAD(cuStreamGetPriority, (CUstream stream, int* priority), per_thread(stream), priority)
PER_THREAD(cuStreamGetId, (CUstream stream, unsigned long long* id), per_thread(stream), id)
PER_THREAD(cuStreamGetFlags, (CUstream stream, unsigned* flags), per_thread(stream), flags)
PER_THREAD(cuStreamGetDevice, (CUstream stream, CUdevice* device), per_thread(stream), device)
PER_THREAD(cuStreamGetCtx, (CUstream stream, CUcontext* context), per_thread(stream), context)
PER_THREAD(cuStreamGetCtx_v2, (CUstream stream, CUcontext* context, void** green), per_thread(stream), context, green)
PER_THREAD(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags), per_thread(stream), event, flags)
PER_THREAD(cuStreamQuery, (CUstream stream), per_thread(stream))
PER_THREAD(cuStreamSynchronize, (CUstream stream), per_thread(stream))
PER_THREAD(cuEventRecord, (CUevent event, CUstream stream), event, per_thread(stream))
PER_THREAD(cuEventRecordWithFlags, (CUevent event, CUstream stream, unsigned flags), event, per_thread(stream), flags)
PER_THREAD(cuStreamAddCallback, (CUstream stream, CUstreamCallback callback, void* data, unsigned flags),
           per_thread(stream), callback, data, flags)
PER_THREAD(cuLaunchHostFunc, (CUstream stream, CUhostFn callback, void* data), per_thread(stream), callback, data)
PER_THREAD(cuStreamAttachMemAsync, (CUstream stream, CUdeviceptr address, std::size_t bytes, unsigned flags),
           per_thread(stream), address, bytes, flags)
PER_THREAD(cuMemPrefetchAsync, (CUdeviceptr address, std::size_t bytes, CUdevice device, CUstream stream), address,
           bytes, device, per_thread(stream))
PER_THREAD(cuMemPrefetchAsync_v2,
           (CUdeviceptr address, std::size_t bytes, CUmemLocation place, unsigned flags, CUstream stream), address,
           bytes, place, flags, per_thread(stream))
PER_THREAD(cuMemAllocAsync, (CUdeviceptr * address, std::size_t bytes, CUstream stream), address, bytes,
           per_thread(stream))
PER_THREAD(cuMemAllocFromPoolAsync, (CUdeviceptr * address, std::size_t bytes, CUmemoryPool pool, CUstream stream),
           address, bytes, pool, per_thread(stream))
PER_THREAD(cuMemFreeAsync, (CUdeviceptr address, CUstream stream), address, per_thread(stream))
PER_THREAD(cuLaunchKernel,
           (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
            unsigned block_z, unsigned shared, CUstream stream, void** parameters, void** extra),
           function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, per_thread(stream), parameters, extra)
PER_THREAD(cuLaunchCooperativeKernel,
           (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
            unsigned block_z, unsigned shared, CUstream stream, void** parameters),
           function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, per_thread(stream), parameters)
PER_THREAD(cuGraphLaunch, (CUgraphExec exec, CUstream stream), exec, per_thread(stream))
PER_THREAD(cuGraphUpload, (CUgraphExec exec, CUstream stream), exec, per_thread(stream))
PER_THREAD(cuStreamBeginCapture, (CUstream stream), per_thread(stream))
PER_THREAD(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode), per_thread(stream), mode)
PER_THREAD(cuStreamBeginCaptureToGraph,
           (CUstream stream, CUgraph graph, const CUgraphNode* nodes, const CUgraphEdgeData* data, std::size_t count,
            CUstreamCaptureMode mode),
           per_thread(stream), graph, nodes, data, count, mode)
PER_THREAD(cuStreamEndCapture, (CUstream stream, CUgraph* graph), per_thread(stream), graph)
PER_THREAD(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus* status), per_thread(stream), status)
PER_THREAD(cuStreamGetCaptureInfo, (CUstream stream, CUstreamCaptureStatus* status, unsigned long long* id),
           per_thread(stream), status, id)
PER_THREAD(cuStreamGetCaptureInfo_v2,
           (CUstream stream, CUstreamCaptureStatus* status, unsigned long long* id, CUgraph* graph,
            const CUgraphNode** nodes, std::size_t* count),
           per_thread(stream), status, id, graph, nodes, count)
PER_THREAD(cuStreamGetCaptureInfo_v3,
           (CUstream stream, CUstreamCaptureStatus* status, unsigned long long* id, CUgraph* graph,
            const CUgraphNode** nodes, const CUgraphEdgeData** data, std::size_t* count),
           per_thread(stream), status, id, graph, nodes, data, count)
PER_THREAD(cuStreamUpdateCaptureDependencies, (CUstream stream, CUgraphNode* nodes, std::size_t count, unsigned flags),
           per_thread(stream), nodes, count, flags)
PER_THREAD(cuStreamUpdateCaptureDependencies_v2,
           (CUstream stream, CUgraphNode* nodes, const CUgraphEdgeData* data, std::size_t count, unsigned flags),
           per_thread(stream), nodes, data, count, flags)
#undef PER_THREAD

// Those with the stream in a structure.
extern "C" CUresult cuLaunchKernelEx(const CUlaunchConfig*, CUfunction, void**, void**);
API(cuLaunchKernelEx_ptsz, const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
    if (!config) return CUDA_ERROR_INVALID_VALUE;
    CUlaunchConfig own = *config;
    own.hStream = per_thread(own.hStream);
    return cuLaunchKernelEx(&own, function, parameters, extra);
}
extern "C" CUresult cuGraphInstantiateWithParams(CUgraphExec*, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS*);
API(cuGraphInstantiateWithParams_ptsz, CUgraphExec* out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    const CUstream asked = std::exchange(params->hUploadStream, per_thread(params->hUploadStream));
    const CUresult result = cuGraphInstantiateWithParams(out, graph, params);
    params->hUploadStream = asked;
    return result;
}

}  // namespace ikat::cuda_driver
