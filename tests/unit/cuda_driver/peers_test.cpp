// SPDX-License-Identifier: Apache-2.0
// Two devices (IKAT_DEVICES=2): their names, contexts and memory, peer access, copies and events between them.
#include <ikat/ikat.hpp>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.hpp"
#include "tests/environment.hpp"
#include "tests/message.hpp"
#include "tests/unit/cuda_driver/said.hpp"
#include "tests/unit/cuda_driver/stand_in.hpp"
#include "tools/cuda_driver/graphs/abi.hpp"

namespace ikat::tests {
namespace {
namespace two_devices {

using Words = std::vector<std::uint32_t>;

/// A context on each device; the first one is current.
struct Contexts {
    Contexts() {
        call("cuInit", 0u);
        for (int i = 1; i >= 0; --i) call("cuCtxCreate_v2", &all[i], 0u, CUdevice(i));
    }
    ~Contexts() {
        for (const CUcontext each : all) call("cuCtxDestroy_v2", each);
        call("cuCtxSetCurrent", CUcontext(nullptr));
    }
    Contexts(const Contexts&) = delete;
    Contexts& operator=(const Contexts&) = delete;
    void use(int device) const { REQUIRE(call("cuCtxSetCurrent", all[device]) == CUDA_SUCCESS); }

