// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/cuda_driver/said.hpp"
#include "tests/unit/cuda_driver/stand_in.hpp"

namespace ikat::tests {
namespace {

constexpr const char* stores =
    ".reg .b64 %d; .reg .b32 %r; ld.param.u64 %d, [p]; mov.u32 %r, %ntid.x; st.global.u32 [%d], %r;";

TEST_CASE("a launch takes its parameters from pointers or from a buffer") {
    const OwnContext own;
    const CUfunction kernel = function(load(".param .u64 p", stores));
    CUdeviceptr out = 0;
    unsigned result = 0;
    call("cuMemAlloc_v2", &out, std::size_t{4});
    void* parameters[] = {&out};
    CHECK(launch(kernel, {.threads = 64}, parameters) == CUDA_SUCCESS);
    call("cuMemcpyDtoH_v2", static_cast<void*>(&result), out, std::size_t{4});
    CHECK(result == 64);
    const auto launch_packed = [&](std::size_t bytes) {
        void* extra[] = {reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_POINTER), &out,
                         reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_SIZE), &bytes,
                         reinterpret_cast<void*>(CU_LAUNCH_PARAM_END)};
        return call("cuLaunchKernel", kernel, 1u, 1u, 1u, 32u, 1u, 1u, 0u, CUstream(nullptr),
                    static_cast<void**>(nullptr), &extra[0]);
    };
    CHECK(launch_packed(8) == CUDA_SUCCESS);
    call("cuMemcpyDtoH_v2", static_cast<void*>(&result), out, std::size_t{4});
    CHECK(result == 32);
    CHECK(launch_packed(16) == CUDA_SUCCESS);  // with padding
    CHECK(launch_packed(4) == CUDA_ERROR_INVALID_VALUE);
    CHECK(launch_packed(24) == CUDA_ERROR_INVALID_VALUE);
    CHECK(launch(kernel) == CUDA_ERROR_INVALID_VALUE);  // no parameters at all
}

TEST_CASE("in a buffer, parameters are where the device has them") {
    const OwnContext own;
    // ptxas has them there for sm_90, after the 0x210 bytes at the start of a kernel's constant bank.
    constexpr std::size_t offsets[] = {0, 48, 240, 248}, sizes[] = {4, 128, 4, 8};
    const CUfunction kernel =
        function(load(".param .u32 n, .param .align 64 .b8 a[128], .param .align 128 .b8 b[4], .param .u64 p",
                      ".reg .b64 %d; .reg .b32 %r<4>; ld.param.u32 %r0, [n]; ld.param.u32 %r1, [a+4];"
                      "ld.param.u32 %r2, [b]; ld.param.u64 %d, [p]; add.u32 %r0, %r0, %r1;"
                      "add.u32 %r0, %r0, %r2; st.global.u32 [%d], %r0;"));
    for (std::size_t i = 0; i < 4; ++i) {
        std::size_t offset = 0, bytes = 0;
        CHECK(call("cuFuncGetParamInfo", kernel, i, &offset, &bytes) == CUDA_SUCCESS);
        CHECK((offset == offsets[i] && bytes == sizes[i]));
    }
    CUdeviceptr out = 0;
    call("cuMemAlloc_v2", &out, std::size_t{4});
    const unsigned n = 1, a[32] = {0, 20}, b = 300;
    std::vector<std::byte> buffer(256);
    const void* const values[] = {&n, a, &b, &out};
    for (std::size_t i = 0; i < 4; ++i) std::memcpy(buffer.data() + offsets[i], values[i], sizes[i]);
    std::size_t bytes = buffer.size();
    void* extra[] = {reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_POINTER), buffer.data(),
                     reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_SIZE), &bytes,
                     reinterpret_cast<void*>(CU_LAUNCH_PARAM_END)};
    CHECK(call("cuLaunchKernel", kernel, 1u, 1u, 1u, 1u, 1u, 1u, 0u, CUstream(nullptr), static_cast<void**>(nullptr),
               &extra[0]) == CUDA_SUCCESS);
    unsigned result = 0;
    call("cuMemcpyDtoH_v2", static_cast<void*>(&result), out, std::size_t{4});
    CHECK(result == 321);
}

