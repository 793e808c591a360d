// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/catch.hpp"
#include "tests/unit/cuda_driver/said.hpp"
#include "tests/unit/cuda_driver/stand_in.hpp"

namespace ikat::tests {
namespace {

CUresult load_text(const std::string& text, std::string* log = nullptr) {
    CUmodule module = nullptr;
    std::array<char, 500> buffer;
    buffer.fill('x');
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {buffer.data(), reinterpret_cast<void*>(buffer.size())};
    const CUresult result =
        call("cuModuleLoadDataEx", &module, static_cast<const void*>(text.c_str()), 2u, &options[0], &values[0]);
    if (log) *log = buffer.data();
    return result;
}

TEST_CASE("PTX that does not compile is refused with a log that names its line") {
    const OwnContext own;
    std::string log;
    CHECK(load_text(".version 8.0\n.target sm_90\n.address_size 64\n.entry k() {\n  add.f33 %a, %b, %c;\n}\n", &log) ==
          CUDA_ERROR_INVALID_PTX);
    CHECK_THAT(log, Catch::Matchers::Contains("line 5; error"));
    CHECK(load_text("nonsense", &log) == CUDA_ERROR_INVALID_PTX);
    CHECK_THAT(log, Catch::Matchers::Contains("line 1; error"));
    CHECK(load_text(".version 99.0\n.target sm_90\n.address_size 64\n", &log) == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    CHECK_THAT(log, Catch::Matchers::Contains("Unsupported .version 99.0"));
    CHECK(load_text(".version 8.7\n.target sm_120\n.address_size 64\n", &log) == CUDA_ERROR_INVALID_PTX);
    CHECK_THAT(log, Catch::Matchers::Contains("sm_120"));
    for (const char* target : {"sm_103", "sm_110a", "sm_121", "sm_89a"})
        CHECK(load_text(std::string(".version 9.0\n.target ") + target + "\n.address_size 64\n") ==
              CUDA_ERROR_INVALID_PTX);
    CHECK(load_text(".version 8.0\n.target sm_90a\n.address_size 64\n") == CUDA_SUCCESS);
    CHECK(load_text(".version 9.5\n.target sm_90a\n.address_size 64\n") == CUDA_SUCCESS);
    CHECK(load_text(".version 8.0\n.target sm_80\n.address_size 64\n", &log) == CUDA_SUCCESS);
    CHECK(log == "");
    CHECK(load_text(".version 8.0\n.target sm_80\n.address_size 32\n") == CUDA_ERROR_INVALID_PTX);
}

CUresult load_image(const void* image) {
    CUmodule module = nullptr;
    const CUresult result = call("cuModuleLoadData", &module, image);
    return result == CUDA_SUCCESS ? launch(function(module)) : result;
}

TEST_CASE("the PTX in a fat binary is found, plain and compressed, that of the newest target of the device's") {
    const OwnContext own;
    for (const char* file : {"plain", "lz4", "zstd"}) {
        INFO(file);
        std::ifstream in(IKAT_SOURCE_DIR "/tests/unit/cuda_driver/fat_" + std::string(file) + ".bin", std::ios::binary);
        const std::string image{std::istreambuf_iterator<char>(in), {}};
        REQUIRE(image.size() > 100);
        CHECK(load_image(image.data()) == CUDA_SUCCESS);
        struct {
            unsigned magic = 0x466243b1, version = 1;
            const void* container;
        } const wrapper{.container = image.data()};
        CHECK(load_image(&wrapper) == CUDA_SUCCESS);
        std::string damaged = image;
        damaged[24] = char(0xff);  // the bytes of the first entry
        CHECK(load_image(damaged.data()) == CUDA_ERROR_NO_BINARY_FOR_GPU);
    }
}

TEST_CASE("the linker links PTX, and its result is loaded") {
    const OwnContext own;
    const std::string head = ".version 8.0\n.target sm_90\n.address_size 64\n";
    const std::string user = head + ".extern .func f();\n.visible .entry k() { call.uni f, (); ret; }\n";
    const std::string callee = head + ".visible .func f() { ret; }\n";
    const auto link = [&](std::initializer_list<std::string> texts, std::string* log = nullptr) {
        std::array<char, 1000> buffer{};
        CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
        void* values[] = {buffer.data(), reinterpret_cast<void*>(buffer.size())};
        struct CUlinkState_st* state = nullptr;
        CHECK(call("cuLinkCreate_v2", 2u, &options[0], &values[0], &state) == CUDA_SUCCESS);
        CUresult result = CUDA_SUCCESS;
        for (const std::string& text : texts) {
            if (result != CUDA_SUCCESS) break;
            const CUjitInputType type = text[0] == '!' || text[0] == '\x7f' ? CU_JIT_INPUT_LIBRARY : CU_JIT_INPUT_PTX;
            result = call("cuLinkAddData_v2", state, type, static_cast<void*>(const_cast<char*>(text.data())),
                          text.size(), "a.ptx", 0u, static_cast<CUjit_option*>(nullptr), static_cast<void**>(nullptr));
        }
        void* cubin = nullptr;
        std::size_t size = 0;
        if (result == CUDA_SUCCESS) result = call("cuLinkComplete", state, &cubin, &size);
        if (log) *log = buffer.data();
        if (result == CUDA_SUCCESS) result = load_image(cubin);
        CHECK(call("cuLinkDestroy", state) == CUDA_SUCCESS);
        return result;
    };
    CHECK(link({user, callee}) == CUDA_SUCCESS);
    std::string log;
    CHECK(link({user}, &log) == CUDA_ERROR_INVALID_PTX);
    CHECK_THAT(log, Catch::Matchers::Contains("f is declared but has no body"));
    CHECK(link({"nonsense", user}, &log) == CUDA_ERROR_INVALID_PTX);
    CHECK_THAT(log, Catch::Matchers::Contains("a.ptx, line 1; error"));
    const std::string library = "!<arch>\nmachine code";  // the device's runtime
    CHECK(link({user, library, callee}) == CUDA_SUCCESS);
    CHECK(link({user, library}, &log) == CUDA_ERROR_INVALID_PTX);
    CHECK_THAT(log, Catch::Matchers::Contains("f is declared but has no body"));
    CHECK(link({user,
                "\x7f"
                "ELF"},
               &log) == CUDA_ERROR_NO_BINARY_FOR_GPU);
    CHECK_THAT(log, Catch::Matchers::Contains("'a.ptx' is machine code"));
}

TEST_CASE("the blocks of a cooperative launch meet by the device's runtime") {
    const OwnContext own;
    // Each block writes its number, and after the barrier reads that of the next.
    const std::string text = R"(.version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 s);
.extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 h, .param .b32 f);
.visible .entry k(.param .u64 p) {
    .reg .b32 %r<5>; .reg .b64 %d<5>;
    ld.param.u64 %d0, [p]; mov.u32 %r0, %ctaid.x; mov.u32 %r1, %nctaid.x;
    mad.wide.u32 %d1, %r0, 4, %d0; st.global.u32 [%d1], %r0;
    { .param .b32 s; .param .b64 r; st.param.b32 [s], 1;
      call.uni (r), cudaCGGetIntrinsicHandle, (s); ld.param.b64 %d2, [r]; }
    { .param .b64 h; .param .b32 f; .param .b32 r; st.param.b64 [h], %d2; st.param.b32 [f], 0;
      call.uni (r), cudaCGSynchronize, (h, f); ld.param.b32 %r4, [r]; }
    add.u32 %r2, %r0, 1; rem.u32 %r2, %r2, %r1;
    mad.wide.u32 %d3, %r2, 4, %d0; ld.global.u32 %r3, [%d3]; add.u32 %r3, %r3, %r4; st.global.u32 [%d1+64], %r3;
    ret;
}
)";
    struct CUlinkState_st* state = nullptr;
    CHECK(call("cuLinkCreate_v2", 0u, static_cast<CUjit_option*>(nullptr), static_cast<void**>(nullptr), &state) ==
          CUDA_SUCCESS);
    const auto add = [&](CUjitInputType type, const std::string& data) {
        CHECK(call("cuLinkAddData_v2", state, type, static_cast<void*>(const_cast<char*>(data.data())), data.size(),
                   "a", 0u, static_cast<CUjit_option*>(nullptr), static_cast<void**>(nullptr)) == CUDA_SUCCESS);
    };
    add(CU_JIT_INPUT_PTX, text), add(CU_JIT_INPUT_LIBRARY, "!<arch>\n");
    void* cubin = nullptr;
    std::size_t size = 0;
    CHECK(call("cuLinkComplete", state, &cubin, &size) == CUDA_SUCCESS);
    CUmodule module = nullptr;
    CHECK(call("cuModuleLoadData", &module, static_cast<const void*>(cubin)) == CUDA_SUCCESS);
    CUdeviceptr buffer = 0;
    CHECK(call("cuMemAlloc_v2", &buffer, std::size_t{128}) == CUDA_SUCCESS);
    void* parameters[] = {&buffer};
    for (int round = 0; round < 2; ++round)
        CHECK(call("cuLaunchCooperativeKernel", function(module), 16u, 1u, 1u, 1u, 1u, 1u, 0u, CUstream(nullptr),
                   &parameters[0]) == CUDA_SUCCESS);
    std::array<unsigned, 16> next{};
    CHECK(call("cuMemcpyDtoH_v2", static_cast<void*>(next.data()), buffer + 64, sizeof next) == CUDA_SUCCESS);
    for (unsigned i = 0; i < 16; ++i) CHECK(next[i] == (i + 1) % 16);
    CHECK(call("cuLinkDestroy", state) == CUDA_SUCCESS);
}

TEST_CASE("what ikat-ptxas writes is loaded, and what it refuses is named as ptxas does") {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("ikat-ptxas-test-" + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
    const auto assemble = [&](const std::string& body, const std::string& options) {
        std::ofstream(folder / "k.ptx") << ".version 9.5\n.target sm_90a\n.address_size 64\n.visible .entry k() {\n"
                                        << body << "\nret;\n}\n";
        const std::string command = IKAT_PTXAS_PROGRAM " -lineinfo -v --gpu-name=sm_90a " + options + " '" +
                                    (folder / "k.ptx").string() + "' -o '" + (folder / "k.cubin").string() + "' 2> '" +
                                    (folder / "log").string() + "'";
        return WEXITSTATUS(std::system(command.c_str()));
    };
    const auto text_of = [&](const char* name) {
        std::ifstream in(folder / name, std::ios::binary);
        return std::string{std::istreambuf_iterator<char>(in), {}};
    };
    {
        const OwnContext own;
        CHECK(assemble("bar.sync 0;", "-O3 --fmad=false --regAllocOptLevel=2") == 0);
        CHECK(load_image(text_of("k.cubin").data()) == CUDA_SUCCESS);
    }
    CHECK(assemble("add.u33 %r1, 1, 2;", "") == 255);
    CHECK_THAT(text_of("log"), Catch::Matchers::Contains("k.ptx, line 5; error"));
    CHECK(assemble("bar.sync 0;", "--make-coffee") == 255);
    CHECK_THAT(text_of("log"), Catch::Matchers::Contains("ptxas has no option '--make-coffee'"));
    std::filesystem::remove_all(folder);
}

TEST_CASE("images that are no PTX are named") {
    const OwnContext own;
    CHECK(load_text("\177ELF binary") == CUDA_ERROR_NO_BINARY_FOR_GPU);
    const std::string text = said([] {
        const char only_code[48] = "\x50\xed\x55\xba\x01\0\x10\0\x10";
        CHECK(load_image(only_code) == CUDA_ERROR_NO_BINARY_FOR_GPU);
    });
    CHECK_THAT(text, Catch::Matchers::Contains("damaged"));
    CUmodule module = nullptr;
    CHECK(call("cuModuleLoadData", &module, static_cast<const void*>(nullptr)) == CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuModuleLoad", &module, "/nowhere.ptx") == CUDA_ERROR_FILE_NOT_FOUND);
    CHECK(call("cuModuleLoad", &module, "/tmp") == CUDA_ERROR_FILE_NOT_FOUND);
}

TEST_CASE("an unknown opcode in newer PTX is refused where an entry executes it") {
    const OwnContext own;
    const std::string head = ".version 9.5\n.target sm_90a\n.address_size 64\n";
    const std::string text = head +
                             ".func unused() { brew.coffee; ret; }\n.entry good() { ret; }\n"
                             ".entry bad() {\n  brew.coffee;\n  ret;\n}\n";
    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    CHECK(call("cuModuleLoadData", &module, static_cast<const void*>(text.c_str())) == CUDA_SUCCESS);
    CHECK(call("cuModuleGetFunction", &kernel, module, "good") == CUDA_SUCCESS);
    CHECK(launch(kernel) == CUDA_SUCCESS);
    CHECK(call("cuModuleGetFunction", &kernel, module, "bad") == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(load_text(".version 9.0\n.target sm_90a\n.address_size 64\n.func f() { brew.coffee; ret; }\n") ==
          CUDA_ERROR_INVALID_PTX);
}

TEST_CASE("entries are found by name, and go with their module") {
    const OwnContext own;
    const CUmodule module = load(".param .u32 n, .param .u64 p", "");
    CUfunction kernel = function(module), again = nullptr, missing = nullptr;
    CHECK(call("cuModuleGetFunction", &again, module, "k") == CUDA_SUCCESS);
    CHECK(again == kernel);
    CHECK(call("cuModuleGetFunction", &missing, module, "other") == CUDA_ERROR_NOT_FOUND);
    const char* name = nullptr;
    CHECK(call("cuFuncGetName", &name, kernel) == CUDA_SUCCESS);
    CHECK(std::string(name) == "k");
    std::size_t offset = 0, bytes = 0;
    CHECK(call("cuFuncGetParamInfo", kernel, std::size_t{1}, &offset, &bytes) == CUDA_SUCCESS);
    CHECK((offset == 8 && bytes == 8));
    CHECK(call("cuFuncGetParamInfo", kernel, std::size_t{2}, &offset, &bytes) == CUDA_ERROR_INVALID_VALUE);
    CHECK(call("cuModuleUnload", module) == CUDA_SUCCESS);
    CHECK(call("cuFuncGetName", &name, kernel) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(launch(kernel) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("variables have addresses, constant ones too") {
    const OwnContext own;
    const CUmodule module =
        load(".param .u64 out",
             ".reg .b64 %d; .reg .b32 %r<3>; ld.param.u64 %d, [out]; ld.const.u32 %r0, [c+4]; ld.global.u32 %r1, [g];\n"
             "add.u32 %r2, %r0, %r1; st.global.u32 [%d], %r2;",
             "", ".const .u32 c[2] = {1, 2}; .global .u32 g = 30;");
    CUdeviceptr constant = 0, global = 0, out = 0;
    std::size_t bytes = 0;
    CHECK(call("cuModuleGetGlobal_v2", &constant, &bytes, module, "c") == CUDA_SUCCESS);
    CHECK(bytes == 8);
    CHECK(call("cuModuleGetGlobal_v2", &global, &bytes, module, "g") == CUDA_SUCCESS);
    CHECK(call("cuModuleGetGlobal_v2", &global, &bytes, module, "x") == CUDA_ERROR_NOT_FOUND);
    call("cuMemAlloc_v2", &out, std::size_t{4});
    void* parameters[] = {&out};
    unsigned result = 0, hundred = 100;
    CHECK(launch(function(module), {}, parameters) == CUDA_SUCCESS);
    CHECK(call("cuMemcpyDtoH_v2", static_cast<void*>(&result), out, std::size_t{4}) == CUDA_SUCCESS);
    CHECK(result == 32);
    CHECK(call("cuMemcpyHtoD_v2", constant + 4, static_cast<const void*>(&hundred), std::size_t{4}) == CUDA_SUCCESS);
    CHECK(launch(function(module), {}, parameters) == CUDA_SUCCESS);
    CHECK(call("cuMemcpyDtoH_v2", static_cast<void*>(&result), out, std::size_t{4}) == CUDA_SUCCESS);
    CHECK(result == 130);
}

TEST_CASE("a function says which target its PTX is for, also an old one") {
    const OwnContext own;
    for (const int number : {52, 90}) {
        const std::string text =
            ".version 8.0\n.target sm_" + std::to_string(number) + "\n.address_size 64\n.visible .entry k() { ret; }\n";
        CUmodule module = nullptr;
        int version = 0;
        CHECK(call("cuModuleLoadData", &module, static_cast<const void*>(text.c_str())) == CUDA_SUCCESS);
        CHECK(call("cuFuncGetAttribute", &version, CU_FUNC_ATTRIBUTE_PTX_VERSION, function(module)) == CUDA_SUCCESS);
        CHECK(version == number);
    }
}

TEST_CASE("a library's kernels are launched in any context") {
    const OwnContext own;
    const std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n";
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    CUfunction as_function = nullptr;
    CHECK(call("cuLibraryLoadData", &library, static_cast<const void*>(text.c_str()),
               static_cast<CUjit_option*>(nullptr), static_cast<void**>(nullptr), 0u, static_cast<void*>(nullptr),
               static_cast<void**>(nullptr), 0u) == CUDA_SUCCESS);
    CHECK(call("cuLibraryGetKernel", &kernel, library, "k") == CUDA_SUCCESS);
    CHECK(call("cuKernelGetFunction", &as_function, kernel) == CUDA_SUCCESS);
    CHECK(launch(as_function) == CUDA_SUCCESS);
    {
        const OwnContext other;
        CHECK(launch(reinterpret_cast<CUfunction>(kernel)) == CUDA_SUCCESS);
    }
    unsigned count = 0;
    CUkernel listed[2] = {};
    CUlibrary its_library = nullptr;
    CHECK(call("cuLibraryGetKernelCount", &count, library) == CUDA_SUCCESS);
    CHECK(count == 1);
    CHECK(call("cuLibraryEnumerateKernels", &listed[0], 2u, library) == CUDA_SUCCESS);
    CHECK(listed[0] == kernel);
    CHECK(listed[1] == nullptr);
    CHECK(call("cuKernelGetLibrary", &its_library, kernel) == CUDA_SUCCESS);
    CHECK(its_library == library);
    CHECK(call("cuKernelGetLibrary", &its_library, reinterpret_cast<CUkernel>(function(load("", "")))) ==
          CUDA_ERROR_INVALID_HANDLE);
    CHECK(call("cuLibraryUnload", library) == CUDA_SUCCESS);
    CHECK(launch(as_function) == CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace
}  // namespace ikat::tests
