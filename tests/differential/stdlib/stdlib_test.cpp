// SPDX-License-Identifier: Apache-2.0
// Sums and maxima of buffers against their host references; the building blocks of reductions and vectors.
#include <algorithm>
#include <cmath>
#include <limits>

#include "stdlib/elementwise/saxpy.hpp"
#include "stdlib/gemm/gemm.hpp"
#include "stdlib/reduce/reduce.hpp"
#include "stdlib/reduction/reduction.hpp"
#include "stdlib/reference/reference.hpp"
#include "stdlib/tile/vectors.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/case.hpp"

namespace {

using namespace ikat;
using test::epsilon, test::random_elements;

/// Bounds every partial sum of the terms and thus, times their number and epsilon, the error of the sum.
template <class T>
double sum_of_magnitudes(const std::vector<T>& x) {
    double total = 0;
    for (T element : x) total += std::abs(double(float(element)));
    return total;
}

const std::size_t lengths[] = {0, 1, 31, 32, 33, 255, 256, 1000, 2048, 2049, 10007, 100003};

template <class T>
void check_reductions() {
    const runtime::Device device = test::open_device();
    for (std::size_t n : lengths) {
        INFO("n = " << n);
        const std::vector<T> x = random_elements<T>(n, std::uint32_t(n) + 1);
        const auto buffer = device.upload(x, "x");
        const float total = stdlib::sum(device, buffer);
        CHECK(std::abs(total - stdlib::reference::sum(x)) <= double(n) * epsilon * sum_of_magnitudes(x));
        CHECK(stdlib::sum(device, buffer) == total);
        CHECK(stdlib::max(device, buffer) == stdlib::reference::max(x));
    }
}

}  // namespace

TEST_CASE("gemm of more rows than a grid has blocks in y") {
    const std::uint32_t rows = 65535 * 64 + 65;
    const runtime::Grid grid = stdlib::gemm_tiled_grid(rows, 1);
    CHECK(grid.blocks.y <= 65535);
    CHECK(std::uint64_t(grid.blocks.y) * grid.blocks.z * 64 >= rows);
    const runtime::Device device = test::open_device();
    auto C = device.upload(std::vector<float>(rows, 1.0f), "C");
    const auto none = device.buffer<float>(0);
    stdlib::gemm(device, none.view(rows, 0), none.view(0, 1), C.view(rows, 1), stdlib::GemmBlock::small);
    const auto got = C.download();
    CHECK(std::ranges::count(got, 0.0f) == std::ptrdiff_t(got.size()));
}

TEST_CASE("gemm: large tiles give the same bits as small ones, at all edges") {
    struct Shape {
        std::uint32_t m, n, k;
    };
    using enum stdlib::GemmBlock;
    for (const Shape& shape : {Shape{1, 1, 1},
                               {128, 128, 16},
                               {129, 131, 33},
                               {127, 260, 47},
                               {300, 125, 64},
                               {5, 4, 100},
                               {130, 257, 0},
                               {257, 8, 31},
                               {1, 1000, 17}}) {
        const auto [m, n, k] = shape;
        INFO(m << " x " << n << " x " << k);
        const std::vector<float> a = random_elements<float>(m * k, 1), b = random_elements<float>(k * n, 2);
        const runtime::Device device = test::open_device({.schedule = std::to_string(m)});
        const auto A = device.upload(a, "A"), B = device.upload(b, "B");
        auto C = device.upload(std::vector<float>(m * n, NAN), "C");
        auto of_large = device.upload(std::vector<float>(m * n, NAN), "of_large");
        stdlib::gemm(device, A.view(m, k), B.view(k, n), C.view(m, n), small);
        stdlib::gemm(device, A.view(m, k), B.view(k, n), of_large.view(m, n), large);
        CHECK(C.download() == of_large.download());
    }
}

TEST_CASE("gemm: large tiles where there is one for each multiprocessor") {
    std::vector<emulator::LaunchTraffic> traffic;
    const runtime::Device device = runtime::Device::open({.device = "emulator", .threads = 2, .traffic = &traffic});
    const std::uint32_t n = 128 * device.properties().multiprocessors;
    const auto A = device.upload(std::vector<float>(128)), B = device.upload(std::vector<float>(n));
    auto C = device.buffer<float>(128 * n);
    const auto multiply = [&](std::uint32_t rows, std::uint32_t columns, std::uint32_t k, stdlib::GemmBlock block) {
        stdlib::gemm(device, A.slice(0, rows * k).view(rows, k), B.slice(0, k * columns).view(k, columns),
                     C.slice(0, rows * columns).view(rows, columns), block);
    };
    using enum stdlib::GemmBlock;
    multiply(128, n, 1, chosen);
    multiply(128, n - 128, 1, chosen);
    multiply(n, 64, 0, chosen);
    multiply(1, 1, 1, large);
    multiply(128, n, 1, small);
    const char* const kernels[] = {"gemm_tiled_large", "gemm_tiled", "gemm_tiled", "gemm_tiled_large", "gemm_tiled"};
    REQUIRE(traffic.size() == 5);
    for (int i = 0; i < 5; ++i) CHECK(traffic[std::size_t(i)].entry == kernels[i]);
}

TEST_CASE("sum and max of f32") { check_reductions<float>(); }
TEST_CASE("sum and max of f16") { check_reductions<half>(); }
TEST_CASE("sum and max of bf16") { check_reductions<bfloat16>(); }

