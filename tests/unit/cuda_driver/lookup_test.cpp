// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <set>

#include "tests/catch.hpp"
#include "tests/unit/cuda_driver/said.hpp"
#include "tests/unit/cuda_driver/stand_in.hpp"

namespace ikat::tests {
namespace {

struct Found {
    CUresult result;
    void* code;
    CUdriverProcAddressQueryResult status;
};
Found look_up(const char* name, int version) {
    Found out{CUDA_ERROR_UNKNOWN, nullptr, CU_GET_PROC_ADDRESS_SUCCESS};
    out.result = call("cuGetProcAddress_v2", name, &out.code, version, std::uint64_t{0}, &out.status);
    return out;
}

TEST_CASE("functions are found by name and version") {
    const Found old = look_up("cuCtxCreate", 11000), newer = look_up("cuCtxCreate", 13000);
    CHECK(old.code == stand_in_symbol("cuCtxCreate_v2"));
    CHECK(newer.code == stand_in_symbol("cuCtxCreate_v4"));
    const Found early = look_up("cuLaunchKernelEx", 11000);
    CHECK(early.result == CUDA_SUCCESS);
    CHECK(early.code == nullptr);
    CHECK(early.status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

TEST_CASE("an unknown function is a null pointer, and nothing is said of it") {
    Found unknown{};
    const std::string text = said([&] {
        unknown = look_up("cuMakeCoffee", 13000);
        unknown = look_up("cuMakeCoffee", 13000);
    });
    CHECK(unknown.result == CUDA_SUCCESS);
    CHECK(unknown.code == nullptr);
    CHECK(unknown.status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    CHECK(text.empty());
    void* code = &unknown;
    CHECK(call("cuGetProcAddress", "cuMakeTea", &code, 13000, std::uint64_t{0}) == CUDA_ERROR_NOT_FOUND);
    CHECK(code == nullptr);
}

TEST_CASE("a known function that is not done says so once") {
    const Found found = look_up("cuGraphAddBatchMemOpNode", 13000);
    REQUIRE(found.code == stand_in_symbol("cuGraphAddBatchMemOpNode"));
    const auto create = reinterpret_cast<CUresult (*)(void**, unsigned)>(found.code);
    CUresult result = CUDA_SUCCESS;
    void* graph = nullptr;
    const std::string text = said([&] {
        result = create(&graph, 0);
        result = create(&graph, 0);
    });
    CHECK(result == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(text ==
          "ikat's CUDA driver: cuGraphAddBatchMemOpNode: this function is not emulated; it returns "
          "CUDA_ERROR_NOT_SUPPORTED\n");
}

TEST_CASE("undocumented tables are refused with what to do about it") {
    const void* table = &table;
    CUresult result = CUDA_SUCCESS;
    const std::string text =
        said([&] { result = call("cuGetExportTable", &table, static_cast<const void*>("0123456789abcdef")); });
    CHECK(result == CUDA_ERROR_NOT_FOUND);
    CHECK(table == nullptr);
    CHECK_THAT(text, Catch::Matchers::Contains("linked into it or shared"));
}

#ifdef CUDA_STUB
/// The functions that a library exports: names in its table of symbols.
std::set<std::string> exported(const std::string& library) {
    const std::string command = "nm -D --defined-only '" + library + "'";
    FILE* const pipe = popen(command.c_str(), "r");
    std::set<std::string> out;
    for (char line[512]; std::fgets(line, sizeof line, pipe);) {
        std::string text(line);
        if (const auto at = text.find(" cu"); at != std::string::npos)
            out.insert(text.substr(at + 1, text.size() - at - 2));
    }
    pclose(pipe);
    return out;
}

TEST_CASE("whatever links with NVIDIA's stub finds its symbols") {
    const std::set<std::string> ours = exported(STAND_IN);
    int missing = 0;
    for (const std::string& symbol : exported(CUDA_STUB)) {
        const bool graphics = symbol.find("GL") != symbol.npos || symbol.find("VDPAU") != symbol.npos;
        if (graphics || ours.contains(symbol)) continue;
        ++missing;
        UNSCOPED_INFO(symbol);
    }
    CHECK(missing == 0);
    CHECK(ours.size() > 500);
}
#endif

TEST_CASE("newer forms of a function are found") {
    CHECK(look_up("cuCtxSynchronize", 12000).code == stand_in_symbol("cuCtxSynchronize"));
    CHECK(look_up("cuCtxSynchronize", 13000).code == stand_in_symbol("cuCtxSynchronize_v2"));
    void* green = &green;
    CUcontext context = nullptr;
    const OwnContext own;
    CHECK(call("cuStreamGetCtx_v2", CUstream(nullptr), &context, &green) == CUDA_SUCCESS);
    CHECK((context == own.handle && green == nullptr));
}

TEST_CASE("programs with a default stream for each thread find their symbols") {
    const auto with_flags = [](const char* name, int version, std::uint64_t flags) {
        void* code = nullptr;
        CUdriverProcAddressQueryResult status{};
        CHECK(call("cuGetProcAddress_v2", name, &code, version, flags, &status) == CUDA_SUCCESS);
        return code;
    };
    CHECK(with_flags("cuLaunchKernel", 13000, 2) == stand_in_symbol("cuLaunchKernel_ptsz"));
    CHECK(with_flags("cuLaunchKernel", 13000, 1) == stand_in_symbol("cuLaunchKernel"));
    CHECK(with_flags("cuLaunchKernel", 6050, 2) == stand_in_symbol("cuLaunchKernel"));  // there was none yet
    CHECK(with_flags("cuMemcpyHtoD", 13000, 2) == stand_in_symbol("cuMemcpyHtoD_v2_ptds"));
    CHECK(with_flags("cuMemAlloc", 13000, 2) == stand_in_symbol("cuMemAlloc_v2"));  // needs none
    CHECK(with_flags("cuStreamGetCaptureInfo", 12000, 2) == stand_in_symbol("cuStreamGetCaptureInfo_v2_ptsz"));
    void* code = nullptr;
    CHECK(call("cuGetProcAddress", "cuInit", &code, 13000, std::uint64_t{8}) == CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace ikat::tests
