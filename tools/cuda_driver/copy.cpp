// SPDX-License-Identifier: Apache-2.0
// Copies between host and device, and filling. They have completed when they return, but the program knows that only
// where a driver says so.
#include "tools/cuda_driver/graphs/capture.hpp"

namespace ikat::cuda_driver {
namespace {

using emulator::work::on_device;
using emulator::work::on_host;
using emulator::work::Place;

/// The stream of a call, and whether the program goes on before its end.
struct Asked {
    CUstream stream = nullptr;
    bool is_async = false;

    InCapture in_capture() const { return is_async ? InCapture::IsANode : InCapture::IsForbidden; }
};
const Asked legacy{}, own_default{per_thread(nullptr)};
Asked async(CUstream stream) { return {stream, true}; }

bool is_pinned(const Driver& its, const std::byte* memory) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    return its.gpu_at(address).device.memory().pinned(address).has_value();
}

/// Whether a driver may return before a copy is done: between buffers of the device, and of an asynchronous call unless
/// it writes memory of the host that is not page-locked.
bool goes_on(const Driver& its, Asked asked, Place to, Place from) {
    if (!to.host && !from.host) return true;
    return asked.is_async && (!to.host || is_pinned(its, to.host));
}

/// With unified addressing an address tells by itself where it is.
Place anywhere(CUdeviceptr address) {
    return emulator::Memory::is_device(address) ? on_device(address) : on_host(reinterpret_cast<void*>(address));
}

void check_range(Driver& its, CUdeviceptr address, std::size_t bytes) {
    const auto [begin, size] = its.gpu_at(address).device.memory().space().buffer_of(address);
    if (size == 0 && is_in_graph_memory(address, bytes)) return;  // it will be there
    require(size && address + bytes <= begin + size && address + bytes >= address);
}

/// A row of bytes as a box.
CUDA_MEMCPY3D box_of(Place to, Place from, std::size_t bytes) {
    CUDA_MEMCPY3D out{};
    out.srcMemoryType = from.host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    out.srcHost = from.host, out.srcDevice = from.device, out.srcPitch = bytes;
    out.dstMemoryType = to.host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    out.dstHost = to.host, out.dstDevice = to.device, out.dstPitch = bytes;
    out.WidthInBytes = bytes, out.Height = 1, out.Depth = 1;
    return out;
}

/// On the device of its stream, wherever the memory is. What either device is given after a copy between them that is
/// not asynchronous waits for it.
void run(Driver& its, Asked asked, emulator::work::Copy work) {
    const emulator::StreamId stream = id_of(asked.stream);
    emulator::HostDevice& device = its.device_of(stream);
    its.find_places(device, work);
    const bool is_between = work.to_elsewhere || work.from_elsewhere;
    const bool continues = (asked.is_async || !is_between) && goes_on(its, asked, work.to, work.from);
    device.run(stream, std::move(work), continues);
}

/// ... and it waits for what both have been given. To be called without the lock.
CUresult wait_for_both(const char* function, Asked asked, Place to, Place from) noexcept {
    if (asked.is_async) return CUDA_SUCCESS;
    if (const CUresult result = permitted(function); result != CUDA_SUCCESS) return result;
    return translated(function, [&] {
        emulator::HostDevice& device = driver().device_of(id_of(asked.stream));
        for (const Place& place : {to, from}) {
            if (place.host || !emulator::Memory::is_device(place.device)) continue;
            emulator::HostDevice& other = driver().gpu_at(place.device).device;
            if (&other != &device) other.drain(), device.drain();
        }
    });
}

void copy(Driver& its, const Context& context, Asked asked, Place to, Place from, std::size_t bytes) {
    if (bytes == 0) return;
    require((to.host || to.device) && (from.host || from.device));
    if (!to.host) check_range(its, to.device, bytes);
    if (!from.host) check_range(its, from.device, bytes);
    if (Capture* const capture = capture_of(its, context, asked.stream)) {
        capture->add(id_of(asked.stream), CopyNode{box_of(to, from, bytes), handle_of(context.id)});
        return;
    }
    run(its, asked, {to, from, bytes});
}

CUresult copy_on(const char* function, Asked asked, Place to, Place from, std::size_t bytes) {
    if (const CUresult result = wait_for_both(function, asked, to, from); result != CUDA_SUCCESS) return result;
    return on_stream(
        function, asked.stream, [&](Driver& its, Context& context) { copy(its, context, asked, to, from, bytes); },
        asked.in_capture());
}

CUresult copy_unified(const char* function, Asked asked, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    return copy_on(function, asked, anywhere(to), anywhere(from), bytes);
}

Place place(CUmemorytype type, const void* host, CUdeviceptr device) {
    switch (type) {
        case CU_MEMORYTYPE_HOST: return on_host(host);
        case CU_MEMORYTYPE_DEVICE: return on_device(device);
        case CU_MEMORYTYPE_UNIFIED: return anywhere(device);
        case CU_MEMORYTYPE_ARRAY: refuse(CUDA_ERROR_NOT_SUPPORTED, "arrays are not emulated", "copy between buffers");
    }
    refuse(CUDA_ERROR_INVALID_VALUE);
}

/// One end of a copy of a box: where its rows lie.
struct Box {
    Place place;
    std::size_t x, y, z, pitch, height;

