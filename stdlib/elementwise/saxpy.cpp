// SPDX-License-Identifier: Apache-2.0
#include "stdlib/elementwise/saxpy.hpp"

#include "stdlib/size.hpp"

namespace ikat::stdlib {

const Kernel<f32, In<float>, InOut<float>, u32>& saxpy() {
    static const auto made = kernel("saxpy", params("a", "x", "y", "n"), [](f32 a, In<float> x, InOut<float> y, u32 n) {
                                 require_linear_grid();
                                 u32 i = global_id().x;
                                 if_(i < n, [&] { y[i] = fma(a, x[i], y[i]); });
                             }).launch_bounds(256);
    return made;
}

runtime::Grid saxpy_grid(std::uint64_t n, std::uint32_t threads) { return runtime::grid(n, threads); }

void saxpy(const runtime::Queue& queue, float a, const runtime::Buffer<float>& x, runtime::Buffer<float>& y) {
    require_equal_sizes("saxpy", "x", x.size(), "y", y.size());
    if (x.size() == 0) return;
    queue.launch(saxpy(), saxpy_grid(x.size()), a, x, y, u32_size("saxpy", "x", x.size()));
}

}  // namespace ikat::stdlib
