// SPDX-License-Identifier: Apache-2.0
// Kernels for tests/golden/ast and tests/golden/dsl_errors: threads together, accesses with an order, PTX as text.
#include "tests/golden/kernels.hpp"

namespace ikat::tests {
namespace {

const auto together = kernel("together", params("x"), [](InOut<std::uint32_t> x) {
    u32 i = thread_id().x;
    sync_block(1, 64);
    arrive_block(i / 32, 64);
    pred every = sync_block_and(i < 7);
    x[0] = sync_block_count(every);
    x[1] = match_any(i);
    x[2] = reduce_xor(i);
    if_(elect(), [&] { x[3] = active_lanes(); });
    x[4] = clock32() + lane_mask_lt();
    fence();
    fence(Scope::Sys, FenceOrder::SequentiallyConsistent);
});

const auto ordered = kernel("ordered", params("x", "f"), [](InOut<std::uint32_t> x, InOut<float> f) {
    u32 i = atomic_load(x[0], Order::Acquire);
    atomic_store(x[i], i + 1, Order::Release, Scope::Sys);
    volatile_store(x[1], volatile_load(x[2]));
    atomic_inc(x[3], 9);
    reduce_add(f.vec<2>(i), {1, 2}, Order::Release);
    atomic_min(f[0], 3);
});

const auto texts = kernel("texts", params("x"), [](InOut<std::uint32_t> x) {
    u32 i = thread_id().x, d;
    inline_ptx("lop3.b32 {0}, {1}, {2}, {3}, 0xEA;", out(d), in(i), in(x[i]), in(3u));
    pred p;
    inline_ptx("setp.gt.u32 {0}, {1}, 5;\n@{0} add.u32 {2}, {2}, 1;", out(p), in(i), inout(d));
    inline_ptx("membar.gl;");
    auto sum = add_carry(d, i);
    x[i] = sum.value;
    x[0] = sub_borrow(d, 1, sum.carry).value;
});

const auto halved = device_fn("halved", params("x"), [](f32 x) { return x / 2; });
const auto quartered = device_fn("quartered", params("x"), [](f32 x) { return halved(halved(x)); });
const auto calls = kernel("calls", params("x"), [](InOut<float> x) { x[0] = quartered(x[0]) + halved(x[1]); });

// clang-format off
const auto shouting = device_fn("shouting", [](u32 n) { print("{}\n", n); return_if(n > 3); return n; });
const auto sharing_function = device_fn("sharing", [](u32 n) { Shared<std::uint32_t, 4> s; s[n] = 1; sync_block(); return s[0] + n; });
const auto other_halved = device_fn("halved", [](f32 x) { return x * 0.5; });
const auto bad_functions = kernel("bad_functions", params("x"), [](InOut<std::uint32_t> x) { x[0] = shouting(1); x[1] = sharing_function(2); });
const auto two_functions = kernel("two_functions", params("x"), [](InOut<float> x) { x[0] = halved(1.0); x[1] = other_halved(2.0); });

extern const DeviceFunction<std::uint32_t, u32> ping;
const DeviceFunction<std::uint32_t, u32> pong = device_fn("pong", [](u32 n) -> u32 { return ping(n + 1); });
const DeviceFunction<std::uint32_t, u32> ping = device_fn("ping", [](u32 n) -> u32 { return pong(n + 1); });
const auto recursive = kernel("recursive", params("x"), [](InOut<std::uint32_t> x) { x[0] = ping(1); });

// On one line: where the stack ends depends on how large frames are.
u32 recurring(const u32& n) { u32 product = 1; if_(n > 1, [&] { product = n * recurring(n - 1); }); return product; }
const auto endless_function = kernel("endless_function", params("x"), [](InOut<std::uint32_t> x) { x[0] = recurring(x[0]); });

const DeviceFunction<std::uint32_t, u32> factorial = device_fn("factorial", params("n"), [](u32 n) -> u32 {
    u32 product = 1;
    if_(n > 1, [&] { product = n * factorial(n - 1); });
    return product;
});
const auto factorials = kernel("factorials", params("x"), [](InOut<std::uint32_t> x) { x[0] = factorial(x[0]); });

const auto bad_ptx = kernel("bad_ptx", params("x"), [](InOut<std::uint32_t> x) {
    u32 i = thread_id().x, d;
    inline_ptx("lop3.b32 {0}, {1}, {1} {1}, 0xEA;", out(d), in(i));
    inline_ptx("add.u32 {0}, {1}, 1", out(d), in(i));
    inline_ptx("add.f32 {0}, {1}, {2};", out(d), in(i), in(1.0));
    inline_ptx("mov.b32 {0}, 1;\n  madd.u32 {0}, {1}, 1;", out(d), in(i));
    inline_ptx("add.u32 {0}, {1}, {2};", out(d), in(i));
    inline_ptx("add.u32 {0}, {0}, 1;", inout(d), in(i));
    inline_ptx("bra elsewhere;");
    x[0] = d;
});

const auto bad_orders = kernel("bad_orders", params("x"), [](InOut<std::uint32_t> x) {
    u32 i = atomic_load(x[0], Order::Release);
    atomic_store(x[i], 1, Order::Acquire);
    atomic_add(x[1], 1, Order::Weak);
});

const auto parted_warp = kernel("parted_warp", params("x"), [](InOut<std::uint32_t> x) {
    if_(thread_id().x < 64, [&] { sync_block(1, 64); });
    if_(thread_id().x < 65, [&] { sync_block(2, 96); });
    if_(warp_id() == 0, [&] { x[0] = sync_block_count(x[0] > 1); });
});
// clang-format on

const KernelRegistration together_kernels[] = {{"together", together},
                                               {"ordered", ordered},
                                               {"texts", texts},
                                               {"calls", calls},
                                               {"factorials", factorials},
                                               {"endless_function", endless_function},
                                               {"bad_functions", bad_functions},
                                               {"two_functions", two_functions},
                                               {"recursive", recursive},
                                               {"bad_ptx", bad_ptx},
                                               {"bad_orders", bad_orders},
                                               {"parted_warp", parted_warp}};

}  // namespace
}  // namespace ikat::tests
