// SPDX-License-Identifier: Apache-2.0
// A floating-point number for an integer parameter.
// expect: launch: a floating-point number does not become an integer parameter: convert it
#include <ikat/ikat.hpp>

using namespace ikat;
const auto scale = kernel("scale", params("a", "x", "y", "n"), [](f32 a, In<float> x, Out<float> y, u32 n) {
    u32 i = global_id().x;
    if_(i < n, [&] { y[i] = a * x[i]; });
});

void run(const Device& device, const Buffer<float>& x, Buffer<float>& y, const Buffer<double>& wide) {
    static_cast<void>(wide);
    device.launch(scale, grid(4, 32), 2.0f, x, y, 4.0);
}
