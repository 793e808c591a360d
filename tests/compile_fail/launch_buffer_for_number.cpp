// SPDX-License-Identifier: Apache-2.0
// A buffer where the kernel has a number.
// expect: launch: the kernel's parameter is a scalar: pass a host number
#include <ikat/ikat.hpp>

using namespace ikat;
const auto scale = kernel("scale", params("a", "x", "y", "n"), [](f32 a, In<float> x, Out<float> y, u32 n) {
    u32 i = global_id().x;
    if_(i < n, [&] { y[i] = a * x[i]; });
});

void run(const Device& device, const Buffer<float>& x, Buffer<float>& y, const Buffer<double>& wide) {
    static_cast<void>(wide);
    device.launch(scale, grid(4, 32), y, x, y, 4);
}
