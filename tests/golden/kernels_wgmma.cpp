// SPDX-License-Identifier: Apache-2.0
// clang-format off
// Kernels for tests/golden/lower and dsl_errors: products of matrices by a warpgroup.
#include <ikat/async.hpp>
#include <ikat/mma.hpp>

#include "tests/golden/kernels.hpp"

namespace ikat::tests {
namespace {

using W = Wgmma<64, 8, 16, bfloat16, float>;

// One group is in flight across iterations.
const auto pipelined_product = kernel("pipelined_product", params("y", "n"), [](Out<float> y, u32 n) {
    Shared<bfloat16, 4, 64, 64> a;
    Shared<bfloat16, 4, 8, 64> b;
    W::C sums(0.0f);
    for (auto i : range(n)) {
        const auto x = k_major<128>(a[i % 4, 0, 0]), w = k_major<128>(b[i % 4, 0, 0]);
        wgmma_fence();
        for (int k = 0; k < 64; k += W::k) wgmma(sums, x.offset(2 * k), w.offset(2 * k));
        wgmma_commit();
        wgmma_wait<1>();
    }
    wgmma_wait<0>();
    y[thread_id().x] = sums[0];
});

const auto uses_of_a_warpgroup = kernel("uses_of_a_warpgroup", params("x", "y", "n"), [](In<bfloat16x2> x, Out<float> y, u32 n) {
    Shared<bfloat16, 16, 64> a;
    Shared<bfloat16, 16, 64> b;
    W::A held;
    W::C sums;
    for (int r = 0; r < 4; ++r) held[r] = x[r];
    wgmma_fence();
    wgmma(sums, -mn_major<128>(a[0, 0], 0), mn_major<32>(b[0, 16], 512, 256), false);
    wgmma(sums, held, mn_major<0>(b[0, 0], 128).offset(16 * n), n > 1);
    wgmma_commit();
    wgmma_wait<0>();
    y[0] = sums[0];
});

const auto products_in_flight = kernel("products_in_flight", params("x", "y", "n"), [](In<bfloat16x2> x, Out<float> y, u32 n) {
    Shared<bfloat16, 64, 64> a;
    Shared<bfloat16, 8, 64> b;
    const auto to = k_major<128>(a[0, 0]), of = k_major<128>(b[0, 0]);
    W::C sums(0.0f), others(0.0f), thirds(0.0f);
    W::A held;
    for (int r = 0; r < 4; ++r) held[r] = x[r];
    wgmma_fence();
    for (auto i : range(n)) {
        wgmma(sums, to, of.offset(i * 0));
        wgmma_commit();
        wgmma_wait<1>();
    }
    y[0] = sums[0];
    wgmma_wait<0>();
    wgmma(others, held, of);
    held[0] = x[0];
    wgmma_commit();
    wgmma_wait<0>();
    wgmma(others, held, of);
    wgmma_commit();
    wgmma_wait<0>();
    if_(n > 3, [&] {
        W::C inner;
        wgmma_fence();
        wgmma(inner, to, of, false);
        wgmma_commit();
    });
    wgmma(thirds, to, of);
    wgmma_wait<0>();
});

const auto sums_of_nothing = kernel("sums_of_nothing", params("y"), [](Out<float> y) {
    Shared<bfloat16, 64, 64> a;
    Shared<bfloat16, 8, 64> b;
    W::C sums;
    wgmma_fence();
    wgmma(sums, k_major<128>(a[0, 0]), k_major<128>(b[0, 0]));
    wgmma_commit();
    wgmma_wait<0>();
    y[thread_id().x] = sums[0];
});

const auto warps_apart = kernel("warps_apart", params("y"), [](Out<float> y) {
    Shared<bfloat16, 64, 64> a;
    Shared<bfloat16, 8, 64> b;
    const auto to = k_major<128>(a[0, 0]), of = k_major<128>(b[0, 0]);
    W::C sums(0.0f);
    if_(warp_id() == 1, [&] {
        wgmma_fence();
        wgmma(sums, to, of);
    });
    if_(warp_id() / 4 == 1, [&] {
        wgmma_commit();
        wgmma_wait<0>();
    });
    y[thread_id().x] = sums[0];
});

const auto matrices_elsewhere = kernel("matrices_elsewhere", params("x", "n"), [](InOut<bfloat16> x, u32 n) {
    Shared<bfloat16, 64, 64> a;
    W::C sums(0.0f);
    wgmma_fence();
    const auto misaligned = k_major<128>(a[n, 4]);
    const auto in_global_memory = k_major<128>(x[0]);
    const auto narrow = k_major<0>(a[0, 0], 128, 8);
    const auto moved = k_major<128>(a[0, 0]).offset(8);
    wgmma(sums, misaligned, in_global_memory);
    wgmma(sums, narrow, moved);
    wgmma_commit();
    wgmma_wait<0>();
});

const KernelRegistration wgmma_kernels[] = {
    {"matrices_elsewhere", matrices_elsewhere},   {"pipelined_product", pipelined_product},
    {"products_in_flight", products_in_flight},   {"sums_of_nothing", sums_of_nothing},
    {"uses_of_a_warpgroup", uses_of_a_warpgroup}, {"warps_apart", warps_apart},
};

}  // namespace
}  // namespace ikat::tests
