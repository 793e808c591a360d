// SPDX-License-Identifier: Apache-2.0
// Round trips of foreign PTX: parse, print, parse, print gives the same text, and ptxas makes the same machine code
// from the printed text as from the original, so no modifier, operand or directive was lost.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "codegen/ptx/text/module.hpp"
#include "tests/catch.hpp"
#include "tests/foreign/compilers.hpp"
#include "tests/foreign/reprint.hpp"
#include "tests/ptxas.hpp"

using namespace ikat;
using tests::check_machine_code;
using tests::reprint;

namespace {

std::string read_source(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(IKAT_SOURCE_DIR + path).rdbuf();
    return text.str();
}

}  // namespace

TEST_CASE("PTX by nvcc") {
    for (const char* options : {"-arch=sm_90 -lineinfo", "-arch=sm_80 -use_fast_math", "-arch=sm_75 -G"}) {
        INFO(options);
        const auto text = tests::nvcc_ptx(read_source("/tests/foreign/kernels.cu"), options);
        if (!text) {
            std::puts("skipped: no nvcc");
            return;
        }
        check_machine_code(*text, "sm_90");
    }
}

TEST_CASE("PTX of the headers of CUDA") {
    for (const char* options : {"-arch=sm_90 -lineinfo", "-arch=sm_80 -G"}) {
        INFO(options);
        const auto text = tests::nvcc_ptx(read_source("/tests/foreign/headers.cu"), options);
        if (!text) {
            std::puts("skipped: no nvcc");
            return;
        }
        check_machine_code(*text, "sm_90");
    }
}

TEST_CASE("PTX by clang") {
    for (const char* options : {"-O0 -march=sm_75", "-O2 -march=sm_80", "-O2 -g -march=sm_80"}) {
        INFO(options);
        const auto text = tests::clang_ptx(read_source("/tests/foreign/kernels.cpp"), options);
        if (!text) {
            std::puts("skipped: no clang++-19");
            return;
        }
        // Debug sections refer to labels of the text; still, ptxas makes the same code from both.
        check_machine_code(*text, "sm_80");
    }
}

TEST_CASE("PTX by Triton") {
    const auto made = tests::triton_files("triton_kernels.py");
    if (!made) {
        std::puts("skipped: no triton in python3");
        return;
    }
    CHECK(made->size() > 20);
    for (const auto& [name, text] : *made) {
        INFO(name);
        const std::string stem = name.substr(0, name.rfind('.'));
        check_machine_code(text, stem.substr(stem.rfind('.') + 1));
    }
}

TEST_CASE("PTX in the style of Triton") { check_machine_code(read_source("/tests/foreign/triton.ptx"), "sm_90a"); }

TEST_CASE("constant expressions have the value that ptxas gives them") {
    if (tests::skip_without_ptxas()) return;
    const std::string head = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .global .s64 value[1] = {";
    for (const std::string expression : {"1+2*3",
                                         "(1+2)*3",
                                         "-(4-6)",
                                         "7/2-9 % 4",
                                         "0xffffffffffffffff>>60",
                                         "(.s64)0xffffffffffffffff>>60",
                                         "-1>>60",
                                         "3<2?10:7",
                                         "0x80|1",
                                         "1&&0",
                                         "1||5",
                                         "!5",
                                         "!0",
                                         "~0&0xff",
                                         "1<<70",
                                         "-7/2",
                                         "-7 % 3",
                                         "5U-7",
                                         "WARP_SZ*2",
                                         "1^3",
                                         "2>1",
                                         "0x8000000000000000/2",
                                         "-1/2U",
                                         "-1<1U",
                                         "5*(.u64)3",
                                         "9223372036854775808",
                                         "-1>0x8000000000000000",
                                         "2-3-4",
                                         "1|2^3&6",
                                         "100/7*7",
                                         "1<<2+3",
                                         "-0x10",
                                         "+3",
                                         "--5"}) {
        INFO(expression);
        const ptx::Module module = ptx::parse(head + expression + "};\n", "expression");
        const ptx::Operand list = module.operands(module.variables.at(0).declarators.at(0).initialiser)[0];
        const std::string value = std::to_string(std::int64_t(module.operands(list.children)[0].value));
        CHECK(tests::initial_values(head + expression + "};\n", "sm_80") ==
              tests::initial_values(head + value + "};\n", "sm_80"));
    }
}

TEST_CASE("initial values survive the printer") {
    if (tests::skip_without_ptxas()) return;
    const std::string text = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 nested[2][3] = {{1, 2}, {4, 5, 6}};
.visible .global .align 8 .f64 numbers[3] = {1.5, 0d3FF0000000000000, -2.25e3};
.visible .global .align 4 .f32 singles[2] = {0f3F800000, 1.25};
.visible .global .align 1 .b8 bytes[8] = {104, 105, 0x7f, 0377, 0b101};
.visible .global .align 8 .u64 places[4] = {generic(nested), nested+4, generic(nested)+8, 0};
.visible .const .align 4 .s32 fixed[4] = {-1, 2, 3+4*5};
.visible .global .align 1 .u8 parts[4] = {0xff(nested), 0xff00(nested), 0xff0000(nested), 0xff000000(nested)};
)";
    CHECK(tests::initial_values(text, "sm_80") == tests::initial_values(reprint(text), "sm_80"));
}

TEST_CASE("every PTX file of the repository") {
    int files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(IKAT_SOURCE_DIR)) {
        const std::string path = entry.path().string().substr(std::string(IKAT_SOURCE_DIR).size());
        if (entry.path().extension() != ".ptx" || path.starts_with("/build/") || path.find("/errors/") != path.npos ||
            entry.path().stem() == "bad")
            continue;
        INFO(path);
        std::ostringstream text;
        text << std::ifstream(entry.path()).rdbuf();
        std::string input = text.str();
        if (const std::size_t mark = input.find("// ---- expect ----"); mark != input.npos) input.resize(mark);
        reprint(input);
        ++files;
    }
    CHECK(files > 0);
}