TEST_CASE("a launch takes what was set before, as in the first versions of CUDA") {
    const OwnContext own;
    const CUfunction kernel = function(load(".param .u64 p", stores));
    CUdeviceptr out = 0;
    unsigned result = 0;
    call("cuMemAlloc_v2", &out, std::size_t{4});
    CHECK(call("cuLaunchGrid", kernel, 1, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuFuncSetBlockShape", kernel, 48, 1, 1) == CUDA_SUCCESS);
    CHECK(call("cuFuncSetSharedSize", kernel, 16u) == CUDA_SUCCESS);
    CHECK(call("cuParamSetSize", kernel, 8u) == CUDA_SUCCESS);
    CHECK(call("cuParamSetv", kernel, 0, static_cast<void*>(&out), 8u) == CUDA_SUCCESS);
    CHECK(call("cuLaunchGrid", kernel, 2, 1) == CUDA_SUCCESS);
    call("cuMemcpyDtoH_v2", static_cast<void*>(&result), out, std::size_t{4});
    CHECK(result == 48);
    CHECK(call("cuParamSeti", kernel, -4, 1u) == CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuFuncSetBlockShape", kernel, 0, 1, 1) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("dynamic shared memory begins at a multiple of 1024 where there is no other") {
    const OwnContext own;
    const CUfunction kernel =
        function(load(".param .u64 p",
                      ".reg .b64 %d; .reg .b32 %r; ld.param.u64 %d, [p]; mov.u32 %r, dynamic; and.b32 %r, %r, 1023;\n"
                      "st.global.u32 [%d], %r;",
                      "", ".extern .shared .align 16 .b8 dynamic[];"));
    CUdeviceptr out = 0;
    call("cuMemAlloc_v2", &out, std::size_t{4});
    void* parameters[] = {&out};
    unsigned wrong = 0;
    for (int i = 0; i < 8; ++i) {
        unsigned low = 1;
        CHECK(launch(kernel, {.shared = 1024}, parameters) == CUDA_SUCCESS);
        call("cuMemcpyDtoH_v2", static_cast<void*>(&low), out, std::size_t{4});
        wrong += low != 0;
    }
    CHECK(wrong == 0);
}

TEST_CASE("impossible launches are refused and nothing is run") {
    const OwnContext own;
    const CUfunction kernel = function(load("", "trap;", ".maxntid 128, 1, 1"));
    CHECK(launch(kernel, {.blocks = 0}) == CUDA_ERROR_INVALID_VALUE);
    CHECK(launch(kernel, {.threads = 0}) == CUDA_ERROR_INVALID_VALUE);
    CHECK(launch(kernel, {.threads = 129}) == CUDA_ERROR_INVALID_VALUE);
    CHECK(launch(kernel, {.threads = 1025}) == CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuLaunchKernel", kernel, 1u, 65536u, 1u, 1u, 1u, 1u, 0u, CUstream(nullptr),
               static_cast<void**>(nullptr), static_cast<void**>(nullptr)) == CUDA_ERROR_INVALID_VALUE);
    CHECK(launch(nullptr) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(call("cuCtxSynchronize") == CUDA_SUCCESS);
    int max = 0;
    CHECK(call("cuFuncGetAttribute", &max, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel) == CUDA_SUCCESS);
    CHECK(max == 128);
}

TEST_CASE("dynamic shared memory beyond 48 KiB has to be asked for") {
    const OwnContext own;
    const CUfunction kernel = function(load("", ".reg .b32 %r; mov.u32 %r, 1; st.shared.u32 [own], %r;", "",
                                            ".extern .shared .align 16 .b8 dynamic[]; .shared .b8 own[1024];"));
    int bytes = 0;
    CHECK(call("cuFuncGetAttribute", &bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel) == CUDA_SUCCESS);
    CHECK(bytes == 1024);
    CHECK(launch(kernel, {.shared = 48 * 1024 - 1024}) == CUDA_SUCCESS);
    CHECK(launch(kernel, {.shared = 48 * 1024}) == CUDA_ERROR_INVALID_VALUE);
    const auto allow = [&](int max) {
        return call("cuFuncSetAttribute", kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, max);
    };
    CHECK(allow(227 * 1024) == CUDA_ERROR_INVALID_VALUE);
    CHECK(allow(226 * 1024) == CUDA_SUCCESS);
    CHECK(launch(kernel, {.shared = 226 * 1024}) == CUDA_SUCCESS);
}

TEST_CASE("a kernel's failure is reported by the calls after its launch, until the context is gone") {
    CUdeviceptr address = 0;
    {
        const OwnContext own;
        const CUfunction kernel = function(load(".param .u64 p", stores));
        CUdeviceptr nowhere = 64;
        void* parameters[] = {&nowhere};
        CHECK(launch(kernel, {}, parameters) == CUDA_SUCCESS);
        CHECK(call("cuStreamSynchronize", CUstream(nullptr)) == CUDA_ERROR_ILLEGAL_ADDRESS);
        CHECK(call("cuMemAlloc_v2", &address, std::size_t{4}) == CUDA_ERROR_ILLEGAL_ADDRESS);
        CHECK(launch(kernel, {}, parameters) == CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    const OwnContext fresh;
    CHECK(call("cuMemAlloc_v2", &address, std::size_t{4}) == CUDA_SUCCESS);
}

TEST_CASE("a finding names the kernel, the source line and a file with the PTX, also in a log") {
    const std::string folder = std::filesystem::temp_directory_path() / ("ikat-test-" + std::to_string(getpid()));
    const std::string log = folder + ".log";
    setenv("IKAT_EMIT", folder.c_str(), 1);
    setenv("IKAT_LOG", log.c_str(), 1);
    const std::string text = said([] {
        const OwnContext own;
        CHECK(launch(function(load("", ".loc 1 42 7\ntrap;", "", ".file 1 \"vector.py\""))) == CUDA_SUCCESS);
    });
    unsetenv("IKAT_EMIT");
    unsetenv("IKAT_LOG");
    CHECK_THAT(text, Catch::Matchers::Contains(folder + "/k"));
    CHECK_THAT(text, Catch::Matchers::Contains("vector.py:42:7: error: the kernel trapped"));
    CHECK_THAT(text, Catch::Matchers::Contains("in kernel 'k'"));
    std::ifstream logged(log);
    CHECK_THAT((std::string{std::istreambuf_iterator<char>(logged), {}}), Catch::Matchers::Contains("vector.py:42:7"));
    REQUIRE(std::filesystem::exists(folder));
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
        std::ifstream ptx(file.path());
        CHECK_THAT((std::string{std::istreambuf_iterator<char>(ptx), {}}), Catch::Matchers::Contains("trap;"));
    }
    std::filesystem::remove_all(folder);
    std::filesystem::remove(log);
}

TEST_CASE("failures have CUDA's numbers") {
    const auto result = [](const std::string& body) {
        const OwnContext own;
        CHECK(launch(function(load("", body))) == CUDA_SUCCESS);
        return call("cuCtxSynchronize");
    };
    CHECK(result("trap;") == CUDA_ERROR_LAUNCH_FAILED);
    CHECK(result(".shared .b8 s[16]; .reg .b32 %r; ld.shared.u32 %r, [s+2];") == CUDA_ERROR_MISALIGNED_ADDRESS);
    CHECK(result(".shared .b8 s[16]; .reg .b32 %r; ld.shared.u32 %r, [s+16];") == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(result("l: bra l;") == CUDA_ERROR_LAUNCH_TIMEOUT);
    const OwnContext own;
    const CUfunction asserts = function(
        load("",
             ".reg .b64 %t; mov.u64 %t, text; cvta.global.u64 %t, %t;\n"
             "{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e; st.param.b64 [a], %t;\n"
             "st.param.b64 [b], %t; st.param.b32 [c], 7; st.param.b64 [d], %t; st.param.b64 [e], 1;\n"
             "call.uni __assertfail, (a, b, c, d, e); }",
             "",
             ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);\n"
             ".global .b8 text[4] = {120, 62, 48, 0};"));
    CHECK(launch(asserts) == CUDA_SUCCESS);
    CHECK(call("cuCtxSynchronize") == CUDA_ERROR_ASSERT);
}

TEST_CASE("a cooperative launch must fit on the device at once") {
    const OwnContext own;
    const CUfunction kernel = function(load("", ""));
    const auto launch_together = [&](unsigned blocks) {
        return call("cuLaunchCooperativeKernel", kernel, blocks, 1u, 1u, 1024u, 1u, 1u, 0u, CUstream(nullptr),
                    static_cast<void**>(nullptr));
    };
    CHECK(launch_together(2) == CUDA_SUCCESS);
    CHECK(launch_together(1000000) == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

TEST_CASE("a launch chooses its clusters") {
    const OwnContext own;
    const CUfunction kernel = function(load(".param .u64 p",
                                            ".reg .b64 %d; .reg .b32 %r; ld.param.u64 %d, [p];\n"
                                            "mov.u32 %r, %cluster_nctaid.x; st.global.u32 [%d], %r;"));
    CUdeviceptr out = 0;
    call("cuMemAlloc_v2", &out, std::size_t{4});
    void* parameters[] = {&out};
    const auto launch_in = [&](unsigned cluster, unsigned blocks) {
        CUlaunchAttribute attribute{};
        attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attribute.value.clusterDim = {cluster, 1, 1};
        CUlaunchConfig config{blocks, 1, 1, 32, 1, 1, 0, nullptr, &attribute, 1};
        return call("cuLaunchKernelEx", static_cast<const CUlaunchConfig*>(&config), kernel, &parameters[0],
                    static_cast<void**>(nullptr));
    };
    unsigned blocks = 0;
    for (const unsigned cluster : {4u, 2u}) {
        CHECK(launch_in(cluster, 8) == CUDA_SUCCESS);
        CHECK(call("cuMemcpyDtoH_v2", static_cast<void*>(&blocks), out, std::size_t{4}) == CUDA_SUCCESS);
        CHECK(blocks == cluster);
    }
    CHECK(launch_in(16, 16) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    CHECK(call("cuFuncSetAttribute", kernel, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1) == CUDA_SUCCESS);
    CHECK(launch_in(16, 16) == CUDA_SUCCESS);
    CHECK(launch_in(17, 17) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    CHECK(launch_in(3, 8) == CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuFuncSetAttribute", kernel, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 8) == CUDA_SUCCESS);
    CHECK(call("cuFuncSetAttribute", kernel, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, 1) == CUDA_SUCCESS);
    CHECK(call("cuFuncSetAttribute", kernel, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, 1) == CUDA_SUCCESS);
    CHECK(launch(kernel, {.blocks = 8}, parameters) == CUDA_SUCCESS);
    CHECK(call("cuMemcpyDtoH_v2", static_cast<void*>(&blocks), out, std::size_t{4}) == CUDA_SUCCESS);
    CHECK(blocks == 8);
    const CUfunction named = function(load("", "", ".explicitcluster"));
    CHECK(launch(named) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

TEST_CASE("occupancy follows threads and shared memory") {
    const OwnContext own;
    const CUfunction kernel = function(load("", ""));
    int blocks = 0, grid = 0, threads = 0;
    const auto count = [&](int block, std::size_t shared) {
        return call("cuOccupancyMaxActiveBlocksPerMultiprocessor", &blocks, kernel, block, shared);
    };
    CHECK(count(1024, 0) == CUDA_SUCCESS);
    CHECK(blocks == 2);
    CHECK(count(64, 100 * 1024) == CUDA_SUCCESS);
    CHECK(blocks == 2);
    CHECK(call("cuOccupancyMaxPotentialBlockSize", &grid, &threads, kernel, static_cast<std::size_t (*)(int)>(nullptr),
               std::size_t{0}, 0) == CUDA_SUCCESS);
    CHECK(threads == 1024);
    CHECK(count(64, std::size_t{1} << 32) == CUDA_SUCCESS);
    CHECK(blocks == 0);
    // The program's function may call the driver.
    const auto shared_of = [](int) -> std::size_t {
        CUcontext current = nullptr;
        return call("cuCtxGetCurrent", &current) == CUDA_SUCCESS ? 0 : 1 << 30;
    };
    CHECK(call("cuOccupancyMaxPotentialBlockSize", &grid, &threads, kernel,
               static_cast<std::size_t (*)(int)>(shared_of), std::size_t{0}, 256) == CUDA_SUCCESS);
    CHECK(threads == 256);
}

TEST_CASE("launches that may begin early are checked against the one before") {
    const OwnContext own;
    const CUfunction first = function(load(".param .u64 p",
                                           ".reg .b64 %d; ld.param.u64 %d, [p];\n"
                                           "griddepcontrol.launch_dependents; st.global.u32 [%d], 7;"));
    const CUfunction second = function(load(".param .u64 p",
                                            ".reg .b64 %d; .reg .b32 %r; ld.param.u64 %d, [p];\n"
                                            "ld.global.u32 %r, [%d]; griddepcontrol.wait; st.global.u32 [%d+4], %r;"));
    CUdeviceptr out = 0;
    unsigned result[2] = {};
    call("cuMemAlloc_v2", &out, sizeof result);
    void* parameters[] = {&out};
    const auto launch_after = [&](int may_overlap) {
        CHECK(launch(first, {}, parameters) == CUDA_SUCCESS);
        CUlaunchAttribute attribute{};
        attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attribute.value.programmaticStreamSerializationAllowed = may_overlap;
        CUlaunchConfig config{1, 1, 1, 1, 1, 1, 0, nullptr, &attribute, 1};
        const std::string text = said([&] {
            CHECK(call("cuLaunchKernelEx", static_cast<const CUlaunchConfig*>(&config), second, &parameters[0],
                       static_cast<void**>(nullptr)) == CUDA_SUCCESS);
        });
        CHECK(call("cuMemcpyDtoH_v2", static_cast<void*>(result), out, sizeof result) == CUDA_SUCCESS);
        CHECK(result[1] == 7);
        return text;
    };
    CHECK(launch_after(0).empty());
    CHECK_THAT(launch_after(1), contains("warning: global load of 4 bytes at offset 0 of ") &&
                                    contains("which kernel 'k' writes, before griddepcontrol.wait, by block"));
}

}  // namespace
}  // namespace ikat::tests