    Box(Place where, std::size_t bx, std::size_t by, std::size_t bz, std::size_t given_pitch, std::size_t given_height,
        std::size_t width, std::size_t rows)
        : place(where),
          x(bx),
          y(by),
          z(bz),
          pitch(given_pitch ? given_pitch : sum(bx, width)),
          height(given_height ? given_height : sum(by, rows)) {
        require(sum(x, width) <= pitch);
    }
    std::size_t offset(std::size_t row, std::size_t plane) const {
        return sum(product(sum(product(sum(z, plane), height), sum(y, row)), pitch), x);
    }
    emulator::work::Copy::Pitch pitches() const { return {pitch, pitch * height}; }
};

}  // namespace

emulator::work::Copy copy_work(Driver& its, const CUDA_MEMCPY3D& c) {
    const Box from(place(c.srcMemoryType, c.srcHost, c.srcDevice), c.srcXInBytes, c.srcY, c.srcZ, c.srcPitch,
                   c.srcHeight, c.WidthInBytes, c.Height);
    const Box to(place(c.dstMemoryType, c.dstHost, c.dstDevice), c.dstXInBytes, c.dstY, c.dstZ, c.dstPitch, c.dstHeight,
                 c.WidthInBytes, c.Height);
    for (const Box& box : {from, to}) {
        const std::size_t first = box.offset(0, 0), last = box.offset(c.Height - 1, c.Depth - 1);
        require(box.place.host || box.place.device);
        if (!box.place.host) check_range(its, box.place.device + first, sum(last - first, c.WidthInBytes));
    }
    return {.to = to.place.at(to.offset(0, 0)),
            .from = from.place.at(from.offset(0, 0)),
            .bytes = c.WidthInBytes,
            .rows = c.Height,
            .planes = c.Depth,
            .to_pitch = to.pitches(),
            .from_pitch = from.pitches()};
}

emulator::work::Fill fill_work(Driver& its, const CUDA_MEMSET_NODE_PARAMS& params) {
    const auto& [to, pitch, value, size, width, height] = params;
    require(size == 1 || size == 2 || size == 4);
    const std::size_t bytes = product(width, size);
    require(to % size == 0 && (height == 1 || (pitch >= bytes && pitch % size == 0)));
    check_range(its, to, sum(product(height - 1, pitch), bytes));
    const auto element = std::as_bytes(std::span(&value, 1)).first(size);
    return {to, {element.begin(), element.end()}, width, height, pitch};
}

