// SPDX-License-Identifier: Apache-2.0
#include "stdlib/elementwise/saxpy.hpp"

#include "stdlib/spec/families.hpp"

namespace ikat::stdlib {

const Kernel<f32, In<float>, InOut<float>, u32>& saxpy() {
    static const auto made = kernel("saxpy", params("a", "x", "y", "n"), [](f32 a, In<float> x, InOut<float> y, u32 n) {
                                 require_linear_grid();
                                 u32 i = global_id().x;
                                 if_(i < n, [&] { y[i] = fma(a, x[i], y[i]); });
                             }).launch_bounds(256);
    return made;
}
// Without a contract about sizes, as other kernels have: with this one the pages show what the emulator finds.

runtime::Grid saxpy_grid(std::uint64_t n, std::uint32_t threads) { return runtime::grid(n, threads); }

// ---- the recipe

constexpr Recipe saxpy_recipe{
    .call = "saxpy(queue, a, x, y)",
    .kernels = {{"y = a x + y", IKAT_KERNEL(saxpy()),
                 [](const Call& call) { return saxpy_grid(call["n"], call.threads(256)); }}},
    .document = "x and y have at least n elements. Each element is one fused multiply-add. One thread per element.",
    .shapes = "x: n, y: n",
    .reference = reference::saxpy,
    .traffic = "3 E s"};

}  // namespace ikat::stdlib
