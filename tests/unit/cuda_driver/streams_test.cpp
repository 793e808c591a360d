// SPDX-License-Identifier: Apache-2.0
// What a program of the API orders by streams, events and waits, and what it only seems to.
#include <cstdint>
#include <string>

#include "tests/catch.hpp"
#include "tests/unit/cuda_driver/said.hpp"
#include "tests/unit/cuda_driver/stand_in.hpp"

namespace ikat::tests {
namespace {
namespace streams {

constexpr unsigned blocking = 0, non_blocking = 1;

struct OwnStream {
    explicit OwnStream(unsigned flags) { REQUIRE(call("cuStreamCreate", &handle, flags) == CUDA_SUCCESS); }
    ~OwnStream() { call("cuStreamDestroy_v2", handle); }
    OwnStream(const OwnStream&) = delete;
    OwnStream& operator=(const OwnStream&) = delete;
    CUstream handle = nullptr;
};

struct OwnEvent {
    OwnEvent() { REQUIRE(call("cuEventCreate", &handle, 0u) == CUDA_SUCCESS); }
    ~OwnEvent() { call("cuEventDestroy_v2", handle); }
    OwnEvent(const OwnEvent&) = delete;
    OwnEvent& operator=(const OwnEvent&) = delete;
    void record(CUstream on) const { CHECK(call("cuEventRecord", handle, on) == CUDA_SUCCESS); }
    CUevent handle = nullptr;
};

void wait(CUstream stream, const OwnEvent& event) {
    CHECK(call("cuStreamWaitEvent", stream, event.handle, 0u) == CUDA_SUCCESS);
}

/// A word of the device, and kernels that add one to it. A warning is said once for each pair of kernels, so that each
/// scene has its own.
struct Scene {
    OwnContext context;
    CUdeviceptr word = 0;
    CUfunction first, second;

