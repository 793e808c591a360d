// SPDX-License-Identifier: Apache-2.0
// Kernels with one mistake each, and some that look wrong but are not, for tests/golden/dsl_errors:
// control flow, and host variables that change inside regions.
#include <utility>
#include <vector>

#include "tests/golden/kernels.hpp"

namespace ikat::tests {
namespace {

// Locations are shown as lines, so each mistake has its own line.
// clang-format off

const auto empty_regions = kernel("empty_regions", params("y", "n"), [](Out<float> y, u32 n) {
    if_(n > 3, [&] { return; });
    if_(n > 4, [&] { y[0] = 1; }).else_([&] {});
    for (auto i : range(n)) { (void)i; }
    while_([&] { return n > 0; }, [&] {});
});

const auto native_break = kernel("native_break", params("y", "n"), [](Out<float> y, u32 n) {
    for (auto i : range(n)) {
        y[i] = 1;
        break;
    }
    y[0] = 2;
});

const auto native_return = kernel("native_return", params("y", "n"), [](Out<float> y, u32 n) {
    for (auto i : range(n))
        for (auto k : range(i)) {
            y[k] = 1;
            return;
        }
});

const auto after_jumps = kernel("after_jumps", params("y", "n"), [](Out<float> y, u32 n) {
    for (auto i : range(n)) {
        break_();
        y[i] = 1;
    }
    for (auto i : range(n)) {
        if_(i > 3, [&] { continue_(); }).else_([&] { return_(); });
        y[i] = 2;
    }
    return_();
    y[0] = 3;
});

const auto jumps_outside = kernel("jumps_outside", params("y"), [](Out<float> y) {
    y[0] = 1;
    break_();
    continue_();
});

const auto constant_condition = kernel("constant_condition", params("y", "n"), [](Out<float> y, u32 n) {
    auto outside = n > 0;
    while_([&] { return outside; },
           [&] {
               y[0] = 1;
               n -= 1;
           });
});

const auto host_state = kernel("host_state", params("y", "n"), [](Out<float> y, u32 n) {
    int k = 0;
    if_(n > 3, [&] {
        y[0] = 1;
        y[k++] = 2;
    });
    for (auto i : range(n)) { y[i] = k++; }
});

const auto host_state_of_templates = kernel("host_state_of_templates", params("y", "n"), [](Out<float> y, u32 n) {
    for (int k = 0; k < 3; ++k) if_(n > 3, [&] { y[k] = k; });
});

const auto host_state_shorter = kernel("host_state_shorter", params("y", "n"), [](Out<float> y, u32 n) {
    bool first = true;
    if_(n > 3, [&] {
        y[0] = 1;
        if (first) if_(n > 4, [&] { y[1] = 2; }).else_([&] { y[2] = 3; });
        first = false;
    });
    int rounds = 0;
    while_([&] { return ++rounds < 2 ? n > 3 : n > 4; }, [&] { n -= 1; });
    y[3] = 4;
});

const auto host_variables = kernel("host_variables", params("y", "n"), [](Out<float> y, u32 n) {
    int index = 0, other = 0, third = 0, fourth = 0;
    std::vector<int> list;
    if_(n > 3, [&] { index = 5; y[0] = 1; });
    if_(n > 3, [&] { y[0] = 1; }).else_([&] { other = 1; y[0] = 2; });
    if_(n > 3, [&] { y[0] = 1; }).else_if([&] { third = 1; return n > 2; }, [&] { y[0] = 2; });
    while_([&] { return n > 3; }, [&] { fourth = 7; n -= 1; });
    for (auto k : range(n))
        if_(k > 3, [&] { if_(k > 4, [&] { list = {1, 2}; y[k] = 1; }); });
    y[index + other + third + fourth + int(list.size())] = 2;
});

const auto own_host_variables = kernel("own_host_variables", params("y", "n"), [](Out<float> y, u32 n) {
    int depth = 0;
    if_(n > 3, [&] {
        int k = 0;
        for (; k < 4; ++k) y[k] = k;
        ++depth;
        if_(n > 4, [&] { y[k + depth] = 1; });
        --depth;
        f32 sum = 0;
        Regs<f32, 4> sums(0);
        sum += sums[1];
        y[k] = sum;
    });
});

const auto late_else = kernel("late_else", params("y", "n"), [](Out<float> y, u32 n) {
    auto branch = if_(n > 3, [&] { y[0] = 1; });
    y[1] = 2;
    std::move(branch).else_([&] { y[0] = 3; });
});

const auto steps = kernel("steps", params("y", "n"), [](InOut<float> y, u32 n) {
    for (auto i : range(0, n, 0)) y[i] = 1;
    f32 v = shuffle_down(y[0], 1, all_lanes, 12);
    y[1] = v;
});

const auto several = kernel("several", params("y", "n"), [](Out<float> y, u32 n) {
    y[0] = 1e300;
    if_(n > 3, [&] {});
    break_();
});

const auto taken_else = kernel("taken_else", params("y", "n"), [](Out<float> y, u32 n) {
    auto branch = if_(n > 3, [&] { y[0] = 1; });
    std::move(branch).else_if([&] { return n > 2; }, [&] { y[0] = 2; });
    std::move(branch).else_([&] { y[0] = 3; });
    std::move(branch).else_if([&] { return n > 1; }, [&] { y[0] = 4; });
});

const auto endless = kernel("endless", params("y"), [](InOut<float> y) {
    for (;;)
        y[0] += 1;
});

#define ENTRY(kernel) {#kernel, kernel}
const KernelRegistration errors_in_control[] = {
    ENTRY(empty_regions), ENTRY(native_break), ENTRY(native_return), ENTRY(after_jumps), ENTRY(jumps_outside),
    ENTRY(constant_condition), ENTRY(host_state), ENTRY(host_state_of_templates), ENTRY(host_state_shorter),
    ENTRY(host_variables), ENTRY(own_host_variables), ENTRY(late_else), ENTRY(steps), ENTRY(several), ENTRY(taken_else),
    ENTRY(endless),
};
#undef ENTRY

// clang-format on

}  // namespace
}  // namespace ikat::tests
