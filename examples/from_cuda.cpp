// SPDX-License-Identifier: Apache-2.0
// docs/from-cuda.md: a CUDA C++ kernel translated literally to ikat. Each block sums its part of an array.
#include <ikat/ikat.hpp>

#include <cstdio>
#include <numeric>
#include <vector>

using namespace ikat;

// clang-format off
const auto block_sums = kernel("block_sums", params("x", "sums", "n"), [](In<float> x, Out<float> sums, u32 n) {
    Shared<float, 256> part;
    u32 t = thread_id().x, i = global_id().x;
    part[t] = x.load_if(i < n, i, 0);
    sync_block();
    for (int step = 128; step > 0; step /= 2) {       // the host's loop: unrolled
        if_(t < step, [&] { part[t] += part[t + step]; });
        sync_block();
    }
    if_(t == 0, [&] { sums[block_id().x] = part[0]; });
}).launch_bounds(256);

std::vector<float> sums_of(const std::vector<float>& host) {
    const auto n = std::uint32_t(host.size()), blocks = (n + 255) / 256;
    const Device device = Device::open();
    const auto x = device.upload(host);
    auto sums = device.buffer<float>(blocks);
    device.launch(block_sums, Grid{{blocks}, {256}}, x, sums, n);
    return device.download(sums);
}
// clang-format on

int main() try {
    std::vector<float> host(1000);
    std::iota(host.begin(), host.end(), 0.0f);
    const std::vector<float> sums = sums_of(host);
    float total = 0;
    for (float sum : sums) total += sum;
    std::printf("%zu blocks, together %g\n", sums.size(), double(total));
    return total == 499500 ? 0 : 1;
} catch (const ikat::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
