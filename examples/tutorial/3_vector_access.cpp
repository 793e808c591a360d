// SPDX-License-Identifier: Apache-2.0
// Step 3 of the tutorial: four elements with one instruction, what that requires of the arguments, and the tail.
#include <ikat/compile.hpp>
#include <ikat/ikat.hpp>

#include <cstdio>
#include <vector>

using namespace ikat;

const auto scale = kernel("scale", params("factor", "x", "n"),
                          [](f32 factor, InOut<float> x, u32 n) {
                              for (auto i : grid_stride(n / 4)) x.vec<4>(i) = factor * x.vec<4>(i);
                          })
                       .require(multiple_of<4>("n"), aligned<16>("x"))
                       .launch_bounds(256);

const auto scale_any = kernel("scale_any", params("factor", "x", "n"),
                              [](f32 factor, InOut<float> x, u32 n) {
                                  for (auto i : grid_stride(n / 4)) x.vec<4>(i) = factor * x.vec<4>(i);
                                  u32 last = n / 4 * 4 + global_id().x;  // at most three are left
                                  if_(last < n, [&] { x[last] *= factor; });
                              })
                           .require(aligned<16>("x"))
                           .launch_bounds(256);

int main() try {
    const std::uint32_t n = 1003;
    std::vector<float> host(n);
    for (std::uint32_t i = 0; i < n; ++i) host[i] = float(i);

    const auto device = Device::open();
    auto x = device.upload(host, "x");
    device.launch(scale_any, grid(n / 4, 256), 2.0f, x, n);
    bool right = true;
    const std::vector<float> result = device.download(x);
    for (std::uint32_t i = 0; i < n; ++i) right = right && result[i] == 2 * host[i];
    std::printf("scaled: %s\n", right ? "right" : "WRONG");

    const std::string ptx = compile(scale.ast()).ptx;
    const std::size_t load = ptx.find("ld.global");
    std::printf("%s\n", ptx.substr(load, ptx.find('\n', load) - load).c_str());

    try {
        device.launch(scale, grid(n / 4, 256), 2.0f, x, n);
        return 1;
    } catch (const Error& error) { std::printf("%s\n", error.what()); }
    return right ? 0 : 1;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
