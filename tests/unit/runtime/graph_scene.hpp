// SPDX-License-Identifier: Apache-2.0
// Kernels, streams and buffers for tests of graphs.
#pragma once
#include <ikat/graph.hpp>
#include <ikat/ikat.hpp>
#include <ikat/work.hpp>

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace ikat::tests::graphs {

using namespace runtime;
using Floats = std::vector<float>;

inline constexpr std::uint32_t size = 64;

inline const auto scale =
    kernel("scale", params("y", "x", "by", "n"), [](Out<float> y, In<float> x, f32 by, u32 count) {
        const u32 i = global_id().x;
        return_if(i >= count);
        y[i] = x[i] * by;
    });
inline const auto increment = kernel("increment", params("x", "n"), [](InOut<float> x, u32 count) {
    const u32 i = global_id().x;
    return_if(i >= count);
    x[i] += 1.0f;
});
inline const auto multiply =
    kernel("multiply", params("x", "by"), [](InOut<float> x, f32 by) { x[global_id().x] *= by; });
inline const auto add_number =
    kernel("add_number", params("x", "number"),
           [](InOut<float> x, In<std::uint32_t> number) { x[global_id().x] += cast<float>(number[0u]); });
/// list[0] is how many numbers follow.
inline const auto append = kernel("append", params("list", "number"), [](InOut<std::uint32_t> list, u32 number) {
    const u32 count = list[0u] + 1u;
    list[count] = number;
    list[0u] = count;
});

struct Scene {
    Device device;
    Stream stream = device.stream(), other = device.stream();
    Buffer<float> x = device.upload(Floats(size, 1.0f), "x"), y = device.upload(Floats(size), "y");
    Grid all = grid(size, 32);

    explicit Scene(std::string_view schedule = "0", std::string_view check = {})
        : device(Device::open({.device = "emulator", .threads = 1, .schedule = schedule, .check = check})) {}
};

}  // namespace ikat::tests::graphs