    Scene() {
        static int number = 0;
        ++number;
        first = kernel("first_" + std::to_string(number)), second = kernel("second_" + std::to_string(number));
        CHECK(call("cuMemAlloc_v2", &word, std::size_t{4}) == CUDA_SUCCESS);
        CHECK(call("cuMemsetD32_v2", word, 0u, std::size_t{1}) == CUDA_SUCCESS);
        CHECK(call("cuCtxSynchronize") == CUDA_SUCCESS);
    }
    static CUfunction kernel(const std::string& name) {
        const std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry " + name +
                                 "(.param .u64 p) {\n.reg .b64 %d; .reg .b32 %r; ld.param.u64 %d, [p];\n"
                                 "ld.global.u32 %r, [%d]; add.u32 %r, %r, 1; st.global.u32 [%d], %r; ret;\n}\n";
        CUmodule module = nullptr;
        CUfunction out = nullptr;
        REQUIRE(call("cuModuleLoadData", &module, static_cast<const void*>(text.c_str())) == CUDA_SUCCESS);
        REQUIRE(call("cuModuleGetFunction", &out, module, name.c_str()) == CUDA_SUCCESS);
        return out;
    }
    void run(CUfunction kernel, CUstream on) {
        void* parameters[] = {&word};
        CHECK(launch(kernel, {}, parameters, on) == CUDA_SUCCESS);
    }
    unsigned value() {
        unsigned out = 0;
        CHECK(call("cuCtxSynchronize") == CUDA_SUCCESS);
        CHECK(call("cuMemcpyDtoH_v2", static_cast<void*>(&out), word, sizeof out) == CUDA_SUCCESS);
        return out;
    }
};

TEST_CASE("streams: two kernels that no event orders are warned of, and run") {
    for (const bool is_ordered : {false, true}) {
        Scene its;
        const OwnStream a(blocking), b(blocking);
        const OwnEvent event;
        const std::string text = said([&] {
            its.run(its.first, a.handle);
            event.record(a.handle);
            if (is_ordered) wait(b.handle, event);
            its.run(its.second, b.handle);
        });
        CHECK(its.value() == 2);
        if (is_ordered)
            CHECK(text == "");
        else
            CHECK_THAT(text, contains("warning: kernel 'second_") && contains("which kernel 'first_") &&
                                 contains("and nothing orders the two"));
    }
}

TEST_CASE("streams: what the program has waited for is known") {
    enum class Way { Nothing, Context, Stream, Event, QueryStream, QueryEvent, Free, OtherStream, EarlierEvent };
    for (const Way way : {Way::Nothing, Way::Context, Way::Stream, Way::Event, Way::QueryStream, Way::QueryEvent,
                          Way::Free, Way::OtherStream, Way::EarlierEvent}) {
        Scene its;
        const OwnStream a(non_blocking), b(non_blocking);
        const OwnEvent before, event;
        CUdeviceptr other = 0;
        CHECK(call("cuMemAlloc_v2", &other, std::size_t{4}) == CUDA_SUCCESS);
        const std::string text = said([&] {
            before.record(a.handle);
            its.run(its.first, a.handle);
            event.record(a.handle);
            switch (way) {
                case Way::Nothing: break;
                case Way::Context: CHECK(call("cuCtxSynchronize") == CUDA_SUCCESS); break;
                case Way::Stream: CHECK(call("cuStreamSynchronize", a.handle) == CUDA_SUCCESS); break;
                case Way::Event: CHECK(call("cuEventSynchronize", event.handle) == CUDA_SUCCESS); break;
                case Way::QueryStream: CHECK(call("cuStreamQuery", a.handle) == CUDA_SUCCESS); break;
                case Way::QueryEvent: CHECK(call("cuEventQuery", event.handle) == CUDA_SUCCESS); break;
                case Way::Free: CHECK(call("cuMemFree_v2", other) == CUDA_SUCCESS); break;
                case Way::OtherStream: CHECK(call("cuStreamSynchronize", b.handle) == CUDA_SUCCESS); break;
                case Way::EarlierEvent: CHECK(call("cuEventSynchronize", before.handle) == CUDA_SUCCESS); break;
            }
            its.run(its.second, b.handle);
        });
        INFO(int(way));
        const bool is_wrong = way == Way::Nothing || way == Way::OtherStream || way == Way::EarlierEvent;
        CHECK((text == "") == !is_wrong);
    }
}

TEST_CASE("streams: the default stream orders those that wait for it, and no others") {
    for (const unsigned flags : {blocking, non_blocking}) {
        Scene its;
        const std::string text = said([&] {
            its.run(its.first, nullptr);
            const OwnStream later(flags);  // as a framework makes its streams when they are first asked for
            its.run(its.second, later.handle);
        });
        CHECK((text == "") == (flags == blocking));
        Scene other;
        const std::string back = said([&] {
            const OwnStream before(flags);
            other.run(other.first, before.handle);
            other.run(other.second, nullptr);
        });
        CHECK((back == "") == (flags == blocking));
    }
}

TEST_CASE("streams: copies that a driver may go on with, and those that have ended") {
    const auto upload = [](bool is_async) {
        Scene its;
        const OwnStream a(non_blocking), b(non_blocking);
        const unsigned number = 5;
        return said([&] {
            if (is_async)
                call("cuMemcpyHtoDAsync_v2", its.word, static_cast<const void*>(&number), sizeof number, a.handle);
            else
                call("cuMemcpyHtoD_v2", its.word, static_cast<const void*>(&number), sizeof number);
            its.run(its.second, b.handle);
        });
    };
    CHECK_THAT(upload(true), contains("which a copy on stream ") && contains(" writes, and nothing orders the two"));
    CHECK(upload(false) == "");
    const auto download = [](bool is_pinned) {
        Scene its;
        const OwnStream a(non_blocking), b(non_blocking);
        unsigned number = 5;
        void* memory = &number;
        if (is_pinned) CHECK(call("cuMemHostAlloc", &memory, sizeof number, 0u) == CUDA_SUCCESS);
        const std::string text = said([&] {
            call("cuMemcpyDtoHAsync_v2", memory, its.word, sizeof number, a.handle);
            its.run(its.second, b.handle);
        });
        if (is_pinned) CHECK(call("cuMemFreeHost", memory) == CUDA_SUCCESS);
        return text;
    };
    CHECK_THAT(download(true), contains("which a copy on stream ") && contains(" reads, and nothing orders the two"));
    CHECK(download(false) == "");  // complete when it returns
}

TEST_CASE("streams: memory of the host counts if it is page-locked") {
    const auto both = [](bool is_pinned) {
        Scene its;
        const OwnStream a(non_blocking), b(non_blocking);
        unsigned number = 5;
        void* memory = &number;
        if (is_pinned) CHECK(call("cuMemHostAlloc", &memory, sizeof number, 0u) == CUDA_SUCCESS);
        CUdeviceptr other = 0;
        CHECK(call("cuMemAlloc_v2", &other, sizeof number) == CUDA_SUCCESS);
        const std::string text = said([&] {
            call("cuMemcpyHtoDAsync_v2", other, static_cast<const void*>(memory), sizeof number, a.handle);
            call("cuMemcpyDtoHAsync_v2", memory, its.word, sizeof number, b.handle);
        });
        if (is_pinned) CHECK(call("cuMemFreeHost", memory) == CUDA_SUCCESS);
        return text;
    };
    CHECK(both(false) == "");  // its bytes have been taken at the call
    CHECK_THAT(both(true), contains("a copy on stream ") && contains("of buffer 'page-locked memory'"));
}

TEST_CASE("streams: memory that is freed on one while another one uses it") {
    for (const bool is_ordered : {false, true}) {
        Scene its;
        const OwnStream a(non_blocking), b(non_blocking);
        const OwnEvent event;
        CHECK(call("cuMemAllocAsync", &its.word, std::size_t{4}, a.handle) == CUDA_SUCCESS);
        CHECK(call("cuMemsetD32Async", its.word, 0u, std::size_t{1}, a.handle) == CUDA_SUCCESS);
        CHECK(call("cuStreamSynchronize", a.handle) == CUDA_SUCCESS);
        const std::string text = said([&] {
            its.run(its.first, b.handle);
            event.record(b.handle);
            if (is_ordered) wait(a.handle, event);
            CHECK(call("cuMemFreeAsync", its.word, a.handle) == CUDA_SUCCESS);
        });
        if (is_ordered)
            CHECK(text == "");
        else
            CHECK_THAT(text, contains("warning: a release of memory on stream ") &&
                                 contains(" frees bytes 0 to 3 of") && contains("which kernel 'first_"));
        CHECK(call("cuMemFreeAsync", its.word, a.handle) == CUDA_ERROR_INVALID_VALUE);
        CHECK(call("cuMemFreeAsync", CUdeviceptr(0), a.handle) == CUDA_SUCCESS);
    }
}

}  // namespace streams
}  // namespace
}  // namespace ikat::tests
