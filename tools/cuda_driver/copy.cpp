// SPDX-License-Identifier: Apache-2.0
// Copies between host and device, and filling. They have completed when they return, but the program knows that only
// where a driver says so.
#include "tools/cuda_driver/state.hpp"

namespace ikat::cuda_driver {
namespace {

using emulator::work::on_device;
using emulator::work::on_host;
using emulator::work::Place;

/// The stream of an asynchronous call; nothing: the program waits for its end, on the default stream.
using Asked = std::optional<CUstream>;

/// Whether a driver may return before a copy is done: between buffers of the device, and of an asynchronous call unless
/// it writes memory of the host that is not page-locked.
bool goes_on(Driver& its, Asked stream, Place to, Place from) {
    if (!to.host && !from.host) return true;
    return stream && (!to.host || its.device.memory().pinned(reinterpret_cast<std::uintptr_t>(to.host)));
}

/// With unified addressing an address tells by itself where it is.
Place anywhere(CUdeviceptr address) {
    return emulator::Memory::is_device(address) ? on_device(address) : on_host(reinterpret_cast<void*>(address));
}

void check_range(Driver& its, CUdeviceptr address, std::size_t bytes) {
    const auto [begin, size] = its.device.memory().space().buffer_of(address);
    require(size && address + bytes <= begin + size && address + bytes >= address);
}

void copy(Driver& its, Asked stream, Place to, Place from, std::size_t bytes) {
    if (bytes == 0) return;
    require((to.host || to.device) && (from.host || from.device));
    if (!to.host) check_range(its, to.device, bytes);
    if (!from.host) check_range(its, from.device, bytes);
    its.device.run(id_of(stream.value_or(nullptr)), emulator::work::Copy{to, from, bytes},
                   goes_on(its, stream, to, from));
}

CUresult copy_on(const char* function, Asked stream, Place to, Place from, std::size_t bytes) {
    return on_stream(function, stream.value_or(nullptr),
                     [&](Driver& its, Context&) { copy(its, stream, to, from, bytes); });
}

CUresult copy_unified(const char* function, Asked stream, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    return on_stream(function, stream.value_or(nullptr),
                     [&](Driver& its, Context&) { copy(its, stream, anywhere(to), anywhere(from), bytes); });
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

/// Copies boxes of rows. Without a pitch the rows follow each other.
CUresult copy_3d(const char* function, Asked stream, const CUDA_MEMCPY3D* asked) {
    return on_stream(function, stream.value_or(nullptr), [&](Driver& its, Context&) {
        require(asked);
        const CUDA_MEMCPY3D& c = *asked;
        if (c.WidthInBytes == 0 || c.Height == 0 || c.Depth == 0) return;
        const Box from(place(c.srcMemoryType, c.srcHost, c.srcDevice), c.srcXInBytes, c.srcY, c.srcZ, c.srcPitch,
                       c.srcHeight, c.WidthInBytes, c.Height);
        const Box to(place(c.dstMemoryType, c.dstHost, c.dstDevice), c.dstXInBytes, c.dstY, c.dstZ, c.dstPitch,
                     c.dstHeight, c.WidthInBytes, c.Height);
        for (const Box& box : {from, to}) {
            const std::size_t first = box.offset(0, 0), last = box.offset(c.Height - 1, c.Depth - 1);
            require(box.place.host || box.place.device);
            if (!box.place.host) check_range(its, box.place.device + first, sum(last - first, c.WidthInBytes));
        }
        its.device.run(id_of(stream.value_or(nullptr)),
                       emulator::work::Copy{.to = to.place.at(to.offset(0, 0)),
                                            .from = from.place.at(from.offset(0, 0)),
                                            .bytes = c.WidthInBytes,
                                            .rows = c.Height,
                                            .planes = c.Depth,
                                            .to_pitch = to.pitches(),
                                            .from_pitch = from.pitches()},
                       goes_on(its, stream, to.place, from.place));
    });
}

/// Between two contexts, of which it is asked that they are alive: all memory is one device's.
void check_contexts(Driver& its, CUcontext to, CUcontext from) {
    for (const CUcontext handle : {to, from}) {
        Context* const context = its.contexts.find(handle);
        if (!context || !its.device.is_alive(context->id)) refuse(CUDA_ERROR_INVALID_CONTEXT);
    }
}

CUresult copy_between(const char* function, Asked stream, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                      CUcontext from_context, std::size_t bytes) {
    return on_stream(function, stream.value_or(nullptr), [&](Driver& its, Context&) {
        check_contexts(its, to_context, from_context);
        copy(its, stream, on_device(to), on_device(from), bytes);
    });
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

/// Fills rows of `width` elements each.
template <class Element>
CUresult fill(const char* function, Asked stream, CUdeviceptr to, std::size_t pitch, Element value, std::size_t width,
              std::size_t height) {
    return on_stream(function, stream.value_or(nullptr), [&](Driver& its, Context&) {
        if (width == 0 || height == 0) return;
        const std::size_t bytes = product(width, sizeof value);
        require(to % sizeof value == 0 && (height == 1 || (pitch >= bytes && pitch % sizeof value == 0)));
        check_range(its, to, sum(product(height - 1, pitch), bytes));
        const auto element = std::as_bytes(std::span(&value, 1));
        its.device.run(id_of(stream.value_or(nullptr)),
                       emulator::work::Fill{to, {element.begin(), element.end()}, width, height, pitch}, true);
    });
}

}  // namespace

#define COPY(name, to_type, to_place, from_type, from_place)                              \
    API(name##_v2, to_type to, from_type from, std::size_t bytes) {                       \
        return copy_on(#name, {}, to_place(to), from_place(from), bytes);                 \
    }                                                                                     \
    ALIAS(name##_v2_ptds, name##_v2);                                                     \
    API(name##Async_v2, to_type to, from_type from, std::size_t bytes, CUstream stream) { \
        return copy_on(#name "Async", stream, to_place(to), from_place(from), bytes);     \
    }                                                                                     \
    ALIAS(name##Async_v2_ptsz, name##Async_v2);
COPY(cuMemcpyHtoD, CUdeviceptr, on_device, const void*, on_host)
COPY(cuMemcpyDtoH, void*, on_host, CUdeviceptr, on_device)
COPY(cuMemcpyDtoD, CUdeviceptr, on_device, CUdeviceptr, on_device)
#undef COPY

API(cuMemcpy, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    return copy_unified("cuMemcpy", {}, to, from, bytes);
}
ALIAS(cuMemcpy_ptds, cuMemcpy);
API(cuMemcpyAsync, CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    return copy_unified("cuMemcpyAsync", stream, to, from, bytes);
}
ALIAS(cuMemcpyAsync_ptsz, cuMemcpyAsync);

API(cuMemcpy2D_v2, const CUDA_MEMCPY2D* copy) { return copy_2d("cuMemcpy2D", {}, copy); }
ALIAS(cuMemcpy2D_v2_ptds, cuMemcpy2D_v2);
API(cuMemcpy2DUnaligned_v2, const CUDA_MEMCPY2D* copy) { return copy_2d("cuMemcpy2DUnaligned", {}, copy); }
ALIAS(cuMemcpy2DUnaligned_v2_ptds, cuMemcpy2DUnaligned_v2);
API(cuMemcpy2DAsync_v2, const CUDA_MEMCPY2D* copy, CUstream stream) { return copy_2d("cuMemcpy2DAsync", stream, copy); }
ALIAS(cuMemcpy2DAsync_v2_ptsz, cuMemcpy2DAsync_v2);
API(cuMemcpy3D_v2, const CUDA_MEMCPY3D* copy) { return copy_3d("cuMemcpy3D", {}, copy); }
ALIAS(cuMemcpy3D_v2_ptds, cuMemcpy3D_v2);
API(cuMemcpy3DAsync_v2, const CUDA_MEMCPY3D* copy, CUstream stream) { return copy_3d("cuMemcpy3DAsync", stream, copy); }
ALIAS(cuMemcpy3DAsync_v2_ptsz, cuMemcpy3DAsync_v2);

API(cuMemcpyPeer, CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, std::size_t bytes) {
    return copy_between("cuMemcpyPeer", {}, to, to_context, from, from_context, bytes);
}
ALIAS(cuMemcpyPeer_ptds, cuMemcpyPeer);
API(cuMemcpyPeerAsync, CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
    std::size_t bytes, CUstream stream) {
    return copy_between("cuMemcpyPeerAsync", stream, to, to_context, from, from_context, bytes);
}
ALIAS(cuMemcpyPeerAsync_ptsz, cuMemcpyPeerAsync);
API(cuMemcpy3DPeer, const CUDA_MEMCPY3D_PEER* copy) { return copy_3d_between("cuMemcpy3DPeer", {}, copy); }
ALIAS(cuMemcpy3DPeer_ptds, cuMemcpy3DPeer);
API(cuMemcpy3DPeerAsync, const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
    return copy_3d_between("cuMemcpy3DPeerAsync", stream, copy);
}
ALIAS(cuMemcpy3DPeerAsync_ptsz, cuMemcpy3DPeerAsync);

#define FILL(bits, Element)                                                                            \
    API(cuMemsetD##bits##_v2, CUdeviceptr to, Element value, std::size_t count) {                      \
        return fill<Element>("cuMemsetD" #bits, {}, to, 0, value, count, 1);                           \
    }                                                                                                  \
    ALIAS(cuMemsetD##bits##_v2_ptds, cuMemsetD##bits##_v2);                                            \
    API(cuMemsetD##bits##Async, CUdeviceptr to, Element value, std::size_t count, CUstream stream) {   \
        return fill<Element>("cuMemsetD" #bits "Async", stream, to, 0, value, count, 1);               \
    }                                                                                                  \
    ALIAS(cuMemsetD##bits##Async_ptsz, cuMemsetD##bits##Async);                                        \
    API(cuMemsetD2D##bits##_v2, CUdeviceptr to, std::size_t pitch, Element value, std::size_t width,   \
        std::size_t height) {                                                                          \
        return fill<Element>("cuMemsetD2D" #bits, {}, to, pitch, value, width, height);                \
    }                                                                                                  \
    ALIAS(cuMemsetD2D##bits##_v2_ptds, cuMemsetD2D##bits##_v2);                                        \
    API(cuMemsetD2D##bits##Async, CUdeviceptr to, std::size_t pitch, Element value, std::size_t width, \
        std::size_t height, CUstream stream) {                                                         \
        return fill<Element>("cuMemsetD2D" #bits "Async", stream, to, pitch, value, width, height);    \
    }                                                                                                  \
    ALIAS(cuMemsetD2D##bits##Async_ptsz, cuMemsetD2D##bits##Async);
FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned)
#undef FILL

}  // namespace ikat::cuda_driver
