// SPDX-License-Identifier: Apache-2.0
// Kernels for tests/golden/ast: control flow, threads, contracts.
#include "tests/golden/kernels.hpp"

namespace ikat::tests {
namespace {

const auto branches = kernel("branches", params("y", "n"), [](Out<std::uint32_t> y, u32 n) {
    if_(n < 1, [&] { y[0] = 1; })
        .else_if([&] { return n * 2 < 7; }, [&] { y[0] = 2; })
        .else_if([&] { return n < 9; }, [&] { y[0] = 3; })
        .else_([&] { y[0] = 4; });
    if_(n > 3, [&] { y[1] = 1; }).else_([&] { y[1] = 2; });
});

const auto loops = kernel("loops", params("x", "y", "n"), [](In<float> x, Out<float> y, u32 n) {
    f32 sum = 0;
    for (auto i : range(n)) sum += x[i];
    for (auto i : range(thread_id().x, n, block_dim().x).unroll(4)) sum += x[i];
    for (auto i : range(cast<i32>(n), 10)) sum += cast<f32>(i);
    for (auto i : range(0, 16, 4))
        for (int k = 0; k < 2; ++k) sum += x[i + k];  // unrolled by the host
    for (auto i : grid_stride(n)) y[i] = sum;
});

const auto while_loop = kernel("while_loop", params("y", "n"), [](Out<std::uint32_t> y, u32 n) {
    u32 steps = 0;
    while_([&] { return n != 1; },
           [&] {
               n = select((n & 1) == 0, n / 2, n * 3 + 1);
               ++steps;
               if_(steps > 100, [&] { break_(); });
           });
    y[0] = steps;
});

const auto leaving = kernel("leaving", params("x", "y", "n"), [](In<float> x, InOut<float> y, u32 n) {
    u32 i = global_id().x;
    return_if(i >= n);
    for (auto k : range(n)) {
        if_(x[k] < 0, [&] { continue_(); });
        if_(x[k] > 9, [&] { break_(); });
        if_(x[k] == 5, [&] { return_(); });
        y[i] += x[k];
    }
});

const auto ids = kernel("ids", params("y"), [](Out<std::uint32_t> y) {
    y[0] = thread_id().x + thread_id().y + thread_id().z;
    y[1] = block_id().x + block_dim().y + grid_dim().z;
    y[2] = global_id().y;
    y[3] = lane_id() + warp_id();
});

const auto warp = kernel("warp", params("x", "y"), [](In<float> x, Out<float> y) {
    f32 v = x[thread_id().x];
    for (int distance = 16; distance > 0; distance /= 2) v += shuffle_down(v, distance);
    f32 up = shuffle_up(v, 1) + v;
    f32 first = shuffle_idx(v, 0);
    f32 other = x[0] * 2 + shuffle_xor(v, lane_id() & 1, 0xffffffff);
    pred some = any(v > 0), every = all(v > 0);
    u32 lanes = ballot(some & every);
    sync_warp();
    sync_warp(lanes);
    y[lanes] = up + first + other;
});

const auto atomics = kernel("atomics", params("c", "f", "x"), [](InOut<std::uint32_t> c, InOut<float> f, In<float> x) {
    Shared<std::int32_t, 2> s;
    atomic_add(c[0], 1);
    u32 place = atomic_add(c[1], 2u, Order::AcquireRelease, Scope::Sys);
    f[atomic_exchange(c[2], place)] = x[place];
    atomic_add(f[1], x[1]);
    atomic_min(s[0], -1);
    atomic_max(s[1], cast<i32>(x[0]));
    u32 old = atomic_cas(c[3], 0, place);
    c[4] = old;
});

const auto atomic_then_load = kernel("atomic_then_load", params("s", "y"), [](InOut<float> s, Out<float> y) {
    auto old = atomic_add(s[0], 1);
    auto now = s[0];
    y[0] = now - old;  // now was read after the atomic, although it is on the left
});

const auto effects_in_order = kernel("effects_in_order", params("s", "y"), [](InOut<float> s, Out<float> y) {
    f32 v = s[0];
    auto first = shuffle_xor(v, 1);
    auto second = shuffle_xor(v, 2);
    y[0] = second - first;  // named in this order, so exchanged in this order
});

const auto host_eyes = kernel("host_eyes", params("x", "n"), [](In<float> x, u32 n) {
    print("x[{}] = {}, {{n}}\n", n, x[n]);
    print("done\n");
    check(n < 10, "n is small");
});

const auto contracts = kernel("contracts", params("x", "k"), [](InOut<float> x, u32 k) { x[k] = 0; })
                           .require(multiple_of<8>("k"), aligned<16>("x"), at_least<9, 8>("x", "k"))
                           .launch_bounds(256, 2)
                           .max_registers(64);

const auto halos = kernel("halos", params("x", "v", "y"), [](In<float> x, In<float, 2> v, Out<float, 3> y) {
                       y[0][0][0] = x[0] + v[0][0];
                   }).require(halo<4>("x"), halo<1, 2>("v"));

const auto unnamed = kernel("unnamed", [](InOut<float> x, u32 k) { x[k] = 0; });

const KernelRegistration control_kernels[] = {
    {"branches", branches},
    {"loops", loops},
    {"while_loop", while_loop},
    {"leaving", leaving},
    {"ids", ids},
    {"warp", warp},
    {"atomics", atomics},
    {"atomic_then_load", atomic_then_load},
    {"effects_in_order", effects_in_order},
    {"host_eyes", host_eyes},
    {"contracts", contracts},
    {"halos", halos},
    {"unnamed", unnamed},
};

}  // namespace
}  // namespace ikat::tests