    CUcontext all[2]{};
};

CUdeviceptr upload(const Words& words) {
    CUdeviceptr address = 0;
    REQUIRE(call("cuMemAlloc_v2", &address, 4 * words.size()) == CUDA_SUCCESS);
    REQUIRE(call("cuMemcpyHtoD_v2", address, static_cast<const void*>(words.data()), 4 * words.size()) == CUDA_SUCCESS);
    return address;
}
Words download(CUdeviceptr address, std::size_t count) {
    Words out(count);
    REQUIRE(call("cuMemcpyDtoH_v2", static_cast<void*>(out.data()), address, 4 * count) == CUDA_SUCCESS);
    return out;
}

/// out[0] = in[0] + 1
CUfunction increment() {
    return function(load(".param .u64 out, .param .u64 in",
                         ".reg .u64 %a<3>; .reg .u32 %r; ld.param.u64 %a1, [out]; ld.param.u64 %a2, [in];"
                         "ld.global.u32 %r, [%a2]; add.u32 %r, %r, 1; st.global.u32 [%a1], %r;"));
}
CUresult run(CUfunction kernel, CUdeviceptr out, CUdeviceptr in, CUstream stream = nullptr) {
    void* parameters[] = {&out, &in};
    const CUresult result = launch(kernel, {}, parameters, stream);
    return result == CUDA_SUCCESS ? call("cuStreamSynchronize", stream) : result;
}

TEST_CASE("peers: devices by number, name and place") {
    call("cuInit", 0u);
    int count = 0;
    CHECK(call("cuDeviceGetCount", &count) == CUDA_SUCCESS);
    REQUIRE(count == 2);
    CUdevice device = -1;
    CHECK((call("cuDeviceGet", &device, 1) == CUDA_SUCCESS && device == 1));
    CHECK(call("cuDeviceGet", &device, 2) == CUDA_ERROR_INVALID_DEVICE);
    char place[2][16] = {};
    CUuuid names[2] = {};
    for (int i = 0; i < 2; ++i) {
        CHECK(call("cuDeviceGetPCIBusId", place[i], 16, CUdevice(i)) == CUDA_SUCCESS);
        CHECK(call("cuDeviceGetUuid_v2", &names[i], CUdevice(i)) == CUDA_SUCCESS);
        CHECK((call("cuDeviceGetByPCIBusId", &device, static_cast<const char*>(place[i])) == CUDA_SUCCESS &&
               device == i));
    }
    CHECK(std::string(place[0]) == "0000:00:00.0");
    CHECK(std::memcmp(names[0].bytes, names[1].bytes, 16) != 0);
    CHECK(call("cuDeviceGetByPCIBusId", &device, "0000:07:00.0") == CUDA_ERROR_INVALID_DEVICE);
}

TEST_CASE("peers: what devices can do with each other") {
    call("cuInit", 0u);
    int can = -1;
    CHECK((call("cuDeviceCanAccessPeer", &can, CUdevice(0), CUdevice(1)) == CUDA_SUCCESS && can == 1));
    CHECK((call("cuDeviceCanAccessPeer", &can, CUdevice(1), CUdevice(1)) == CUDA_SUCCESS && can == 0));
    CHECK(call("cuDeviceCanAccessPeer", &can, CUdevice(0), CUdevice(2)) == CUDA_ERROR_INVALID_DEVICE);
    const auto attribute = [&](int which, int source, int target) {
        return call("cuDeviceGetP2PAttribute", &can, CUdevice_P2PAttribute(which), CUdevice(source), CUdevice(target));
    };
    CHECK((attribute(CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1) == CUDA_SUCCESS && can == 1));
    CHECK((attribute(CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED, 0, 1) == CUDA_SUCCESS && can == 0));
    CHECK(attribute(CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 1, 1) == CUDA_ERROR_INVALID_DEVICE);
    CHECK(attribute(CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 2) == CUDA_ERROR_INVALID_DEVICE);
    CHECK(attribute(0, 0, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(attribute(99, 0, 1) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("peers: contexts, streams and memory are of one device") {
    const Contexts contexts;
    std::size_t free[2] = {}, total = 0;
    CUdeviceptr memory[2] = {};
    CUmemoryPool pools[2] = {};
    for (int i = 0; i < 2; ++i) {
        contexts.use(i);
        CUdevice device = -1;
        CHECK((call("cuCtxGetDevice", &device) == CUDA_SUCCESS && device == i));
        CHECK(call("cuMemGetInfo_v2", &free[i], &total) == CUDA_SUCCESS);
        memory[i] = upload(Words(i ? 1000 : 10));
        std::size_t left = 0;
        CHECK(call("cuMemGetInfo_v2", &left, &total) == CUDA_SUCCESS);
        CHECK(free[i] - left == (i ? 4000 : 40));
        CHECK(call("cuDeviceGetDefaultMemPool", &pools[i], CUdevice(i)) == CUDA_SUCCESS);
        CUstream stream = nullptr;
        CHECK(call("cuStreamCreate", &stream, 0u) == CUDA_SUCCESS);
        CHECK((call("cuStreamGetDevice", stream, &device) == CUDA_SUCCESS && device == i));
        contexts.use(1 - i);
        CHECK(run(increment(), memory[i], memory[i], stream) == CUDA_ERROR_INVALID_HANDLE);  // of another context
    }
    CHECK(pools[0] != pools[1]);
    for (int i = 0; i < 2; ++i) {  // whichever context is current
        int ordinal = -1;
        CUcontext context = nullptr;
        CHECK(call("cuPointerGetAttribute", static_cast<void*>(&ordinal), CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                   memory[i]) == CUDA_SUCCESS);
        CHECK(call("cuPointerGetAttribute", static_cast<void*>(&context), CU_POINTER_ATTRIBUTE_CONTEXT, memory[i]) ==
              CUDA_SUCCESS);
        CHECK((ordinal == i && context == contexts.all[i]));
        CHECK(call("cuMemFree_v2", memory[i]) == CUDA_SUCCESS);
        CHECK(call("cuMemFree_v2", memory[i]) == CUDA_ERROR_INVALID_VALUE);
    }
}

TEST_CASE("peers: a kernel reaches memory of another device only with access") {
    CUdeviceptr there = 0;
    for (const bool was_enabled : {false, true}) {
        if (was_enabled) {  // which ends with the context
            const Contexts others;
            CHECK(call("cuCtxEnablePeerAccess", others.all[1], 0u) == CUDA_SUCCESS);
        }
        const Contexts contexts;
        contexts.use(1);
        there = upload({41});
        contexts.use(0);
        CHECK(run(increment(), there, there) == CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    const Contexts contexts;
    contexts.use(1);
    there = upload({41});
    contexts.use(0);
    const CUdeviceptr here = upload({0});
    CHECK(call("cuCtxDisablePeerAccess", contexts.all[1]) == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    CHECK(call("cuCtxEnablePeerAccess", contexts.all[1], 1u) == CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuCtxEnablePeerAccess", contexts.all[0], 0u) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(call("cuCtxEnablePeerAccess", contexts.all[1], 0u) == CUDA_SUCCESS);
    CHECK(call("cuCtxEnablePeerAccess", contexts.all[1], 0u) == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    const CUfunction kernel = increment();
    CHECK(run(kernel, here, there) == CUDA_SUCCESS);
    CHECK(download(here, 1) == Words{42});
    CHECK(run(kernel, there, here) == CUDA_SUCCESS);
    CHECK(download(there, 1) == Words{43});  // on the first device's context
    CHECK(call("cuCtxDisablePeerAccess", contexts.all[1]) == CUDA_SUCCESS);
    CHECK(call("cuCtxDisablePeerAccess", contexts.all[1]) == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    CHECK(run(kernel, here, there) == CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("peers: copies between devices, from either side") {
    const Contexts contexts;
    const CUdeviceptr here = upload({1, 2, 3, 4});
    contexts.use(1);
    const CUdeviceptr there = upload({0, 0, 0, 0});
    for (int current = 0; current < 2; ++current) {
        contexts.use(current);
        CHECK(call("cuMemcpyPeer", there, contexts.all[1], here, contexts.all[0], std::size_t{8}) == CUDA_SUCCESS);
        CHECK(call("cuMemcpyPeerAsync", there + 8, contexts.all[1], here, contexts.all[0], std::size_t{8},
                   CUstream(nullptr)) == CUDA_SUCCESS);
        CHECK(download(there, 4) == Words{1, 2, 1, 2});
        CHECK(call("cuMemcpyDtoD_v2", there, here + 8, std::size_t{8}) == CUDA_SUCCESS);
        CHECK(call("cuMemcpy", there + 12, here, std::size_t{4}) == CUDA_SUCCESS);
        CHECK(download(there, 4) == Words{3, 4, 1, 1});
        CHECK(call("cuMemcpyPeer", there, contexts.all[1], here, contexts.all[0], std::size_t{17}) ==
              CUDA_ERROR_INVALID_VALUE);
        CHECK(call("cuMemcpyPeer", there, contexts.all[1], here, CUcontext(nullptr), std::size_t{4}) ==
              CUDA_ERROR_INVALID_CONTEXT);
    }
}

TEST_CASE("peers: a stream waits for an event of another device") {
    const Contexts contexts;
    const CUdeviceptr here = upload({1});
    CUstream first = nullptr, second = nullptr;
    CUevent event = nullptr;
    REQUIRE(call("cuStreamCreate", &first, 1u) == CUDA_SUCCESS);
    REQUIRE(call("cuEventCreate", &event, 0u) == CUDA_SUCCESS);
    std::atomic<bool> may_go_on = false;
    void (*const wait_for_it)(void*) = [](void* flag) {
        while (!*static_cast<std::atomic<bool>*>(flag)) std::this_thread::yield();
    };
    REQUIRE(call("cuLaunchHostFunc", first, wait_for_it, static_cast<void*>(&may_go_on)) == CUDA_SUCCESS);
    contexts.use(1);
    const CUdeviceptr there = upload({0});
    REQUIRE(call("cuStreamCreate", &second, 1u) == CUDA_SUCCESS);
    may_go_on = true;
    contexts.use(0);
    REQUIRE(call("cuEventRecord", event, first) == CUDA_SUCCESS);
    contexts.use(1);
    CHECK(call("cuStreamWaitEvent", second, event, 0u) == CUDA_SUCCESS);
    CHECK(call("cuMemcpyPeerAsync", there, contexts.all[1], here, contexts.all[0], std::size_t{4}, second) ==
          CUDA_SUCCESS);
    CHECK(call("cuStreamSynchronize", second) == CUDA_SUCCESS);
    CHECK(download(there, 1) == Words{1});
}

/// A function of the program, on a stream of each device, that waits for a thread which calls the driver.
class Held {
public:
    explicit Held(const Contexts& contexts) : contexts_(contexts) {
        for (int i = 1; i >= 0; --i) {
            contexts.use(i);
            REQUIRE(call("cuStreamCreate", &streams_[i], 1u) == CUDA_SUCCESS);
            REQUIRE(call("cuLaunchHostFunc", streams_[i], &wait, static_cast<void*>(this)) == CUDA_SUCCESS);
        }
        thread_ = std::thread([this] {
            while (!has_begun_) std::this_thread::yield();
            int count = 0;
            call("cuDeviceGetCount", &count);
            may_go_on_ = true;
        });
    }
    ~Held() { thread_.join(); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

private:
    static void wait(void* held) {
        auto& its = *static_cast<Held*>(held);
        its.has_begun_ = true;
        while (!its.may_go_on_) std::this_thread::yield();
    }

    const Contexts& contexts_;
    std::atomic<bool> has_begun_ = false, may_go_on_ = false;
    CUstream streams_[2]{};
    std::thread thread_;
};

TEST_CASE("peers: what waits for another device does not keep other threads from the driver") {
    const Contexts contexts;
    const CUdeviceptr here = upload({1});
    contexts.use(1);
    const CUdeviceptr there = upload({2});
    CUmemoryPool pool = nullptr;
    REQUIRE(call("cuDeviceGetDefaultMemPool", &pool, CUdevice(1)) == CUDA_SUCCESS);
    {
        const Held held(contexts);
        CHECK(call("cuMemcpyPeer", here, contexts.all[0], there, contexts.all[1], std::size_t{4}) == CUDA_SUCCESS);
    }
    CHECK(download(here, 1) == Words{2});
    {
        const Held held(contexts);
        CHECK(call("cuCtxEnablePeerAccess", contexts.all[1], 0u) == CUDA_SUCCESS);
    }
    for (const unsigned flags : {CU_MEM_ACCESS_FLAGS_PROT_READWRITE, CU_MEM_ACCESS_FLAGS_PROT_NONE}) {
        const Held held(contexts);
        const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, flags};
        CHECK(call("cuMemPoolSetAccess", pool, &access, std::size_t{1}) == CUDA_SUCCESS);
    }
    {
        const Held held(contexts);
        CUcontext more = nullptr;
        CHECK(call("cuCtxCreate_v2", &more, 0u, CUdevice(0)) == CUDA_SUCCESS);
        CHECK(call("cuCtxDestroy_v2", more) == CUDA_SUCCESS);
    }
}

TEST_CASE("peers: work of both devices waits for a copy between them that is not asynchronous, and it for theirs") {
    const Contexts contexts;
    const CUdeviceptr here = upload({0});
    contexts.use(1);
    const CUdeviceptr there = upload({1});
    const CUfunction kernel = increment();
    CUstream stream = nullptr;
    REQUIRE(call("cuStreamCreate", &stream, 1u) == CUDA_SUCCESS);
    const auto write = [&] {
        CUdeviceptr memory = there;
        void* parameters[] = {&memory, &memory};
        contexts.use(1);
        CHECK(launch(kernel, {}, parameters, stream) == CUDA_SUCCESS);
        contexts.use(0);
    };
    const auto copy = [&] {
        return call("cuMemcpyPeer", here, contexts.all[0], there, contexts.all[1], std::size_t{4});
    };
    CHECK(said([&] {
              write();
              CHECK(copy() == CUDA_SUCCESS);
              write();
              CHECK(copy() == CUDA_SUCCESS);
          }).empty());
    CHECK(download(here, 1) == Words{3});
    CHECK_THAT(said([&] {
                   CHECK(call("cuMemcpyPeerAsync", here, contexts.all[0], there, contexts.all[1], std::size_t{4},
                              CUstream(nullptr)) == CUDA_SUCCESS);
                   write();
                   contexts.use(1);
                   call("cuCtxSynchronize");
               }),
               contains("nothing orders"));
}

TEST_CASE("peers: memory of a pool is reached by the devices that the pool says") {
    const Contexts contexts;
    CUmemoryPool pool = nullptr;
    contexts.use(1);
    CUmemPoolProps props{};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
    REQUIRE(call("cuMemPoolCreate", &pool, static_cast<const CUmemPoolProps*>(&props)) == CUDA_SUCCESS);
    CUdeviceptr there = 0;
    REQUIRE(call("cuMemAllocFromPoolAsync", &there, std::size_t{4}, pool, CUstream(nullptr)) == CUDA_SUCCESS);
    REQUIRE(call("cuMemsetD32_v2", there, 6u, std::size_t{1}) == CUDA_SUCCESS);
    REQUIRE(call("cuCtxSynchronize") == CUDA_SUCCESS);
    const auto set = [&](int device, unsigned flags) {
        const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, device}, flags};
        return call("cuMemPoolSetAccess", pool, &access, std::size_t{1});
    };
    const auto get = [&](int device) {
        unsigned flags = 9;
        CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, device};
        CHECK(call("cuMemPoolGetAccess", &flags, pool, &location) == CUDA_SUCCESS);
        return flags;
    };
    CHECK((get(0) == CU_MEM_ACCESS_FLAGS_PROT_NONE && get(1) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    CHECK(set(0, CU_MEM_ACCESS_FLAGS_PROT_READ) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(set(0, 7u) == CUDA_ERROR_INVALID_VALUE);
    CHECK(set(2, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) == CUDA_ERROR_INVALID_DEVICE);
    CHECK(set(1, CU_MEM_ACCESS_FLAGS_PROT_NONE) == CUDA_ERROR_INVALID_VALUE);
    CHECK(set(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) == CUDA_SUCCESS);
    CHECK(get(0) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    contexts.use(0);
    const CUdeviceptr here = upload({0});
    const CUfunction kernel = increment();
    CHECK(run(kernel, here, there) == CUDA_SUCCESS);
    CHECK(download(here, 1) == Words{7});
    CHECK(set(0, CU_MEM_ACCESS_FLAGS_PROT_NONE) == CUDA_SUCCESS);
    CHECK(run(kernel, here, there) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(call("cuMemPoolDestroy", pool) == CUDA_SUCCESS);
}

TEST_CASE("peers: a library is loaded on each device that uses it") {
    const Contexts contexts;
    const std::string text =
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .global .u32 count = 5;\n"
        ".visible .entry k(.param .u64 out) { .reg .u64 %a; .reg .u32 %r; ld.param.u64 %a, [out];"
        "atom.global.add.u32 %r, [count], 1; st.global.u32 [%a], %r; ret; }\n";
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    REQUIRE(call("cuLibraryLoadData", &library, static_cast<const void*>(text.c_str()),
                 static_cast<CUjit_option*>(nullptr), static_cast<void**>(nullptr), 0u, static_cast<void*>(nullptr),
                 static_cast<void**>(nullptr), 0u) == CUDA_SUCCESS);
    REQUIRE(call("cuLibraryGetKernel", &kernel, library, "k") == CUDA_SUCCESS);
    CUdeviceptr variables[2] = {};
    for (int i = 0; i < 2; ++i) {
        contexts.use(i);
        CUdeviceptr out = upload({0});
        void* parameters[] = {&out};
        CHECK(launch(reinterpret_cast<CUfunction>(kernel), {}, parameters) == CUDA_SUCCESS);
        CHECK(call("cuCtxSynchronize") == CUDA_SUCCESS);
        CHECK(download(out, 1) == Words{5});  // each has its own variable
        CHECK(call("cuLibraryGetGlobal", &variables[i], static_cast<std::size_t*>(nullptr), library, "count") ==
              CUDA_SUCCESS);
        CHECK(download(variables[i], 1) == Words{6});
    }
    CHECK(variables[0] != variables[1]);
    CHECK(call("cuLibraryUnload", library) == CUDA_SUCCESS);
}

const auto twice = kernel("twice", params("y", "x"), [](Out<float> y, In<float> x) {
    const u32 i = global_id().x;
    y[i] = x[i] * 2.0f;
});

TEST_CASE("peers: two devices of the runtime, through the driver's functions") {
    using namespace runtime;
    const Environment driver("IKAT_CUDA_DRIVER", STAND_IN);
    REQUIRE(Device::count("cuda") == 2);
    const Device first = Device::open({.device = "cuda:0"}), second = Device::open({.device = "cuda", .ordinal = 1});
    CHECK(second.properties().selector == "cuda:1");
    const std::vector<float> ones(64, 1.0f);
    const auto x = first.upload(ones, "x"), z = second.upload(ones, "z");
    auto y = first.buffer<float>(64, "y"), copy = second.buffer<float>(64, "copy");
    CHECK((first.can_access_peer(second) && !first.has_peer_access(second)));
    CHECK_THAT(message_of([&] { first.launch(twice, grid(64, 64), y, z); }),
               contains("the buffer of 'x' is on another device, cuda:1"));
    first.enable_peer_access(second), first.enable_peer_access(second);
    first.launch(twice, grid(64, 64), y, z);
    CHECK(y.download() == std::vector<float>(64, 2));
    const Stream a = first.stream(), b = second.stream();
    a.launch(twice, grid(64, 64), y, x);
    b.wait(a.record());
    b.copy(copy, y);
    b.synchronize();
    CHECK(copy.download() == std::vector<float>(64, 2));
    first.disable_peer_access(second), first.disable_peer_access(second);
    CHECK_FALSE(first.has_peer_access(second));
}

}  // namespace two_devices
}  // namespace
}  // namespace ikat::tests
