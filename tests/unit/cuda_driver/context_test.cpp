// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "tests/catch.hpp"
#include "tests/unit/cuda_driver/stand_in.hpp"

namespace ikat::tests {
namespace {

TEST_CASE("contexts form a stack in each thread") {
    const OwnContext own;
    CUcontext current = nullptr;
    CHECK(call("cuCtxGetCurrent", &current) == CUDA_SUCCESS);
    CHECK(current == own.handle);
    CUcontext second = nullptr;
    CHECK(call("cuCtxCreate_v2", &second, 0u, CUdevice(0)) == CUDA_SUCCESS);
    CHECK(call("cuCtxPopCurrent_v2", &current) == CUDA_SUCCESS);
    CHECK(current == second);
    CHECK(call("cuCtxGetCurrent", &current) == CUDA_SUCCESS);
    CHECK(current == own.handle);
    CHECK(call("cuCtxDestroy_v2", second) == CUDA_SUCCESS);
    CHECK(call("cuCtxPushCurrent_v2", second) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    std::jthread([&] {
        CUdeviceptr address = 0;
        CHECK(call("cuCtxGetCurrent", &current) == CUDA_SUCCESS);
        CHECK(current == nullptr);
        CHECK(call("cuMemAlloc_v2", &address, std::size_t{16}) == CUDA_ERROR_INVALID_CONTEXT);
    }).join();
}

TEST_CASE("a context that another thread destroys is gone for this one") {
    OwnContext own;
    std::jthread([&] { CHECK(call("cuCtxDestroy_v2", own.handle) == CUDA_SUCCESS); }).join();
    CUdeviceptr address = 0;
    CHECK(call("cuMemAlloc_v2", &address, std::size_t{16}) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK(call("cuCtxSetCurrent", CUcontext(nullptr)) == CUDA_SUCCESS);
}

TEST_CASE("the primary context lives as long as somebody holds it") {
    call("cuInit", 0u);
    CUcontext primary = nullptr, again = nullptr;
    unsigned flags = 0;
    int active = 0;
    CHECK(call("cuDevicePrimaryCtxRetain", &primary, CUdevice(0)) == CUDA_SUCCESS);
    CHECK(call("cuDevicePrimaryCtxRetain", &again, CUdevice(0)) == CUDA_SUCCESS);
    CHECK(primary == again);
    CHECK(call("cuCtxDestroy_v2", primary) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(call("cuDevicePrimaryCtxRelease_v2", CUdevice(0)) == CUDA_SUCCESS);
    CHECK(call("cuDevicePrimaryCtxGetState", CUdevice(0), &flags, &active) == CUDA_SUCCESS);
    CHECK(active == 1);
    CHECK(call("cuDevicePrimaryCtxRelease_v2", CUdevice(0)) == CUDA_SUCCESS);
    CHECK(call("cuDevicePrimaryCtxGetState", CUdevice(0), &flags, &active) == CUDA_SUCCESS);
    CHECK(active == 0);
    CHECK(call("cuDevicePrimaryCtxRelease_v2", CUdevice(0)) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(call("cuDevicePrimaryCtxRetain", &primary, CUdevice(1)) == CUDA_ERROR_INVALID_DEVICE);
}

TEST_CASE("handles of destroyed objects are refused, and belong to their context") {
    const OwnContext own;
    CUstream stream = nullptr;
    CUevent event = nullptr;
    CHECK(call("cuStreamCreate", &stream, 0u) == CUDA_SUCCESS);
    CHECK(call("cuEventCreate", &event, 0u) == CUDA_SUCCESS);
    {
        const OwnContext other;
        CUcontext of = nullptr;
        CHECK(call("cuStreamSynchronize", stream) == CUDA_SUCCESS);
        CHECK(call("cuStreamGetCtx", stream, &of) == CUDA_SUCCESS);
        CHECK(of == own.handle);
        CHECK(launch(function(load("", "")), {}, nullptr, stream) == CUDA_ERROR_INVALID_HANDLE);
        CHECK(call("cuEventRecord", event, CUstream(nullptr)) == CUDA_ERROR_INVALID_HANDLE);
    }
    CHECK(call("cuStreamSynchronize", stream) == CUDA_SUCCESS);
    CHECK(call("cuStreamDestroy_v2", stream) == CUDA_SUCCESS);
    CHECK(call("cuStreamSynchronize", stream) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(call("cuStreamDestroy_v2", stream) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(call("cuEventDestroy_v2", event) == CUDA_SUCCESS);
    CHECK(call("cuEventSynchronize", event) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(call("cuModuleUnload", CUmodule(nullptr)) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("events measure time once they are recorded") {
    const OwnContext own;
    CUevent start = nullptr, stop = nullptr, untimed = nullptr;
    float milliseconds = -1;
    call("cuEventCreate", &start, 0u);
    call("cuEventCreate", &stop, 0u);
    call("cuEventCreate", &untimed, unsigned(CU_EVENT_DISABLE_TIMING));
    CHECK(call("cuEventElapsedTime", &milliseconds, start, stop) == CUDA_ERROR_INVALID_HANDLE);
    for (const CUevent event : {start, stop, untimed})
        CHECK(call("cuEventRecord", event, CUstream(nullptr)) == CUDA_SUCCESS);
    CHECK(call("cuEventElapsedTime", &milliseconds, start, stop) == CUDA_SUCCESS);
    CHECK(milliseconds >= 0);
    CHECK(call("cuEventElapsedTime", &milliseconds, start, untimed) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("callbacks run in the order of the stream, on another thread") {
    const OwnContext own;
    std::atomic<int> called = 0;
    const CUhostFn host = [](void* data) { ++*static_cast<std::atomic<int>*>(data); };
    const CUstreamCallback callback = [](CUstream, CUresult status, void* data) {
        *static_cast<std::atomic<int>*>(data) += status == CUDA_SUCCESS ? 10 : 100;
    };
    CHECK(call("cuLaunchHostFunc", CUstream(nullptr), host, static_cast<void*>(&called)) == CUDA_SUCCESS);
    CHECK(call("cuStreamAddCallback", CUstream(nullptr), callback, static_cast<void*>(&called), 0u) == CUDA_SUCCESS);
    CHECK(call("cuStreamSynchronize", CUstream(nullptr)) == CUDA_SUCCESS);
    CHECK(called == 11);
    // The program may wait for a callback by its own means.
    std::mutex mutex;
    std::condition_variable done;
    struct Shared {
        std::mutex& mutex;
        std::condition_variable& done;
        bool is_done = false;
        CUresult from_callback = CUDA_SUCCESS;
    } shared{mutex, done};
    const CUhostFn notify = [](void* data) {
        Shared& its = *static_cast<Shared*>(data);
        const std::lock_guard lock(its.mutex);
        its.from_callback = call("cuStreamSynchronize", CUstream(nullptr));
        its.is_done = true;
        its.done.notify_all();
    };
    std::unique_lock lock(mutex);
    CHECK(call("cuLaunchHostFunc", CUstream(nullptr), notify, static_cast<void*>(&shared)) == CUDA_SUCCESS);
    done.wait(lock, [&] { return shared.is_done; });
    CHECK(shared.from_callback == CUDA_ERROR_NOT_PERMITTED);
}

TEST_CASE("several threads use contexts of their own and a shared one") {
    const OwnContext shared;
    std::atomic<int> wrong = 0;
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t)
            threads.emplace_back([&, t] {
                for (int round = 0; round < 20; ++round) {
                    const OwnContext own;
                    if (t % 2) call("cuCtxSetCurrent", shared.handle);
                    CUdeviceptr out = 0;
                    unsigned result = 0;
                    const CUmodule module = load(".param .u64 p",
                                                 ".reg .b64 %d; .reg .b32 %r; ld.param.u64 %d, [p];\n"
                                                 "mov.u32 %r, %ntid.x; st.global.u32 [%d], %r;");
                    void* parameters[] = {&out};
                    wrong += call("cuMemAlloc_v2", &out, std::size_t{4}) != CUDA_SUCCESS;
                    wrong += launch(function(module), {.threads = unsigned(round + 1)}, parameters) != CUDA_SUCCESS;
                    wrong += call("cuMemcpyDtoH_v2", static_cast<void*>(&result), out, std::size_t{4}) != CUDA_SUCCESS;
                    wrong += result != unsigned(round + 1);
                    wrong += call("cuMemFree_v2", out) != CUDA_SUCCESS;
                    wrong += call("cuModuleUnload", module) != CUDA_SUCCESS;
                }
            });
    }
    CHECK(wrong == 0);
}

TEST_CASE("a context ends when the last that attached to it detaches") {
    call("cuInit", 0u);
    CUcontext context = nullptr, again = nullptr;
    CHECK(call("cuCtxCreate_v2", &context, 0u, CUdevice(0)) == CUDA_SUCCESS);
    CHECK(call("cuCtxAttach", &again, 0u) == CUDA_SUCCESS);
    CHECK(again == context);
    CHECK(call("cuCtxDetach", context) == CUDA_SUCCESS);
    CHECK(call("cuCtxSynchronize") == CUDA_SUCCESS);
    CHECK(call("cuCtxDetach", context) == CUDA_SUCCESS);
    CHECK(call("cuCtxDetach", context) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

TEST_CASE("results have names and texts") {
    const char* text = nullptr;
    CHECK(call("cuGetErrorName", CUDA_ERROR_ILLEGAL_ADDRESS, &text) == CUDA_SUCCESS);
    CHECK(std::string(text) == "CUDA_ERROR_ILLEGAL_ADDRESS");
    CHECK(call("cuGetErrorString", CUDA_ERROR_OUT_OF_MEMORY, &text) == CUDA_SUCCESS);
    CHECK(std::string(text) == "out of memory");
    CHECK(call("cuGetErrorName", CUresult(12345), &text) == CUDA_ERROR_INVALID_VALUE);
    CHECK(text == nullptr);
}

TEST_CASE("the device says what it is") {
    call("cuInit", 0u);
    int count = 0, major = 0, unknown = -1;
    char name[8] = {};
    CHECK(call("cuDeviceGetCount", &count) == CUDA_SUCCESS);
    CHECK(count == 1);
    CHECK(call("cuDeviceGetAttribute", &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, CUdevice(0)) ==
          CUDA_SUCCESS);
    CHECK(major == 9);
    CHECK(call("cuDeviceGetAttribute", &unknown, CUdevice_attribute(500), CUdevice(0)) == CUDA_SUCCESS);
    CHECK(unknown == 0);
    CHECK(call("cuDeviceGetName", &name[0], 8, CUdevice(0)) == CUDA_SUCCESS);
    CHECK(std::string(name) == "ikat em");
    CHECK(call("cuDeviceGet", &count, 1) == CUDA_ERROR_INVALID_DEVICE);
    CHECK(call("cuDeviceGetAttribute", &count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, CUdevice(0)) == CUDA_SUCCESS);
    CHECK(count == 132);
    CHECK(call("cuProfilerStart") == CUDA_SUCCESS);
}

}  // namespace
}  // namespace ikat::tests
