// SPDX-License-Identifier: Apache-2.0
// The time from a kernel's lambda to PTX text, by stage: the median of many compilations, each of a fresh kernel; and
// of a cold start, the first compilation of a process. Totals are CPU time, which others' load disturbs less.
//
//     build/release/bench/bench_compile
//     build/release/bench/bench_compile --cold NAME
//     valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='*compile_once*'
//         build/release/bench/bench_compile saxpy 100
// The last command counts the instructions of 100 compilations, which do not depend on other load of the machine.
#include <fmt/format.h>
#include <time.h>

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
#include "stdlib/attention/attention_kernels.hpp"
#include "stdlib/attention/wgmma_kernels.hpp"
#include "stdlib/gemm/gemm.hpp"
#include "stdlib/gemm/tensor_kernels.hpp"
#include "stdlib/quantised/packed_tensor_product.hpp"
#include "stdlib/quantised/tensor_product.hpp"

namespace {

using namespace ikat;
using namespace ikat::stdlib;
using Clock = std::chrono::steady_clock;

trace::KernelHandle saxpy() {
    return kernel("saxpy", params("a", "x", "y", "n"),
                  [](f32 a, In<float> x, InOut<float> y, u32 n) {
                      u32 i = global_id().x;
                      if_(i < n, [&] { y[i] = fma(a, x[i], y[i]); });
                  })
        .handle();
}

trace::KernelHandle gemm_tiled() { return make_gemm_tiled<GemmTile{}>("gemm_tiled").handle(); }

/// A by rows, B by columns, in bf16.
trace::KernelHandle product(TensorKernel is) {
    is.type = ir::Type::BF16, is.b = MatrixOrder::Columns;
    return is.make();
}
using Step = TensorKernel::Step;

struct Case {
    std::string_view name, target;
    double goal;  // in microseconds
    int rounds;
    trace::KernelHandle (*make)();
};
const Case cases[] = {
    {"saxpy", "sm_80", 300, 501, saxpy},
    {"gemm_tiled", "sm_80", 3000, 101, gemm_tiled},
    {"product_mma", "sm_80", 5000, 51, [] { return product({}); }},
    {"product_mma_large", "sm_80", 5000, 51, [] { return product({.tile = TileSize::large}); }},
    {"product_mma_gelu_residual", "sm_80", 5000, 51,
     [] { return product({.activation = Activation::gelu, .has_residual = true}); }},
    {"product_wgmma", "sm_90a", 5000, 51, [] { return product({.step = Step::Boxes, .tile = TileSize::large}); }},
    {"product_wgmma_gelu_residual", "sm_90a", 5000, 51,
     [] {
         return product(
             {.step = Step::Cluster, .tile = TileSize::large, .activation = Activation::gelu, .has_residual = true});
     }},
    {"attention_mma", "sm_80", 10000, 51,
     [] { return AttentionKernel{.type = ir::Type::BF16, .head_dim = 128, .has_after = true}.make(); }},
    {"attention_wgmma", "sm_90a", 10000, 51,
     [] { return WgmmaAttentionKernel{.type = ir::Type::BF16, .head_dim = 128, .has_after = true}.make(); }},
    {"quantised_mma", "sm_80", 8000, 51, [] { return TensorProductKernel{.format = runtime::Quantised::Q4_K}.make(); }},
    {"quantised_wgmma", "sm_90a", 8000, 51,
     [] { return TensorProductKernel{.format = runtime::Quantised::Q4_K, .tokens = 128}.make(); }},
    {"quantised_q8_1", "sm_80", 8000, 51, [] { return PackedTensorKernel{.format = runtime::Quantised::Q4_K}.make(); }},
};

double microseconds(Clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

/// The CPU time of this thread, in microseconds.
double now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return double(time.tv_sec) * 1e6 + double(time.tv_nsec) * 1e-3;
}

double median(std::vector<double>& times) {
    std::ranges::nth_element(times, times.begin() + std::ptrdiff_t(times.size() / 2));
    return times[times.size() / 2];
}

/// A separate function, for callgrind.
__attribute__((noinline)) std::size_t compile_once(const Case& each) {
    return compile(each.make().ast(), {.target = std::string(each.target)}).ptx.size();
}

void measure(const Case& each) {
    std::vector<double> capture, total;
    std::vector<std::pair<std::string, std::vector<double>>> stages;
    std::size_t bytes = 0;
    for (int round = 0; round < each.rounds; ++round) {
        const double start = now();
        const trace::KernelHandle made = each.make();
        const auto& ast = made.ast();
        const double captured = now();
        const Compiled compiled = compile(ast, {.target = std::string(each.target)});
        total.push_back(now() - start);
        capture.push_back(captured - start);
        bytes = compiled.ptx.size();
        stages.resize(compiled.stages.size());
        for (std::size_t i = 0; i < stages.size(); ++i) {
            stages[i].first = compiled.stages[i].name;
            stages[i].second.push_back(microseconds(compiled.stages[i].time));
        }
    }
    fmt::print("{:<28}{:>9.1f} us (goal {}) to {} bytes of PTX: capture {:.1f}", each.name, median(total), each.goal,
               bytes, median(capture));
    for (auto& [stage, times] : stages) fmt::print(", {} {:.1f}", stage, median(times));
    fmt::print("\n");
}

const Case& find(std::string_view name) {
    const auto found = std::ranges::find(cases, name, &Case::name);
    if (found != std::end(cases)) return *found;
    fmt::print(stderr, "there is no kernel {}; there are", name);
    for (const Case& each : cases) fmt::print(stderr, " {}", each.name);
    fmt::print(stderr, "\n");
    std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::string_view(argv[1]) == "--cold") {
        const Case& each = find(argv[2]);
        const double start = now();
        const std::size_t bytes = compile_once(each);
        fmt::print("{:.1f} us to {} bytes of PTX\n", now() - start, bytes);
    } else if (argc == 3) {
        const Case& each = find(argv[1]);
        for (int round = std::atoi(argv[2]); round > 0; --round) compile_once(each);
    } else {
        for (const Case& each : cases) measure(each);
    }
}
