// SPDX-License-Identifier: Apache-2.0
// Memory pools, and the default streams of threads.
#include <thread>

#include "tests/unit/cuda_driver/graphs.hpp"

namespace ikat::tests {
namespace {
namespace pools {

CUmemPoolProps on_device() {
    CUmemPoolProps out{};
    out.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    out.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    return out;
}

std::uint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which) {
    std::uint64_t out = 0;
    WORKS(call("cuMemPoolGetAttribute", pool, which, static_cast<void*>(&out)));
    return out;
}

TEST_CASE("pools: what they count") {
    const Words words;
    const TestStream stream;
    CUmemoryPool pool = nullptr;
    const CUmemPoolProps props = on_device();
    WORKS(call("cuMemPoolCreate", &pool, &props));
    CUdeviceptr a = 0, b = 0;
    WORKS(call("cuMemAllocFromPoolAsync", &a, std::size_t{1000}, pool, stream.handle));
    WORKS(call("cuMemAllocFromPoolAsync", &b, std::size_t{500}, pool, stream.handle));
    CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 1500);
    WORKS(call("cuMemFreeAsync", a, stream.handle));
    CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 500);
    CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 1500);
    CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 1500);
    std::uint64_t threshold = 800, zero = 0, one = 1;
    WORKS(call("cuMemPoolSetAttribute", pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, static_cast<void*>(&threshold)));
    CHECK(attribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == 800);
    WORKS(call("cuStreamSynchronize", stream.handle));
    CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 800);
    WORKS(call("cuMemPoolTrimTo", pool, std::size_t{600}));
    CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 600);
    WORKS(call("cuMemPoolTrimTo", pool, std::size_t{0}));
    CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 500);
    CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) == 1500);
    for (const auto mark : {CU_MEMPOOL_ATTR_USED_MEM_HIGH, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH}) {
        CHECK(call("cuMemPoolSetAttribute", pool, mark, static_cast<void*>(&one)) == CUDA_ERROR_INVALID_VALUE);
        WORKS(call("cuMemPoolSetAttribute", pool, mark, static_cast<void*>(&zero)));
        CHECK(attribute(pool, mark) == 500);
    }
    for (const auto fixed :
         {CU_MEMPOOL_ATTR_USED_MEM_CURRENT, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, CUmemPool_attribute(9)})
        CHECK(call("cuMemPoolSetAttribute", pool, fixed, static_cast<void*>(&zero)) == CUDA_ERROR_INVALID_VALUE);
    struct {
        int value = 5, beyond = 7;
    } narrow;
    WORKS(call("cuMemPoolGetAttribute", pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES,
               static_cast<void*>(&narrow)));
    CHECK((narrow.value == 1 && narrow.beyond == 7));  // an int
    WORKS(call("cuMemPoolDestroy", pool));
    CHECK(call("cuMemPoolTrimTo", pool, std::size_t{0}) == CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuMemAllocFromPoolAsync", &a, std::size_t{4}, pool, stream.handle) == CUDA_ERROR_INVALID_VALUE);
    WORKS(call("cuMemsetD32Async", b, 1u, std::size_t{125}, stream.handle));  // what it gave stays
    WORKS(call("cuMemFree_v2", b));
}

TEST_CASE("pools: the current one of the device, and limits") {
    const Words words;
    const TestStream stream;
    CUmemoryPool pool = nullptr, before = nullptr, now = nullptr;
    CUmemPoolProps props = on_device();
    props.maxSize = 100;
    WORKS(call("cuMemPoolCreate", &pool, &props));
    WORKS(call("cuDeviceGetDefaultMemPool", &before, CUdevice(0)));
    WORKS(call("cuDeviceGetMemPool", &now, CUdevice(0)));
    CHECK(now == before);
    CHECK(call("cuMemPoolDestroy", before) == CUDA_ERROR_INVALID_VALUE);
    WORKS(call("cuDeviceSetMemPool", CUdevice(0), pool));
    CUdeviceptr a = 0, b = 0;
    WORKS(call("cuMemAllocAsync", &a, std::size_t{60}, stream.handle));
    CHECK(call("cuMemAllocAsync", &b, std::size_t{60}, stream.handle) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 60);
    CHECK(call("cuMemsetD8_v2", a, static_cast<unsigned char>(0), std::size_t{61}) == CUDA_ERROR_INVALID_VALUE);
    CUmemLocation device{CU_MEM_LOCATION_TYPE_DEVICE, 0};
    WORKS(call("cuMemGetMemPool", &now, &device, CU_MEM_ALLOCATION_TYPE_PINNED));
    CHECK(now == pool);
    WORKS(call("cuMemSetMemPool", &device, CU_MEM_ALLOCATION_TYPE_PINNED, before));
    WORKS(call("cuMemAllocAsync", &b, std::size_t{60}, stream.handle));
    WORKS(call("cuDeviceSetMemPool", CUdevice(0), pool));
    WORKS(call("cuMemFreeAsync", a, stream.handle));
    WORKS(call("cuMemPoolDestroy", pool));
    WORKS(call("cuDeviceGetMemPool", &now, CUdevice(0)));
    CHECK(now == before);
    WORKS(call("cuMemFreeAsync", b, stream.handle));
}

