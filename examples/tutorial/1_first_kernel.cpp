// SPDX-License-Identifier: Apache-2.0
// Step 1 of the tutorial: a kernel, a launch, and what happens when the kernel is wrong.
#include <ikat/ikat.hpp>

#include <cstdio>
#include <vector>

using namespace ikat;

const auto axpy = kernel("axpy", params("a", "x", "y", "n"), [](f32 a, In<float> x, InOut<float> y, u32 n) {
    u32 i = global_id().x;
    if_(i < n, [&] { y[i] = a * x[i] + y[i]; });
});

const auto careless = kernel("careless", params("x", "y"), [](In<float> x, Out<float> y) {
    u32 i = global_id().x;
    y[i] = 2 * x[i];
});

int main() try {
    const std::uint32_t n = 1000;
    std::vector<float> host_x(n), host_y(n, 1.0f);
    for (std::uint32_t i = 0; i < n; ++i) host_x[i] = float(i);

    const auto device = Device::open();
    const auto x = device.upload(host_x, "x");
    auto y = device.upload(host_y, "y");
    device.launch(axpy, grid(n, 256), 3.0f, x, y, n);

    bool right = true;
    const std::vector<float> result = device.download(y);
    for (std::uint32_t i = 0; i < n; ++i) right = right && result[i] == 3 * host_x[i] + 1;
    std::printf("y[999] = %g, all %s\n", double(result[999]), right ? "right" : "WRONG");

    if (device.properties().kind != DeviceKind::Emulator) return right ? 0 : 1;
    try {
        device.launch(careless, grid(n, 256), x, y);
        return 1;  // 4 blocks of 256 threads are 1024: the last 24 must not get away with it
    } catch (const KernelError& error) { std::printf("%s\n", error.what()); }
    return right ? 0 : 1;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