TEST_CASE("max ignores NaN and handles infinities") {
    const runtime::Device device = test::open_device();
    std::vector<float> x(70, -3.0f);
    x[5] = std::numeric_limits<float>::quiet_NaN();
    CHECK(stdlib::max(device, device.upload(x, "x")) == -3.0f);
    x[69] = std::numeric_limits<float>::infinity();
    CHECK(stdlib::max(device, device.upload(x, "x")) == x[69]);
}

/// y[r] = the sum of r + 1 over the threads of the block, for four iterations of one loop.
const auto sums_in_a_loop = kernel("sums_in_a_loop", params("y"), [](Out<float> y) {
    for (auto round : range(4)) {
        f32 sum = stdlib::block_sum(cast<f32>(round + 1));
        if_(thread_id().x == 0, [&] { y[round] = sum; });
    }
});

TEST_CASE("block reductions may follow each other in any order of the warps") {
    for (const std::uint32_t seed : {0u, 1u, 2u, 3u, 4u}) {
        INFO("seed " << seed);
        const runtime::Device device = test::open_device({.schedule = std::to_string(seed) + ",lanes"});
        auto y = device.buffer<float>(4, "y");
        device.launch(sums_in_a_loop, runtime::grid(256, 256), y);
        CHECK(y.download() == std::vector<float>{256, 512, 768, 1024});
    }
}

TEST_CASE("the minimum of a warp, and conditional vector stores") {
    const auto minimum =
        kernel("least", params("x", "warp", "copy", "n"), [](In<float> x, Out<float> warp, Out<float> copy, u32 n) {
            const auto i = value(thread_id().x);
            warp[i] = stdlib::warp_min(value(f32(x[4 * i])));
            const auto lanes = stdlib::load_lanes<4>(x, i);
            stdlib::store_lanes_if(4 * i < n, copy, i, lanes);
            stdlib::store_lanes_if(i == 0, copy, n, stdlib::load_lanes<1>(x, n));
        });
    const runtime::Device device = test::open_device();
    std::vector<float> x(256), warp(64), copy(256, -1);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = float((i * 37 + 11) % 251);
    for (std::size_t i = 0; i < 64; ++i)
        for (std::size_t k = i / 32 * 32; k < i / 32 * 32 + 32; ++k)
            warp[i] = k % 32 ? std::min(warp[i], x[4 * k]) : x[4 * k];
    std::copy_n(x.begin(), 101, copy.begin());
    auto to = device.buffer<float>(64);
    auto copied = device.upload(std::vector<float>(256, -1));
    device.launch(minimum, runtime::Grid{{1}, {64}}, device.upload(x), to, copied, 100);
    CHECK(to.download() == warp);
    CHECK(copied.download() == copy);
}

TEST_CASE("running sums and broadcasts") {
    const auto scans =
        kernel("scans", params("x", "warp", "block", "last"),
               [](In<std::uint32_t> x, Out<std::uint32_t> warp, Out<std::uint32_t> block, Out<std::uint32_t> last) {
                   const auto i = value(global_id().x), mine = value(cast<u32>(x[i]));
                   warp[i] = stdlib::warp_inclusive_sum(mine);
                   for (auto round : range(2)) {
                       u32 sum = stdlib::block_inclusive_sum(mine);
                       block[i] = sum + round;
                   }
                   last[i] = stdlib::block_broadcast(mine, 33) + stdlib::warp_broadcast(mine, 5);
               });
    for (const std::uint32_t threads : {64u, 96u, 256u, 1024u}) {
        INFO(threads << " threads");
        const runtime::Device device = test::open_device({.schedule = std::to_string(threads) + ",lanes"});
        std::vector<std::uint32_t> x(threads * 2), warp(x.size()), block(x.size()), last(x.size());
        for (std::uint32_t i = 0; i < x.size(); ++i) {
            x[i] = i * i % 101;
            warp[i] = x[i] + (i % 32 ? warp[i - 1] : 0);
            block[i] = x[i] + (i % threads ? block[i - 1] : 0);
        }
        for (std::uint32_t i = 0; i < x.size(); ++i) last[i] = x[i / threads * threads + 33] + x[i / 32 * 32 + 5];
        for (auto& sum : block) ++sum;  // of the last iteration
        auto a = device.buffer<std::uint32_t>(x.size()), b = device.buffer<std::uint32_t>(x.size()),
             c = device.buffer<std::uint32_t>(x.size());
        device.launch(scans, runtime::grid(x.size(), threads), device.upload(x), a, b, c);
        CHECK(a.download() == warp);
        CHECK(b.download() == block);
        CHECK(c.download() == last);
    }
}

TEST_CASE("reductions reject unsupported blocks") {
    const runtime::Device device = test::open_device();
    auto y = device.buffer<float>(4, "y");
    CHECK_THROWS_WITH(device.launch(sums_in_a_loop, runtime::grid(33, 33), y),
                      Catch::Contains("a block of 33 threads, but the kernel needs whole warps"));
    CHECK_THROWS_WITH(device.launch(sums_in_a_loop, runtime::Grid{{1}, {16, 4}}, y),
                      Catch::Contains("the kernel needs one-dimensional blocks"));
}

TEST_CASE("launch helpers reject inconsistent sizes") {
    const runtime::Device device = test::open_device();
    auto small = device.buffer<float>(5, "small"), large = device.buffer<float>(6, "large");
    CHECK_THROWS_WITH(stdlib::saxpy(device, 1.0f, large, small), Catch::Contains("'x' is 6, and 'y' is 5"));
    CHECK_THROWS_WITH(stdlib::gemm(device, large.view(3, 2), large.view(3, 2), small.view(1, 5)),
                      Catch::Contains("gemm: 'B' is 3 x 2: its k is 3, and that of 'A' is 2"));
}
