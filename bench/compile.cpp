// SPDX-License-Identifier: Apache-2.0
// The time from a kernel's lambda to PTX text, by stage: the median of many compilations, each of a fresh kernel, on
// one core.
//
//     build/release/bench/bench_compile
//     valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='*compile_once*'
//         build/release/bench/bench_compile saxpy 100
// The second command counts the instructions of 100 compilations, which do not depend on other load of the machine.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/pipeline/compile.hpp"
#include "dsl/kernel/kernel.hpp"
#include "dsl/threads/simt.hpp"
#include "stdlib/gemm/gemm.hpp"

namespace {

using namespace ikat;
using Clock = std::chrono::steady_clock;

auto make_saxpy() {
    return kernel("saxpy", params("a", "x", "y", "n"), [](f32 a, In<float> x, InOut<float> y, u32 n) {
        u32 i = global_id().x;
        if_(i < n, [&] { y[i] = fma(a, x[i], y[i]); });
    });
}

double microseconds(Clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

double median(std::vector<double>& times) {
    std::ranges::nth_element(times, times.begin() + std::ptrdiff_t(times.size() / 2));
    return times[times.size() / 2];
}

auto make_gemm_tiled() { return stdlib::make_gemm_tiled<stdlib::GemmTile{}>("gemm_tiled"); }

/// A separate function, for callgrind.
__attribute__((noinline)) std::size_t compile_once(auto make) { return compile(make().ast()).ptx.size(); }

void measure(const char* name, auto make, int rounds) {
    std::vector<double> capture, total;
    std::vector<std::pair<std::string, std::vector<double>>> stages;
    std::size_t bytes = 0;
    for (int round = 0; round < rounds; ++round) {
        const auto start = Clock::now();
        const auto made = make();
        const ast::KernelTree& ast = made.ast();
        const auto captured = Clock::now();
        const Compiled compiled = compile(ast);
        total.push_back(microseconds(Clock::now() - start));
        capture.push_back(microseconds(captured - start));
        bytes = compiled.ptx.size();
        stages.resize(compiled.stages.size());
        for (std::size_t i = 0; i < stages.size(); ++i) {
            stages[i].first = compiled.stages[i].name;
            stages[i].second.push_back(microseconds(compiled.stages[i].time));
        }
    }
    fmt::print("{:<12}{:>9.1f} us to {} bytes of PTX: capture {:.1f}", name, median(total), bytes, median(capture));
    for (auto& [stage, times] : stages) fmt::print(", {} {:.1f}", stage, median(times));
    fmt::print("\n");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3) {
        const bool saxpy = std::string_view(argv[1]) == "saxpy";
        std::size_t bytes = 0;
        for (int round = std::atoi(argv[2]); round > 0; --round)
            bytes = saxpy ? compile_once(make_saxpy) : compile_once(make_gemm_tiled);
        return bytes > 0 ? 0 : 1;
    }
    measure("saxpy", make_saxpy, 501);
    measure("gemm_tiled", make_gemm_tiled, 101);
}
