// SPDX-License-Identifier: Apache-2.0
// Two kernels that were compiled at build time: nothing is captured or compiled here.
#include <ikat/ikat.hpp>
#include <waves_kernels.hpp>

#include <cstdio>
#include <vector>

using namespace ikat;

int main() try {
    const std::uint32_t n = 1000;
    std::vector<float> host(n);
    for (std::uint32_t i = 0; i < n; ++i) host[i] = float(i % 8);  // small integers: every result is exact

    const auto device = Device::open();
    const auto scale = runtime::load(device, waves_kernels::scale);  // the image for this device
    const auto smooth = runtime::load(device, waves_kernels::smooth);
    auto x = device.upload(host, "x"), y = device.buffer<float>(n, "y");
    device.launch(scale, waves_kernels::scale.name, grid(n / 4, 128), 4.0f, x, n);
    device.launch(smooth, waves_kernels::smooth.name, grid(n, 128), x, y, n);

    const std::vector<float> got = device.download(y);
    bool right = true;
    for (std::uint32_t i = 0; i < n; ++i) {
        const float left = i > 0 ? host[i - 1] : 0, after = i + 1 < n ? host[i + 1] : 0;
        right = right && got[i] == 2 * host[i] + left + after;
    }
    for (const EmbeddedImage& image : waves_kernels::smooth.images)
        std::printf("smooth for %.*s: %zu bytes of PTX, %s machine code\n", int(image.target.size()),
                    image.target.data(), image.ptx.size(), image.cubin.empty() ? "no" : "and");
    std::printf("%s\n", right ? "right" : "WRONG");
    return right ? 0 : 1;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
