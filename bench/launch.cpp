// SPDX-License-Identifier: Apache-2.0
// What a launch on the emulator costs the host: kernels that do nothing, or next to nothing, so that the time is that
// of the checks, the cache, the arguments and the way to the first block. CPU time per launch, the best of several
// rounds.
//
//     build/release/bench/bench_launch
//     valgrind --tool=callgrind --callgrind-out-file=/dev/null build/release/bench/bench_launch null 1000
// The last command counts the instructions of 1000 launches, besides those that the first one needs.
//
//     export IKAT_CUDA_DRIVER=build/dev/tests/unit/runtime/libfake_cuda.so
//     valgrind --tool=callgrind build/dev/bench/bench_launch many 1000 cuda
// counts them on a stream of a driver that does nothing: all but those of its cuLaunchKernel.
#include <ikat/ikat.hpp>

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace {

using namespace ikat;

const auto null = kernel("null", params(), [] {});
const auto one = kernel("one", params("a", "x", "y", "n"),
                        [](f32 a, In<float> x, InOut<float> y, u32 n) {
                            u32 i = global_id().x;
                            if_(i < n, [&] { y[i] = a * x[i] + y[i]; });
                        })
                     .require(multiple_of<4>("n"), at_least("x", "n"))
                     .launch_bounds(256);
const auto view = kernel("view", params("A", "B"), [](In<float, 2> A, InOut<float, 2> B) {
    u32 j = global_id().x;
    if_(j < A.extent(1), [&] { B[0u, j] = A[0u, j]; });
});
const auto many = kernel("many", params("A", "B", "C", "m", "n", "k", "alpha"),
                         [](In<float, 2> A, In<float, 2> B, InOut<float, 2> C, u32 m, u32 n, u32 k, f32 alpha) {
                             u32 i = global_id().x;
                             if_(i < m, [&] { C[i, 0u] += alpha * A[i, 0u] * B[i, 0u] + cast<f32>(n + k); });
                         });

double now() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return double(time.tv_sec) * 1e6 + double(time.tv_nsec) * 1e-3;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view wanted = argc > 1 ? argv[1] : "";
    const int count = argc > 2 ? std::atoi(argv[2]) : 20000, rounds = argc > 2 ? 1 : 9;
    const auto device = Device::open({.device = argc > 3 ? argv[3] : "emulator", .threads = 1});
    const Stream stream = device.stream();
    const auto x = device.upload(std::vector<float>(64), "x");
    auto y = device.upload(std::vector<float>(64), "y");
    const auto measure = [&](std::string_view name, auto&& launch) {
        if (!wanted.empty() && wanted != name) return;
        launch();
        double best = 1e30;
        for (int round = 0; round < rounds; ++round) {
            const double start = now();
            for (int i = 0; i < count; ++i) launch();
            best = std::min(best, (now() - start) / count);
        }
        fmt::print("{:<8}{:8.3f} us\n", name, best);
    };
    measure("null", [&] { device.launch(null, Grid{{1}, {32}}); });
    measure("one", [&] { device.launch(one, Grid{{1}, {32}}, 2.0f, x, y, 32); });
    measure("view", [&] { device.launch(view, Grid{{1}, {32}}, x.view(1, 32), y.view(1, 32)); });
    measure("four", [&] { stream.launch(one, Grid{{1}, {32}}, 2.0f, x, y, 32); });
    measure("many", [&] {
        stream.launch(many, Grid{{1}, {32}}, x.view(2, 32), x.view(2, 32), y.view(2, 32), 2u, 32u, 32u, 2.0f);
    });
}
