// SPDX-License-Identifier: Apache-2.0
// clang-format off
// Kernels for tests/golden/ast, lower and dsl_errors: products of matrices.
#include <ikat/async.hpp>
#include <ikat/mma.hpp>

#include "tests/golden/kernels.hpp"

namespace ikat::tests {
namespace {

using M = Mma<16, 8, 16, bfloat16, float>;

const auto product = kernel("product", params("a", "b", "c", "n"), [](In<bfloat16x2> a, In<bfloat16x2> b, Out<float> c, u32 n) {
    M::C sums(0.0f);
    u32 lane = lane_id();
    for (auto i : range(n)) {
        M::A x = a.vec<4>(i * 32 + lane);
        M::B y = b.vec<2>(i * 32 + lane);
        sums = mma(x, y, sums);
    }
    c.vec<4>(lane) = sums * 2.0f;
    c[128] = cast<f32>(M::C::row(3) * 8 + M::C::column(3));
});

const auto product_of_some = kernel("product_of_some", params("a", "c"), [](In<bfloat16x2> a, Out<float> c) {
    M::A x;
    M::B y;
    x = a[0];
    y = a[1];
    M::C sums(0.0f);
    if_(lane_id() < 16, [&] { sums = mma(x, y, 1.0f); });
    if_(warp_id() == 1, [&] { sums = mma(x, y, sums); });
    c[M::C::row(0)] = sums[0];
});

const auto matrices_of_the_wrong = kernel("matrices_of_the_wrong", params("x", "y"), [](In<half> x, Out<half2> y) {
    Shared<half, 64> s;
    u32 t = thread_id().x;
    y[t] = load_matrix<1>(x[t * 8])[0];
    y[t] = load_matrix<1>(s[4])[0];
    y[M::C::row(4)] = load_matrix<1>(s[8])[0];
});

const auto matrices_in_flight = kernel("matrices_in_flight", params("x", "y"), [](In<half> x, Out<half2> y) {
    Shared<half, 256> s;
    u32 t = thread_id().x;
    copy_async<16>(s[t * 8], x[t * 8]);
    y[t] = load_matrix<1>(s[t * 8])[0];
    copy_wait();
});

const KernelRegistration mma_kernels[] = {
    {"product", product},
    {"product_of_some", product_of_some},
    {"matrices_of_the_wrong", matrices_of_the_wrong},
    {"matrices_in_flight", matrices_in_flight},
};

}  // namespace
}  // namespace ikat::tests
