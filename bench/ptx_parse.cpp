// SPDX-License-Identifier: Apache-2.0
// The speed of parsing and printing PTX, in MB/s of text: the best of several rounds.
//
//     bench_ptx_parse                 a generated kernel of 4 MB
//     bench_ptx_parse FILE.ptx...     files, repeated up to about 4 MB each
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <sstream>

#include "codegen/ptx/text/module.hpp"

namespace {

constexpr std::size_t wanted_bytes = 4'000'000;
constexpr int rounds = 7;

/// Kernels with a typical mix: loads, address arithmetic, fma, predicates, branches, shared memory, shuffles.
std::string made_kernels() {
    std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n";
    for (int kernel = 0; text.size() < wanted_bytes; ++kernel) {
        const std::string name = "kernel_" + std::to_string(kernel);
        text += "\n.visible .entry " + name + "(\n    .param .u64 .ptr .global .align 16 " + name +
                "_param_0,\n    .param .u32 " + name +
                "_param_1\n)\n.maxntid 256, 1, 1\n{\n    .reg .pred %p<9>;\n    .reg .b32 %r<300>;\n" +
                "    .reg .f32 %f<300>;\n    .reg .b64 %rd<300>;\n    .shared .align 16 .b8 tile[4096];\n" +
                "    ld.param.u64 %rd0, [" + name +
                "_param_0];\n    cvta.to.global.u64 %rd1, %rd0;\n    mov.u32 %r0, %tid.x;\n";
        for (int i = 1; i < 250; ++i) {
            const auto n = [i](const char* prefix, int step) { return prefix + std::to_string(i + step); };
            text += "    setp.ge.s32 %p1, " + n("%r", 0) + ", 1024;\n    @%p1 bra $L__BB0_" + std::to_string(i) + ";\n";
            text += "    mul.wide.s32 " + n("%rd", 1) + ", " + n("%r", 0) + ", 4;\n    add.s64 " + n("%rd", 2) +
                    ", %rd1, " + n("%rd", 1) + ";\n";
            text += "    ld.global.nc.v2.f32 {" + n("%f", 0) + ", " + n("%f", 1) + "}, [" + n("%rd", 2) + "+" +
                    std::to_string(16 * i) + "];\n";
            text += "    fma.rn.f32 " + n("%f", 2) + ", " + n("%f", 0) + ", " + n("%f", 1) + ", 0f3F800000;\n";
            text += "    st.shared.f32 [tile+" + std::to_string(4 * i) + "], " + n("%f", 2) + ";\n    bar.sync 0;\n";
            text += "    shfl.sync.bfly.b32 " + n("%r", 1) + "|%p2, " + n("%r", 0) + ", 16, 31, -1;\n$L__BB0_" +
                    std::to_string(i) + ":\n";
        }
        text += "    ret;\n}\n";
    }
    return text;
}

/// The body of the file repeated as often as it fits, its header once.
std::string repeated(const char* path) {
    std::ostringstream file;
    file << std::ifstream(path, std::ios::binary).rdbuf();
    const std::string once = file.str();
    std::string text = once;
    while (!once.empty() && text.size() + once.size() <= wanted_bytes) text += once;
    return text;
}

double best_seconds(const std::function<void()>& work) {
    double best = 1e9;
    for (int round = 0; round < rounds; ++round) {
        const auto start = std::chrono::steady_clock::now();
        work();
        best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return best;
}

void measure(const char* name, const std::string& text) {
    const ikat::ptx::Module module = ikat::ptx::parse(text, name);
    const double parse = best_seconds([&] { ikat::ptx::parse(text, name); });
    const double print = best_seconds([&] { ikat::ptx::print(module); });
    const auto megabytes = double(text.size()) / 1e6;
    std::printf("%-32s %6.2f MB   parse %6.1f MB/s   print %6.1f MB/s\n", name, megabytes, megabytes / parse,
                megabytes / print);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 1) measure("made kernels", made_kernels());
    for (int i = 1; i < argc; ++i) measure(argv[i], repeated(argv[i]));
}
