// SPDX-License-Identifier: Apache-2.0
// Kernels for tests/golden/lower: each the smallest that shows one idea of SSA construction.
#include "tests/golden/kernels.hpp"

namespace ikat::tests {
namespace {

const auto ssa_if_else = kernel("ssa_if_else", params("y", "n"), [](Out<std::uint32_t> y, u32 n) {
    u32 both = 0, one = 1, none = 2;
    if_(n < 7, [&] {
        both = n;
        one = n + 1;
    }).else_([&] { both = 5; });
    y[0] = both + one + none;
});

const auto ssa_assigned_inside = kernel("ssa_assigned_inside", params("y", "n"), [](Out<std::uint32_t> y, u32 n) {
    if_(n < 7, [&] {
        u32 inner = n;
        if_(n == 3, [&] { inner = 0; });
        y[0] = inner;
    });
});

const auto ssa_while = kernel("ssa_while", params("y", "n"), [](Out<std::uint32_t> y, u32 n) {
    u32 steps = 0, kept = n;
    while_([&] { return n > 1; },
           [&] {
               n = n / 2;
               ++steps;
           });
    y[0] = steps + kept;
});

const auto ssa_range = kernel("ssa_range", params("y", "b", "e"), [](Out<std::int32_t> y, i32 b, i32 e) {
    i32 sum = 0;
    for (auto i : range(b, e, 3)) sum += i;
    y[0] = sum;
});

const auto ssa_unrolled = kernel("ssa_unrolled", params("y", "n"), [](Out<std::uint32_t> y, u32 n) {
    for (auto i : range(n).unroll(2)) y[i] = i;
});

const auto ssa_break_continue =
    kernel("ssa_break_continue", params("x", "y", "n"), [](In<std::uint32_t> x, Out<std::uint32_t> y, u32 n) {
        u32 sum = 0;
        for (auto i : range(n)) {
            u32 v = x[i];
            if_(v == 0, [&] { continue_(); });
            if_(v > 9, [&] { break_(); });
            sum += v;
        }
        y[0] = sum;
    });

const auto ssa_nested = kernel("ssa_nested", params("y", "n"), [](Out<std::uint32_t> y, u32 n) {
    u32 outer = 0, total = 0;
    while_([&] { return outer < n; },
           [&] {
               u32 inner = 0;
               while_([&] { return inner < outer; },
                      [&] {
                          total += inner;
                          ++inner;
                      });
               ++outer;
           });
    y[0] = total;
});

const auto ssa_leaves = kernel("ssa_leaves", params("y", "n"), [](Out<std::uint32_t> y, u32 n) {
    u32 v = 0;
    if_(n < 7, [&] { return_(); }).else_([&] { v = 1; });
    y[0] = v;
});

const auto ssa_swap = kernel("ssa_swap", params("s"), [](InOut<float> s) {
    auto t = s[0];
    s[0] = s[1];
    s[1] = t;
});

const auto ssa_vector = kernel("ssa_vector", params("x", "y", "i"), [](In<float> x, Out<float> y, u32 i) {
                            auto v = x.vec<4>(i);
                            y.vec<2>(i) = {v[3], v[0]};
                        }).require(aligned<16>("x"), aligned<8>("y"));

const auto ssa_shared = kernel("ssa_shared", params("y"), [](Out<float> y) {
    Shared<float, 4, 8> tile;
    const auto t = thread_id();
    tile[t.y, t.x] = 1;
    sync_block();
    y[t.x] = tile[t.x, t.y];
});

const KernelRegistration lower_kernels[] = {
    {"ssa_if_else", ssa_if_else},   {"ssa_assigned_inside", ssa_assigned_inside},
    {"ssa_while", ssa_while},       {"ssa_range", ssa_range},
    {"ssa_unrolled", ssa_unrolled}, {"ssa_break_continue", ssa_break_continue},
    {"ssa_nested", ssa_nested},     {"ssa_leaves", ssa_leaves},
    {"ssa_swap", ssa_swap},         {"ssa_vector", ssa_vector},
    {"ssa_shared", ssa_shared},
};

}  // namespace
}  // namespace ikat::tests
