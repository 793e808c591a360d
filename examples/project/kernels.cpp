// SPDX-License-Identifier: Apache-2.0
// The kernels of the project: ikat_add_kernels() embeds their PTX into the program, golden_test compares it with files.
#include <ikat/dsl.hpp>

using namespace ikat;

namespace {

const auto scale = kernel("scale", params("factor", "x", "n"), [](f32 factor, InOut<float> x, u32 n) {
                       for (auto i : grid_stride(n / 4)) x.vec<4>(i) = factor * x.vec<4>(i);
                   }).require(multiple_of<4>("n"), aligned<16>("x"));
IKAT_EXPORT_KERNEL(scale)

const auto smooth = kernel("smooth", params("x", "y", "n"), [](In<float> x, Out<float> y, u32 n) {
    u32 i = global_id().x;
    return_if(i >= n);
    f32 left = x.load_if(i > 0, i - 1, 0), right = x.load_if(i + 1 < n, i + 1, 0);
    y[i] = fma(x[i], 0.5, (left + right) * 0.25);
});
IKAT_EXPORT_KERNEL(smooth)

}  // namespace
