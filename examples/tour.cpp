// SPDX-License-Identifier: Apache-2.0
// Three kernels from C++ to checked results: each is compiled to PTX, of which a part is shown, its registers are
// reported, it runs on the available device, and its results are compared with a reference in double.
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "codegen/pipeline/compile.hpp"

using namespace ikat;

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::vector<float> random_numbers(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> out(count);
    std::ranges::generate(out, [&] { return uniform(random); });
    return out;
}

/// `count` lines of the text, from line `first` on.
void show_lines(const std::string& text, std::size_t first, std::size_t count) {
    std::size_t begin = 0;
    for (std::size_t line = 0; line < first + count && begin < text.size(); ++line) {
        const std::size_t end = text.find('\n', begin);
        if (line >= first) std::printf("    | %s\n", text.substr(begin, end - begin).c_str());
        begin = end + 1;
    }
}

void show_compilation(const char* title, const auto& kernel) {
    const auto start = Clock::now();
    const Compiled compiled = compile(kernel.ast());
    std::printf("\n%s\n  compiled to %zu bytes of PTX in %.2f ms; lines 13 to 24:\n", title, compiled.ptx.size(),
                milliseconds_since(start));
    show_lines(compiled.ptx, 12, 12);
    std::printf("  registers:");
    for (const RegisterUse& use : compiled.registers) std::printf(" %u %s", use.registers, use.register_class.c_str());
    std::printf("; shared memory: %u bytes\n", compiled.info.static_shared_bytes);
}

/// Reports the error of a result and the allowed error.
bool report(const char* what, double milliseconds, double error, double bound) {
    const bool right = error <= bound;
    std::printf("  %s in %.2f ms; error %.2g, allowed %.2g: %s\n", what, milliseconds, error, bound,
                right ? "right" : "WRONG");
    return right;
}

bool show_saxpy(const runtime::Device& device) {
    show_compilation("saxpy: y = a x + y", stdlib::saxpy());
    const auto x = random_numbers(100'000, 1), y = random_numbers(100'000, 2);
    auto on_device = device.upload(y, "y");
    const auto x_on_device = device.upload(x, "x");
    const auto start = Clock::now();
    stdlib::saxpy(device, 2.5f, x_on_device, on_device);
    const double time = milliseconds_since(start);
    const auto want = stdlib::reference::saxpy(2.5, x, y);
    const auto got = on_device.download();
    double error = 0;
    for (std::size_t i = 0; i < got.size(); ++i) error = std::max(error, std::abs(got[i] - want[i]));
    return report("100000 elements", time, error, 4 * 0x1p-24);  // one rounding of a number below 4
}

bool show_sum(const runtime::Device& device) {
    show_compilation("sum_f32: the sum of an array, the same in every run", stdlib::sum_kernel<float>());
    const auto x = random_numbers(1'000'000, 3);
    const auto on_device = device.upload(x, "x");
    const auto start = Clock::now();
    const float got = stdlib::sum(device, on_device);
    const double time = milliseconds_since(start), want = stdlib::reference::sum(std::span(x));
    // A thread adds fewer than 64 numbers below 1, followed twice by 10 butterfly steps.
    return report("1000000 elements", time, std::abs(got - want), 84 * 0x1p-24 * double(x.size()));
}

bool show_gemm(const runtime::Device& device) {
    show_compilation("gemm_tiled: C = A B through shared memory and registers", stdlib::gemm_tiled());
    const std::uint32_t m = 300, n = 250, k = 200;
    const auto A = random_numbers(m * k, 4), B = random_numbers(k * n, 5);
    auto C = device.buffer<float>(m * n, "C");
    const auto A_on_device = device.upload(A, "A"), B_on_device = device.upload(B, "B");
    const auto start = Clock::now();
    device.launch(stdlib::gemm_tiled(), stdlib::gemm_tiled_grid(m, n), A_on_device, B_on_device, C, m, n, k);
    const double time = milliseconds_since(start);
    const auto want = stdlib::reference::gemm(A, B, m, n, k);
    const auto got = C.download();
    double error = 0;
    for (std::size_t i = 0; i < got.size(); ++i) error = std::max(error, std::abs(got[i] - want[i]));
    return report("300x200 times 200x250", time, error, k * 0x1p-24 * k);
}

}  // namespace

int main() try {
    const auto device = runtime::Device::open();
    std::printf("device: %s\n", device.properties().name.c_str());
    bool right = show_saxpy(device);
    right = show_sum(device) && right;
    right = show_gemm(device) && right;
    std::printf("\n%s\n", right ? "All results are right." : "Some results are WRONG.");
    return right ? 0 : 1;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