namespace {

/// Copies boxes of rows. Without a pitch the rows follow each other.
CUresult copy_3d(const char* function, Asked asked, const CUDA_MEMCPY3D* params) {
    if (params) {
        const CUresult result =
            wait_for_both(function, asked, on_device(params->dstDevice), on_device(params->srcDevice));
        if (result != CUDA_SUCCESS) return result;
    }
    return on_stream(
        function, asked.stream,
        [&](Driver& its, Context& context) {
            require(params);
            if (params->WidthInBytes == 0 || params->Height == 0 || params->Depth == 0) return;
            const emulator::work::Copy work = copy_work(its, *params);
            if (Capture* const capture = capture_of(its, context, asked.stream)) {
                capture->add(id_of(asked.stream), CopyNode{*params, handle_of(context.id)});
                return;
            }
            run(its, asked, work);
        },
        asked.in_capture());
}

/// Between two contexts, of which it is asked that they are alive: addresses say by themselves where they are.
void check_contexts(Driver& its, CUcontext to, CUcontext from) {
    for (const CUcontext handle : {to, from}) {
        Context* const context = its.contexts.find(handle);
        if (!context || !its.gpu(*context).device.is_alive(context->id)) refuse(CUDA_ERROR_INVALID_CONTEXT);
    }
}

CUresult copy_between(const char* function, Asked asked, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                      CUcontext from_context, std::size_t bytes) {
    const CUresult waited = wait_for_both(function, asked, on_device(to), on_device(from));
    if (waited != CUDA_SUCCESS) return waited;
    return on_stream(
        function, asked.stream,
        [&](Driver& its, Context& context) {
            check_contexts(its, to_context, from_context);
            copy(its, context, asked, on_device(to), on_device(from), bytes);
        },
        asked.in_capture());
}

CUresult copy_3d_between(const char* function, Asked stream, const CUDA_MEMCPY3D_PEER* asked) {
    if (!asked) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_MEMCPY3D_PEER& c = *asked;
    const CUresult known = initialised(function, [&](Driver& its) { check_contexts(its, c.dstContext, c.srcContext); });
    if (known != CUDA_SUCCESS) return known;
    const CUDA_MEMCPY3D box{c.srcXInBytes,   c.srcY,        c.srcZ,         c.srcLOD,   c.srcMemoryType,
                            c.srcHost,       c.srcDevice,   c.srcArray,     nullptr,    c.srcPitch,
                            c.srcHeight,     c.dstXInBytes, c.dstY,         c.dstZ,     c.dstLOD,
                            c.dstMemoryType, c.dstHost,     c.dstDevice,    c.dstArray, nullptr,
                            c.dstPitch,      c.dstHeight,   c.WidthInBytes, c.Height,   c.Depth};
    return copy_3d(function, stream, &box);
}

CUresult copy_2d(const char* function, Asked stream, const CUDA_MEMCPY2D* asked) {
    if (!asked) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_MEMCPY2D& c = *asked;
    CUDA_MEMCPY3D box{};
    box.srcXInBytes = c.srcXInBytes, box.srcY = c.srcY, box.srcPitch = c.srcPitch;
    box.srcMemoryType = c.srcMemoryType, box.srcHost = c.srcHost, box.srcDevice = c.srcDevice;
    box.dstXInBytes = c.dstXInBytes, box.dstY = c.dstY, box.dstPitch = c.dstPitch;
    box.dstMemoryType = c.dstMemoryType, box.dstHost = c.dstHost, box.dstDevice = c.dstDevice;
    box.WidthInBytes = c.WidthInBytes, box.Height = c.Height, box.Depth = 1;
    return copy_3d(function, stream, &box);
}

/// A fill is work of the device that has the memory.
void check_home(const Driver& its, emulator::StreamId stream, CUdeviceptr address) {
    if (&its.device_of(stream) != &its.gpu_at(address).device)
        refuse(CUDA_ERROR_INVALID_VALUE, "memory of another device is filled", "fill it on a stream of that device");
}

/// Fills rows of `width` elements each.
template <class Element>
CUresult fill(const char* function, Asked asked, CUdeviceptr to, std::size_t pitch, Element value, std::size_t width,
              std::size_t height) {
    return on_stream(
        function, asked.stream,
        [&](Driver& its, Context& context) {
            if (width == 0 || height == 0) return;
            const CUDA_MEMSET_NODE_PARAMS params{to, pitch, value, sizeof value, width, height};
            emulator::work::Fill work = fill_work(its, params);
            if (Capture* const capture = capture_of(its, context, asked.stream)) {
                capture->add(id_of(asked.stream), FillNode{params, handle_of(context.id)});
                return;
            }
            check_home(its, id_of(asked.stream), work.to);
            its.device_of(id_of(asked.stream)).run(id_of(asked.stream), std::move(work), true);
        },
        asked.in_capture());
}

}  // namespace

