// SPDX-License-Identifier: Apache-2.0
// Kernels for tests/golden: expressions of several lanes, next to the same by elements.
#include "tests/golden/kernels.hpp"

namespace ikat::tests {
namespace {

const auto lanes = kernel("lanes", params("a", "x", "y", "i"), [](f32 a, In<float> x, InOut<float> y, u32 i) {
                       y.vec<4>(i) = a * x.vec<4>(i) + y.vec<4>(i);
                   }).require(aligned<16>("x"), aligned<16>("y"));

const auto lane_order = kernel("lane_order", params("x", "y", "i"), [](In<float> x, InOut<float> y, u32 i) {
    // Reads are in source order, whatever the compiler evaluates first, even if they are used later.
    f32 scale = x[0];
    Regs<f32, 2> sums(0);
    auto kept = (x[1] + scale) * x.vec<2>(i) + y.vec<2>(i) * sums;
    scale = 2;
    sums = fma(scale, kept, sums.reversed());
    y.vec<2>(i) = kept - sums;
});

const KernelRegistration registered[] = {{"lanes", lanes}, {"lane_order", lane_order}};

// ---- mistakes

const auto bad_lanes =
    kernel("bad_lanes", params("c", "x", "y"), [](InOut<std::uint32_t> c, In<float> x, InOut<float> y) {
        y.vec<4>(0) = shuffle_xor(x[0], 1) * x.vec<4>(1);
        y.vec<2>(0) = cast<f32>(c.vec<2>(atomic_add(c[0], 1)) + 1);
        y.vec<4>(0) = x.vec<4>(0) * 1e60;
        y.vec<4>(0) = x.vec<4>(0) * 1e60;
        y.vec<4>(0) = select(x[0] > 0, x.vec<4>(2), 0);
        y[0] = x.vec<4>(0)[4];
        y[0] = (x.vec<4>(0) * 2)[-1];
        // These are right.
        auto old = atomic_add(c[0], 1);
        auto named = x.vec<4>(2) * cast<f32>(old);
        y.vec<4>(0) = select(named > 0, named, -1);
        y.vec<4>(1) = x.vec<4>(old);
    });

const auto kept_lanes = kernel("kept_lanes", params("x", "y", "n"), [](In<float> x, InOut<float> y, u32 n) {
    const auto twice = [&](const auto& v) { return v * 2; };
    auto early = twice(x.vec<4>(0));
    if_(n > 1, [&] { y.vec<4>(0) = early; });
    y.vec<4>(1) = early;
    Regs<f32, 4> outside;
    if_(n > 2, [&] {
        outside = early;
        auto inside = x.vec<4>(n) + 1;
        y.vec<4>(2) = inside;
        outside = inside;
    }).else_([&] { outside = 0; });
    y.vec<4>(3) = outside;
});

const KernelRegistration more[] = {{"bad_lanes", bad_lanes}, {"kept_lanes", kept_lanes}};

}  // namespace
}  // namespace ikat::tests
