// SPDX-License-Identifier: Apache-2.0
// The kernels of tests/golden/ast, one idea each.
#include "tests/golden/kernels.hpp"

namespace ikat::tests {
namespace {

const auto saxpy = kernel("saxpy", params("a", "x", "y", "n"), [](f32 a, In<float> x, InOut<float> y, u32 n) {
    u32 i = global_id().x;
    if_(i < n, [&] { y[i] = fma(a, x[i], y[i]); });
});

const auto swap_elements = kernel("swap_elements", params("s", "i", "j"), [](InOut<float> s, u32 i, u32 j) {
    auto t = s[i];
    s[i] = s[j];
    s[j] = t;
});

const auto squarings = kernel("squarings", params("y"), [](InOut<float> y) {
    auto a = y[0];
    auto a2 = a * a;
    auto a4 = a2 * a2;
    auto a8 = a4 * a4;
    y[1] = a8 * a8;
});

const auto operand_order =
    kernel("operand_order", params("x", "y", "z", "n"), [](In<float> x, In<float> y, InOut<float> z, u32 n) {
        z[n] = x[n] * y[n + 1] + (x[n + 2] - y[n + 3]) * cast<f32>(n);
    });

const KernelRegistration registered[] = {
    {"saxpy", saxpy},
    {"swap_elements", swap_elements},
    {"squarings", squarings},
    {"operand_order", operand_order},
};

}  // namespace
}  // namespace ikat::tests