// Each of these has a second form (_ptds, _ptsz), for programs with a default stream for each thread.
#define COPY(name, to_type, to_place, from_type, from_place)                                             \
    API(name##_v2, to_type to, from_type from, std::size_t bytes) {                                      \
        return copy_on(#name, legacy, to_place(to), from_place(from), bytes);                            \
    }                                                                                                    \
    API(name##_v2_ptds, to_type to, from_type from, std::size_t bytes) {                                 \
        return copy_on(#name, own_default, to_place(to), from_place(from), bytes);                       \
    }                                                                                                    \
    API(name##Async_v2, to_type to, from_type from, std::size_t bytes, CUstream stream) {                \
        return copy_on(#name "Async", async(stream), to_place(to), from_place(from), bytes);             \
    }                                                                                                    \
    API(name##Async_v2_ptsz, to_type to, from_type from, std::size_t bytes, CUstream stream) {           \
        return copy_on(#name "Async", async(per_thread(stream)), to_place(to), from_place(from), bytes); \
    }
COPY(cuMemcpyHtoD, CUdeviceptr, on_device, const void*, on_host)
COPY(cuMemcpyDtoH, void*, on_host, CUdeviceptr, on_device)
COPY(cuMemcpyDtoD, CUdeviceptr, on_device, CUdeviceptr, on_device)
#undef COPY

API(cuMemcpy, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    return copy_unified("cuMemcpy", legacy, to, from, bytes);
}
API(cuMemcpy_ptds, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    return copy_unified("cuMemcpy", own_default, to, from, bytes);
}
API(cuMemcpyAsync, CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    return copy_unified("cuMemcpyAsync", async(stream), to, from, bytes);
}
API(cuMemcpyAsync_ptsz, CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    return copy_unified("cuMemcpyAsync", async(per_thread(stream)), to, from, bytes);
}

#define BOX(name, symbol, Params, function)                                   \
    API(symbol, const Params* copy) { return function(#name, legacy, copy); } \
    API(symbol##_ptds, const Params* copy) { return function(#name, own_default, copy); }
#define BOX_ASYNC(name, symbol, Params, function)                                                     \
    API(symbol, const Params* copy, CUstream stream) { return function(#name, async(stream), copy); } \
    API(symbol##_ptsz, const Params* copy, CUstream stream) { return function(#name, async(per_thread(stream)), copy); }
BOX(cuMemcpy2D, cuMemcpy2D_v2, CUDA_MEMCPY2D, copy_2d)
BOX(cuMemcpy2DUnaligned, cuMemcpy2DUnaligned_v2, CUDA_MEMCPY2D, copy_2d)
BOX_ASYNC(cuMemcpy2DAsync, cuMemcpy2DAsync_v2, CUDA_MEMCPY2D, copy_2d)
BOX(cuMemcpy3D, cuMemcpy3D_v2, CUDA_MEMCPY3D, copy_3d)
BOX_ASYNC(cuMemcpy3DAsync, cuMemcpy3DAsync_v2, CUDA_MEMCPY3D, copy_3d)
BOX(cuMemcpy3DPeer, cuMemcpy3DPeer, CUDA_MEMCPY3D_PEER, copy_3d_between)
BOX_ASYNC(cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync, CUDA_MEMCPY3D_PEER, copy_3d_between)
#undef BOX
#undef BOX_ASYNC

#define PEER(symbol, asked)                                                                                          \
    API(symbol, CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, std::size_t bytes) { \
        return copy_between("cuMemcpyPeer", asked, to, to_context, from, from_context, bytes);                       \
    }
#define PEER_ASYNC(symbol, asked)                                                                                  \
    API(symbol, CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, std::size_t bytes, \
        CUstream stream) {                                                                                         \
        return copy_between("cuMemcpyPeerAsync", asked, to, to_context, from, from_context, bytes);                \
    }
PEER(cuMemcpyPeer, legacy)
PEER(cuMemcpyPeer_ptds, own_default)
PEER_ASYNC(cuMemcpyPeerAsync, async(stream))
PEER_ASYNC(cuMemcpyPeerAsync_ptsz, async(per_thread(stream)))
#undef PEER
#undef PEER_ASYNC

#define FILL(symbol, asked, Element)                                  \
    API(symbol, CUdeviceptr to, Element value, std::size_t count) {   \
        return fill<Element>(#symbol, asked, to, 0, value, count, 1); \
    }
#define FILL_ASYNC(symbol, asked, Element)                                           \
    API(symbol, CUdeviceptr to, Element value, std::size_t count, CUstream stream) { \
        return fill<Element>(#symbol, asked, to, 0, value, count, 1);                \
    }
#define FILL_2D(symbol, asked, Element)                                                                    \
    API(symbol, CUdeviceptr to, std::size_t pitch, Element value, std::size_t width, std::size_t height) { \
        return fill<Element>(#symbol, asked, to, pitch, value, width, height);                             \
    }
#define FILL_2D_ASYNC(symbol, asked, Element)                                                            \
    API(symbol, CUdeviceptr to, std::size_t pitch, Element value, std::size_t width, std::size_t height, \
        CUstream stream) {                                                                               \
        return fill<Element>(#symbol, asked, to, pitch, value, width, height);                           \
    }
#define FILLS(bits, Element)                                                    \
    FILL(cuMemsetD##bits##_v2, legacy, Element)                                 \
    FILL(cuMemsetD##bits##_v2_ptds, own_default, Element)                       \
    FILL_ASYNC(cuMemsetD##bits##Async, async(stream), Element)                  \
    FILL_ASYNC(cuMemsetD##bits##Async_ptsz, async(per_thread(stream)), Element) \
    FILL_2D(cuMemsetD2D##bits##_v2, legacy, Element)                            \
    FILL_2D(cuMemsetD2D##bits##_v2_ptds, own_default, Element)                  \
    FILL_2D_ASYNC(cuMemsetD2D##bits##Async, async(stream), Element)             \
    FILL_2D_ASYNC(cuMemsetD2D##bits##Async_ptsz, async(per_thread(stream)), Element)
FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned)
#undef FILLS
#undef FILL
#undef FILL_ASYNC
#undef FILL_2D
#undef FILL_2D_ASYNC

}  // namespace ikat::cuda_driver