TEST_CASE("pools: who reaches them, and what is refused") {
    const Words words;
    CUmemoryPool pool = nullptr;
    CUmemPoolProps props = on_device();
    WORKS(call("cuMemPoolCreate", &pool, &props));
    CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    WORKS(call("cuMemPoolSetAccess", pool, static_cast<const CUmemAccessDesc*>(&access), std::size_t{1}));
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    CHECK(call("cuMemPoolSetAccess", pool, static_cast<const CUmemAccessDesc*>(&access), std::size_t{1}) ==
          CUDA_ERROR_INVALID_VALUE);
    unsigned flags = 7;
    CUmemLocation place{CU_MEM_LOCATION_TYPE_DEVICE, 0};
    WORKS(call("cuMemPoolGetAccess", &flags, pool, &place));
    CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    place.type = CU_MEM_LOCATION_TYPE_HOST;
    WORKS(call("cuMemPoolGetAccess", &flags, pool, &place));
    CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
    WORKS(call("cuMemPoolDestroy", pool));
    props.handleTypes = 1;
    CHECK(call("cuMemPoolCreate", &pool, &props) == CUDA_ERROR_NOT_SUPPORTED);
    props = on_device();
    props.location.type = CU_MEM_LOCATION_TYPE_HOST;
    CHECK(call("cuMemPoolCreate", &pool, &props) == CUDA_ERROR_NOT_SUPPORTED);
    props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
    CHECK(call("cuMemPoolCreate", &pool, &props) == CUDA_ERROR_INVALID_DEVICE);
    CHECK(call("cuMemPoolExportToShareableHandle") == CUDA_ERROR_NOT_SUPPORTED);
}

TEST_CASE("pools: memory is used where its allocation is known") {
    for (const bool is_right : {false, true}) {
        const Words words;
        const CUfunction kernel = appending_kernel();
        const TestStream a, b;
        const TestEvent event;
        CUdeviceptr memory = 0;
        const std::string text = said([&] {
            WORKS(call("cuMemAllocAsync", &memory, std::size_t{4}, a.handle));
            WORKS(call("cuEventRecord", event.handle, a.handle));
            if (is_right) WORKS(call("cuStreamWaitEvent", b.handle, event.handle, 0u));
            WORKS(call("cuMemsetD32Async", memory, 0u, std::size_t{1}, b.handle));
            WORKS(append(kernel, memory, 1, b));
        });
        if (is_right)
            CHECK(text == "");
        else
            CHECK_THAT(text, contains("a fill on stream") && contains("which an allocation on stream") &&
                                 contains("allocates, and nothing orders the two"));
    }
}

}  // namespace pools

