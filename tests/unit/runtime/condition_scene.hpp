// SPDX-License-Identifier: Apache-2.0
// Kernels, streams and buffers for tests of conditions in graphs.
#pragma once
#include <ikat/graph.hpp>
#include <ikat/ikat.hpp>

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace ikat::tests::graph_conditions {

using namespace runtime;

inline constexpr std::uint32_t size = 64;

inline const auto increment = kernel("increment", params("x"), [](InOut<float> x) { x[global_id().x] += 1.0f; });
inline const auto add_number =
    kernel("add_number", params("x", "number"),
           [](InOut<float> x, In<std::uint32_t> number) { x[global_id().x] += cast<float>(number[0u]); });
/// One less; the condition is whether anything is left.
inline const auto count_down =
    kernel("count_down", params("left", "more"), [](InOut<std::uint32_t> left, Condition more) {
        const u32 now = left[0u] - 1u;
        left[0u] = now;
        set_condition(more, now > 0u);
    });
inline const auto set_to = kernel("set_to", params("condition", "value"),
                                  [](Condition condition, u32 value) { set_condition(condition, value); });
inline const auto add_up = kernel("add_up", params("sum", "x"), [](Out<float> sum, In<float> x) {
    f32 total = 0.0f;
    for (auto i : range(size)) total += x[i];
    sum[0u] = total;
});
inline const auto write_past = kernel("write_past", params("x"), [](InOut<float> x) { x[global_id().x + 1u] = 0.0f; });

struct Scene {
    Device device;
    Stream stream = device.stream(), other = device.stream();
    Buffer<float> x = device.upload(std::vector<float>(size), "x"), y = device.upload(std::vector<float>(size), "y");
    Buffer<std::uint32_t> left = device.upload(std::vector<std::uint32_t>{5}, "left");
    Grid all = grid(size, 32), one{{1}, {1}};

    explicit Scene(std::string_view schedule = "0", std::uint64_t rounds = 0)
        : device(Device::open({.device = "emulator", .threads = 1, .graph_rounds = rounds, .schedule = schedule})) {}
    GraphExec exec(const std::function<void(const Queue&)>& f) const { return Graph::record(device, f).instantiate(); }
    float sum_of_x(const GraphExec& graph) {
        graph.launch(stream);
        stream.synchronize();
        return x.download()[size - 1];
    }
};

}  // namespace ikat::tests::graph_conditions
