// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstring>
#include <numeric>
#include <vector>

#include "runtime/emulator/host/program.hpp"
#include "tests/catch.hpp"
#include "tests/unit/cuda_driver/said.hpp"
#include "tests/unit/cuda_driver/stand_in.hpp"

namespace ikat::tests {
namespace {

CUdeviceptr allocate(std::size_t bytes) {
    CUdeviceptr address = 0;
    CHECK(call("cuMemAlloc_v2", &address, bytes) == CUDA_SUCCESS);
    return address;
}

std::array<int, 16> numbers() {
    std::array<int, 16> out{};
    std::iota(out.begin(), out.end(), 1);
    return out;
}

TEST_CASE("memory is allocated, filled, copied and freed") {
    const OwnContext own;
    const auto host = numbers();
    std::array<int, 16> back{};
    const CUdeviceptr a = allocate(sizeof host), b = allocate(sizeof host);
    CHECK(call("cuMemcpyHtoD_v2", a, static_cast<const void*>(host.data()), sizeof host) == CUDA_SUCCESS);
    CHECK(call("cuMemcpyDtoD_v2", b, a, sizeof host) == CUDA_SUCCESS);
    CHECK(call("cuMemsetD32_v2", b + 8, 7u, std::size_t{2}) == CUDA_SUCCESS);
    CHECK(call("cuMemcpyDtoH_v2", static_cast<void*>(back.data()), b, sizeof back) == CUDA_SUCCESS);
    CHECK(back == std::array<int, 16>{1, 2, 7, 7, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
    CHECK(call("cuMemcpy", CUdeviceptr(reinterpret_cast<std::uintptr_t>(back.data())), a, sizeof back) == CUDA_SUCCESS);
    CHECK(back == host);
    CHECK(call("cuMemFree_v2", a) == CUDA_SUCCESS);
    CHECK(call("cuMemFree_v2", a) == CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuMemFree_v2", b + 4) == CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuMemFree_v2", CUdeviceptr(0)) == CUDA_SUCCESS);
    CHECK(call("cuMemcpyDtoH_v2", static_cast<void*>(back.data()), a, sizeof back) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("copies stay inside their buffers") {
    const OwnContext own;
    auto host = numbers();
    const CUdeviceptr a = allocate(60);
    CHECK(call("cuMemcpyHtoD_v2", a, static_cast<const void*>(host.data()), sizeof host) == CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuMemcpyHtoD_v2", a + 4, static_cast<const void*>(host.data()), std::size_t{60}) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuMemcpyHtoD_v2", a, static_cast<const void*>(nullptr), std::size_t{4}) == CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuMemcpyHtoD_v2", a, static_cast<const void*>(nullptr), std::size_t{0}) == CUDA_SUCCESS);
    CHECK(call("cuMemsetD8_v2", a, static_cast<unsigned char>(1), std::size_t{61}) == CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuMemsetD32_v2", a + 2, 1u, std::size_t{1}) == CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuMemAlloc_v2", &const_cast<CUdeviceptr&>(a), std::size_t{0}) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("copies between contexts, which are no peers of each other") {
    const OwnContext other;
    const CUdeviceptr theirs = allocate(64);
    const auto host = numbers();
    std::array<int, 16> back{};
    CHECK(call("cuMemcpyHtoD_v2", theirs, static_cast<const void*>(host.data()), sizeof host) == CUDA_SUCCESS);
    const OwnContext own;
    const CUdeviceptr a = allocate(64);
    CHECK(call("cuMemcpyPeer", a, own.handle, theirs, other.handle, std::size_t{32}) == CUDA_SUCCESS);
    CHECK(call("cuMemcpyPeerAsync", a + 32, own.handle, theirs, other.handle, std::size_t{32}, CUstream(nullptr)) ==
          CUDA_SUCCESS);
    CHECK(call("cuMemcpyDtoH_v2", static_cast<void*>(back.data()), a, sizeof back) == CUDA_SUCCESS);
    CHECK(back == std::array<int, 16>{1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8});
    CHECK(call("cuMemcpyPeer", a, own.handle, theirs, other.handle, std::size_t{65}) == CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuMemcpyPeer", a, own.handle, theirs, CUcontext(nullptr), std::size_t{4}) ==
          CUDA_ERROR_INVALID_CONTEXT);

    CUDA_MEMCPY3D_PEER box{};
    box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    box.srcDevice = theirs, box.srcContext = other.handle, box.srcPitch = 16, box.srcXInBytes = 4;
    box.dstDevice = a, box.dstContext = own.handle, box.dstPitch = 8;
    box.WidthInBytes = 8, box.Height = 3, box.Depth = 1;
    const CUDA_MEMCPY3D_PEER* const asked = &box;
    CHECK(call("cuMemcpy3DPeer", asked) == CUDA_SUCCESS);
    CHECK(call("cuMemcpyDtoH_v2", static_cast<void*>(back.data()), a, std::size_t{24}) == CUDA_SUCCESS);
    CHECK(std::vector(back.begin(), back.begin() + 6) == std::vector{2, 3, 6, 7, 10, 11});
    box.srcContext = nullptr;
    CHECK(call("cuMemcpy3DPeerAsync", asked, CUstream(nullptr)) == CUDA_ERROR_INVALID_CONTEXT);

    CHECK(call("cuCtxEnablePeerAccess", other.handle, 1u) == CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuCtxEnablePeerAccess", own.handle, 0u) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(call("cuCtxEnablePeerAccess", other.handle, 0u) == CUDA_ERROR_INVALID_DEVICE);
    CHECK(call("cuCtxDisablePeerAccess", other.handle) == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
}

TEST_CASE("a box of rows is copied between pitches") {
    const OwnContext own;
    const auto host = numbers();  // 4 rows of 4
    CUdeviceptr a = 0;
    std::size_t pitch = 0;
    CHECK(call("cuMemAllocPitch_v2", &a, &pitch, std::size_t{16}, std::size_t{4}, 4u) == CUDA_SUCCESS);
    CHECK(pitch == 512);
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = host.data(), copy.srcPitch = 16;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE, copy.dstDevice = a, copy.dstPitch = pitch;
    copy.WidthInBytes = 16, copy.Height = 4;
    CHECK(call("cuMemcpy2D_v2", static_cast<const CUDA_MEMCPY2D*>(&copy)) == CUDA_SUCCESS);
    std::array<int, 4> back{};
    CUDA_MEMCPY2D part{};
    part.srcMemoryType = CU_MEMORYTYPE_DEVICE, part.srcDevice = a, part.srcPitch = pitch, part.srcXInBytes = 4,
    part.srcY = 1;
    part.dstMemoryType = CU_MEMORYTYPE_HOST, part.dstHost = back.data(), part.dstPitch = 8;
    part.WidthInBytes = 8, part.Height = 2;
    CHECK(call("cuMemcpy2D_v2", static_cast<const CUDA_MEMCPY2D*>(&part)) == CUDA_SUCCESS);
    CHECK(back == std::array<int, 4>{6, 7, 10, 11});
    part.dstPitch = 4;
    CHECK(call("cuMemcpy2D_v2", static_cast<const CUDA_MEMCPY2D*>(&part)) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("pointers tell what they point into") {
    const OwnContext own;
    const CUdeviceptr a = allocate(100);
    CUdeviceptr begin = 0;
    std::size_t size = 0;
    CHECK(call("cuMemGetAddressRange_v2", &begin, &size, a + 50) == CUDA_SUCCESS);
    CHECK((begin == a && size == 100));
    CHECK(call("cuMemGetAddressRange_v2", &begin, &size, a + 5000) == CUDA_ERROR_NOT_FOUND);
    unsigned type = 0;
    CHECK(call("cuPointerGetAttribute", static_cast<void*>(&type), CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a) ==
          CUDA_SUCCESS);
    CHECK(type == CU_MEMORYTYPE_DEVICE);
    void* host = nullptr;
    CHECK(call("cuMemHostAlloc", &host, std::size_t{100}, 0u) == CUDA_SUCCESS);
    CHECK(call("cuPointerGetAttribute", static_cast<void*>(&type), CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
               CUdeviceptr(reinterpret_cast<std::uintptr_t>(host))) == CUDA_SUCCESS);
    CHECK(type == CU_MEMORYTYPE_HOST);
    const auto inside = CUdeviceptr(reinterpret_cast<std::uintptr_t>(host)) + 4;
    std::uint64_t begin_of = ~0ull;
    CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_POINTER};
    void* answers[] = {&type, &begin_of};
    CHECK(call("cuPointerGetAttributes", 2u, &asked[0], &answers[0], inside) == CUDA_SUCCESS);
    CHECK((type == CU_MEMORYTYPE_HOST && begin_of == inside));
    CHECK(call("cuMemFreeHost", host) == CUDA_SUCCESS);
    CHECK(call("cuMemFreeHost", host) == CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuPointerGetAttribute", static_cast<void*>(&type), CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
               CUdeviceptr(reinterpret_cast<std::uintptr_t>(&type))) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a copy to the host of bytes that nothing has written is said, once for each buffer") {
    const OwnContext own;
    const CUdeviceptr a = allocate(64), rows = allocate(4 * 64);
    CHECK(call("cuMemsetD8_v2", a, static_cast<unsigned char>(1), std::size_t{60}) == CUDA_SUCCESS);
    std::array<char, 64> back{};
    const auto download = [&](std::size_t bytes) {
        return said([&] {
            CHECK(call("cuMemcpyDtoH_v2", static_cast<void*>(back.data()), a, bytes) == CUDA_SUCCESS);
            CHECK(call("cuMemcpyDtoHAsync_v2", static_cast<void*>(back.data()), a, bytes, CUstream(nullptr)) ==
                  CUDA_SUCCESS);
        });
    };
    CHECK(download(60) == "");
    const std::string text = download(64);
    CHECK_THAT(text, contains("note: nothing has written 4 of the 64 bytes of the buffer at 0x"));
    CHECK_THAT(text, contains("that are copied to the host, from offset 60 on"));
    CHECK(text.rfind("note:") == text.find("note:"));
    CUDA_MEMCPY2D box{};
    box.srcMemoryType = CU_MEMORYTYPE_DEVICE, box.srcDevice = rows, box.srcPitch = 64;
    box.dstMemoryType = CU_MEMORYTYPE_HOST, box.dstHost = back.data();
    box.WidthInBytes = 16, box.Height = 4;
    CHECK_THAT(said([&] { call("cuMemcpy2D_v2", static_cast<const CUDA_MEMCPY2D*>(&box)); }),
               contains("nothing has written any of the 16 bytes of the buffer at"));
}

TEST_CASE("sizes that are too large are refused and not cut") {
    const OwnContext own;
    CUdeviceptr a = allocate(4096), b = 0;
    std::size_t pitch = 0, free = 0, total = 0;
    void* host = nullptr;
    constexpr std::size_t huge = ~std::size_t{0};
    CHECK(call("cuMemHostAlloc", &host, huge - 100, 0u) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(call("cuMemAllocPitch_v2", &b, &pitch, std::size_t{512}, (std::size_t{1} << 55) + 1, 4u) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuMemsetD32_v2", a, 7u, (std::size_t{1} << 62) + 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuMemGetInfo_v2", &free, &total) == CUDA_SUCCESS);
    CHECK(call("cuMemAlloc_v2", &b, free + 1) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(total - free >= 4096);
    std::array<int, 4> back{};
    CUDA_MEMCPY2D part{};
    part.srcMemoryType = CU_MEMORYTYPE_DEVICE, part.srcDevice = a, part.srcXInBytes = huge - 7;
    part.dstMemoryType = CU_MEMORYTYPE_HOST, part.dstHost = back.data();
    part.WidthInBytes = 16, part.Height = 1;
    CHECK(call("cuMemcpy2D_v2", static_cast<const CUDA_MEMCPY2D*>(&part)) == CUDA_ERROR_INVALID_VALUE);
}

#ifndef __SANITIZE_THREAD__  // where windows are not marked
TEST_CASE("the device has no address that another one of the process has") {
    const OwnContext own;
    emulator::Memory other;  // of another copy of the library than the stand-in's
    const CUdeviceptr theirs = other.allocate(64), ours = allocate(64);
    CHECK(ours >> 36 != theirs >> 36);
    void* host = nullptr;
    CHECK(call("cuMemHostAlloc", &host, std::size_t{100}, 0u) == CUDA_SUCCESS);
    CHECK(reinterpret_cast<std::uintptr_t>(host) >> 36 != other.allocate_mapped(64) >> 36);
}
#endif

TEST_CASE("an address of freed memory is no host address") {
    const OwnContext own;
    const CUdeviceptr a = allocate(64);
    std::array<int, 16> host{};
    const auto to = CUdeviceptr(reinterpret_cast<std::uintptr_t>(host.data()));
    CHECK(call("cuMemcpy", to, a + (1 << 20), sizeof host) == CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuMemFree_v2", a) == CUDA_SUCCESS);
    CHECK(call("cuMemcpy", to, a, sizeof host) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("rows of a box that would lie in another buffer are refused before anything is copied") {
    const OwnContext own;
    const CUdeviceptr a = allocate(64), b = allocate(64);
    const auto host = numbers();
    CHECK(call("cuMemsetD32_v2", a, 7u, std::size_t{16}) == CUDA_SUCCESS);
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = host.data();
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE, copy.dstDevice = a, copy.dstPitch = b - a;
    copy.WidthInBytes = 16, copy.Height = 2;
    CHECK(call("cuMemcpy2D_v2", static_cast<const CUDA_MEMCPY2D*>(&copy)) == CUDA_ERROR_INVALID_VALUE);
    int first = 0;
    CHECK(call("cuMemcpyDtoH_v2", static_cast<void*>(&first), a, sizeof first) == CUDA_SUCCESS);
    CHECK(first == 7);
}

TEST_CASE("host memory is registered once") {
    const OwnContext own;
    std::array<char, 4096> memory{};
    CHECK(call("cuMemHostRegister_v2", static_cast<void*>(memory.data()), memory.size(), 0u) == CUDA_SUCCESS);
    CHECK(call("cuMemHostRegister_v2", static_cast<void*>(memory.data() + 100), std::size_t{10}, 0u) ==
          CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    CHECK(call("cuMemFreeHost", static_cast<void*>(memory.data())) == CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuMemHostUnregister", static_cast<void*>(memory.data())) == CUDA_SUCCESS);
    CHECK(call("cuMemHostUnregister", static_cast<void*>(memory.data())) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    void* host = nullptr;
    CHECK(call("cuMemHostAlloc", &host, std::size_t{16}, 0xff00u) == CUDA_ERROR_INVALID_VALUE);
}

/// A kernel that adds 1 to a number.
CUfunction increment() {
    return function(load(".param .u64 p",
                         ".reg .b64 %d; .reg .b32 %r; ld.param.u64 %d, [p]; ld.global.u32 %r, [%d];\n"
                         "add.u32 %r, %r, 1; st.global.u32 [%d], %r;"));
}

CUresult increment_at(CUdeviceptr address) {
    void* parameters[] = {&address};
    const CUresult result = launch(increment(), {}, parameters);
    return result == CUDA_SUCCESS ? call("cuCtxSynchronize") : result;
}

TEST_CASE("kernels reach page-locked and managed memory at the host's address") {
    const OwnContext own;
    void* host = nullptr;
    CUdeviceptr managed = 0, address = 0;
    CHECK(call("cuMemHostAlloc", &host, std::size_t{64}, 2u) == CUDA_SUCCESS);
    const auto pinned = CUdeviceptr(reinterpret_cast<std::uintptr_t>(host));
    CHECK(call("cuMemHostGetDevicePointer_v2", &address, static_cast<void*>(static_cast<char*>(host) + 4), 0u) ==
          CUDA_SUCCESS);
    CHECK(address == pinned + 4);
    CHECK(call("cuMemAllocManaged", &managed, std::size_t{64}, 1u) == CUDA_SUCCESS);
    for (const CUdeviceptr at : {pinned, managed}) {
        volatile unsigned* const number = reinterpret_cast<unsigned*>(at);
        *number = 41;
        CHECK(increment_at(at) == CUDA_SUCCESS);
        CHECK(*number == 42);
        CHECK(call("cuMemsetD32_v2", at, 7u, std::size_t{1}) == CUDA_SUCCESS);
        CHECK(*number == 7);
        CHECK(call("cuMemcpy", managed, at, std::size_t{4}) == CUDA_SUCCESS);
    }
    int is_managed = 0;
    CHECK(call("cuPointerGetAttribute", static_cast<void*>(&is_managed), CU_POINTER_ATTRIBUTE_IS_MANAGED, managed) ==
          CUDA_SUCCESS);
    CHECK(is_managed == 1);
    CHECK(call("cuMemPrefetchAsync", managed, std::size_t{64}, CUdevice(0), CUstream(nullptr)) == CUDA_SUCCESS);
    CHECK(call("cuMemPrefetchAsync", managed, std::size_t{65}, CUdevice(0), CUstream(nullptr)) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuMemFreeHost", host) == CUDA_SUCCESS);
    CHECK(call("cuMemFree_v2", managed) == CUDA_SUCCESS);
    CHECK(increment_at(pinned) == CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("kernels reach registered memory at an address of its own") {
    const OwnContext own;
    std::array<unsigned, 2000> memory{};
    CUdeviceptr address = 0;
    const auto find = [&](unsigned i) {
        return call("cuMemHostGetDevicePointer_v2", &address, static_cast<void*>(&memory[i]), 0u);
    };
    CHECK(find(0) == CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuMemHostRegister_v2", static_cast<void*>(&memory[3]), std::size_t{4 * 1990}, 0u) == CUDA_SUCCESS);
    CHECK(find(1992) == CUDA_SUCCESS);
    CHECK(increment_at(address) == CUDA_SUCCESS);
    CHECK(memory[1992] == 1);
    CHECK(call("cuMemHostUnregister", static_cast<void*>(&memory[3])) == CUDA_SUCCESS);
    CHECK(increment_at(address) == CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("a kernel's malloc has what the program asks for") {
    const auto allocates = [](std::size_t heap) {
        const OwnContext own;
        const CUfunction kernel = function(load(".param .u64 p",
                                                ".reg .b64 %d<2>; ld.param.u64 %d0, [p];\n"
                                                "{ .param .b64 n; .param .b64 r; st.param.b64 [n], 12582912;\n"
                                                "call.uni (r), malloc, (n); ld.param.b64 %d1, [r]; }\n"
                                                "st.global.u64 [%d0], %d1;",
                                                "", ".extern .func (.param .b64 r) malloc(.param .b64 n);"));
        if (heap) CHECK(call("cuCtxSetLimit", CU_LIMIT_MALLOC_HEAP_SIZE, heap) == CUDA_SUCCESS);
        CUdeviceptr out = allocate(8), got = 0;
        void* parameters[] = {&out};
        CHECK(launch(kernel, {}, parameters) == CUDA_SUCCESS);
        CHECK(call("cuMemcpyDtoH_v2", static_cast<void*>(&got), out, sizeof got) == CUDA_SUCCESS);
        return got != 0;
    };
    CHECK(!allocates(0));
    CHECK(allocates(16 << 20));
}

TEST_CASE("pools give memory in stream order") {
    const OwnContext own;
    CUmemoryPool pool = nullptr;
    std::uint64_t threshold = 1 << 20, read = 0;
    CHECK(call("cuDeviceGetDefaultMemPool", &pool, CUdevice(0)) == CUDA_SUCCESS);
    CHECK(call("cuMemPoolSetAttribute", pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, static_cast<void*>(&threshold)) ==
          CUDA_SUCCESS);
    CHECK(call("cuMemPoolGetAttribute", pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, static_cast<void*>(&read)) ==
          CUDA_SUCCESS);
    CHECK(read == threshold);
    CUdeviceptr address = 0;
    CHECK(call("cuMemAllocAsync", &address, std::size_t{64}, CUstream(nullptr)) == CUDA_SUCCESS);
    CHECK(call("cuMemFreeAsync", address, CUstream(nullptr)) == CUDA_SUCCESS);
    CHECK(call("cuMemFreeAsync", address, CUstream(nullptr)) == CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace ikat::tests