namespace default_streams {

const auto own_stream = reinterpret_cast<CUstream>(per_thread_stream);

TEST_CASE("default streams: each thread has its own, which waits for the legacy one") {
    const Words words;
    unsigned long long mine = 0, again = 0, others = 0, legacy = 0;
    WORKS(call("cuStreamGetId", own_stream, &mine));
    WORKS(call("cuStreamGetId_ptsz", CUstream(nullptr), &again));
    WORKS(call("cuStreamGetId", CUstream(nullptr), &legacy));
    std::thread([&] {
        call("cuCtxSetCurrent", words.context.handle);
        WORKS(call("cuStreamGetId", own_stream, &others));
    }).join();
    CHECK((mine == again && mine != others && mine != legacy && legacy == 1));
    unsigned flags = 5;
    WORKS(call("cuStreamGetFlags", own_stream, &flags));
    CHECK(flags == 0);
    CHECK(call("cuStreamDestroy_v2", own_stream) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("default streams: what they order") {
    enum class Second { SameThread, OtherThread, Legacy, NonBlocking, count };
    for (int i = 0; i < int(Second::count); ++i) {
        const Words words;
        const CUfunction first = appending_kernel(), second = appending_kernel();
        const TestStream other;
        const std::string text = said([&] {
            WORKS(append(first, words.at, 1, own_stream));
            switch (Second(i)) {
                case Second::SameThread: WORKS(append(second, words.at, 2, own_stream)); break;
                case Second::Legacy: WORKS(append(second, words.at, 2, nullptr)); break;
                case Second::NonBlocking: WORKS(append(second, words.at, 2, other)); break;
                case Second::OtherThread:
                    std::thread([&] {
                        call("cuCtxSetCurrent", words.context.handle);
                        WORKS(append(second, words.at, 2, own_stream));
                    }).join();
                    break;
                case Second::count: break;
            }
        });
        INFO(i);
        const bool is_wrong = Second(i) == Second::OtherThread || Second(i) == Second::NonBlocking;
        CHECK((text == "") == !is_wrong);
        CHECK(words.value() == 12);
    }
}

TEST_CASE("default streams: functions of the second form mean that of the thread") {
    const Words words;
    const CUfunction first = appending_kernel(), second = appending_kernel();
    CUdeviceptr address = words.at;
    unsigned digit = 3, out = 0;
    void* parameters[] = {&address, &digit};
    const auto launch_as = [&](const char* symbol) {
        return call(symbol, second, 1u, 1u, 1u, 1u, 1u, 1u, 0u, CUstream(nullptr), &parameters[0],
                    static_cast<void**>(nullptr));
    };
    for (const bool is_own : {false, true}) {
        const TestStream stream;  // waits for neither
        const TestEvent event;
        const std::string text = said([&] {
            WORKS(append(first, words.at, 1, own_stream));
            WORKS(call(is_own ? "cuEventRecord_ptsz" : "cuEventRecord", event.handle, CUstream(nullptr)));
            WORKS(call("cuStreamWaitEvent", stream.handle, event.handle, 0u));
            WORKS(append(second, words.at, 2, stream));
        });
        CHECK(text == "");  // the legacy stream has waited for that of the thread
        WORKS(call("cuCtxSynchronize"));
    }
    WORKS(launch_as("cuLaunchKernel_ptsz"));
    WORKS(call("cuMemcpyDtoH_v2_ptds", static_cast<void*>(&out), words.at, std::size_t{4}));
    CHECK(out == 12123);
    // The program has waited for its own stream only.
    const CUfunction last = appending_kernel();
    const TestStream stream;
    CHECK(said([&] {
              WORKS(append(last, words.at, 2, stream));
              WORKS(call("cuMemcpyDtoH_v2_ptds", static_cast<void*>(&out), words.at, std::size_t{4}));
          }) != "");
}

TEST_CASE("default streams: that of a thread is captured") {
    const Words words;
    const CUfunction kernel = appending_kernel();
    CUgraph captured = nullptr;
    WORKS(call("cuStreamBeginCapture_v2_ptsz", CUstream(nullptr), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    WORKS(append(kernel, words.at, 4, own_stream));
    WORKS(call("cuStreamEndCapture_ptsz", CUstream(nullptr), &captured));
    const TestGraph graph(captured);
    const TestExec exec(graph);
    CHECK(words.value() == 0);
    WORKS(call("cuGraphLaunch_ptsz", exec.handle, CUstream(nullptr)));
    WORKS(call("cuStreamSynchronize_ptsz", CUstream(nullptr)));
    CHECK(words.value() == 4);
}

TEST_CASE("default streams: that of a thread ends with it, and a capture of it") {
    const Words words;
    std::thread([&] {
        call("cuCtxSetCurrent", words.context.handle);
        WORKS(call("cuStreamBeginCapture_v2", own_stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    }).join();
    CUdeviceptr out = 0;
    WORKS(call("cuMemAlloc_v2", &out, std::size_t{4}));  // which the capture would forbid
}

TEST_CASE("default streams: a context that ends takes them along, and the next has others") {
    unsigned long long first = 0, second = 0;
    {
        const Words words;
        WORKS(call("cuStreamGetId", own_stream, &first));
    }
    const Words words;
    WORKS(call("cuStreamGetId", own_stream, &second));
    CHECK(first != second);
    WORKS(append(appending_kernel(), words.at, 4, own_stream));
    CHECK(words.value() == 4);
}

}  // namespace default_streams
}  // namespace
}  // namespace ikat::tests
