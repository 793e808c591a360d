// SPDX-License-Identifier: Apache-2.0
// Atomics of each operator, in global and in shared memory, with used and unused results; fences; ordered and volatile
// accesses; vector sums.
#include <cmath>
#include <limits>

#include "tests/differential/simt/run.hpp"

namespace ikat::test {
namespace {

using u32s = std::vector<std::uint32_t>;

/// All threads apply every operator, each to its own word; results that do not depend on the order are stored.
const auto operators = kernel("operators", params("x"), [](InOut<std::uint32_t> x) {
    u32 i = global_id().x;
    atomic_add(x[0], i);
    atomic_min(x[1], i + 5);
    atomic_max(x[2], i + 5);
    atomic_and(x[3], ~(1u << (i % 32)));
    atomic_or(x[4], 1u << (i % 32));
    atomic_xor(x[5], i);
    u32 counted = atomic_inc(x[6], 9);
    u32 down = atomic_dec(x[7], 9);
    atomic_add(x[8 + counted], 1);
    atomic_add(x[18 + down], 1);
    u32 old = atomic_exchange(x[28], i + 1, Order::AcquireRelease, Scope::Gpu);
    atomic_add(x[29], old);
    atomic_cas(x[30], 0, i + 1);
    atomic_cas(x[31], 4711, 4712);
    atomic_add(x[32], 1, Order::Release);
});

TEST_CASE("atomics of each operator") {
    const std::uint32_t threads = 2 * 40;
    u32s x(40);
    x[1] = 1000, x[3] = ~0u, x[31] = 4711;
    const u32s got = run(operators, 2, 40, x);
    std::uint32_t sum = 0, odd = 0;
    for (std::uint32_t i = 0; i < threads; ++i) sum += i, odd ^= i;
    CHECK(got[0] == sum);
    CHECK(got[1] == 5);
    CHECK(got[2] == threads + 4);
    CHECK(got[3] == 0);
    CHECK(got[4] == ~0u);
    CHECK(got[5] == odd);
    CHECK(got[6] == threads % 10);
    CHECK(got[7] == 0);
    for (std::uint32_t k = 0; k < 10; ++k) {
        CHECK(got[8 + k] == threads / 10);
        CHECK(got[18 + k] == threads / 10);
    }
    CHECK(got[28] + got[29] == sum + threads);  // each value was handed on once
    CHECK(got[30] >= 1);
    CHECK(got[30] <= threads);
    CHECK(got[31] == 4712);
    CHECK(got[32] == threads);
}

const auto wrapping = kernel("wrapping", params("x"), [](InOut<std::uint32_t> x) {
    u32 i = thread_id().x;
    atomic_inc(x[i], 9);
    atomic_dec(x[i + 16], 9);
});

TEST_CASE("counting atomics wrap at their limit, and from beyond it") {
    u32s x(32), expected(32);
    for (std::uint32_t i = 0; i < 16; ++i) {
        x[i] = x[i + 16] = i;
        expected[i] = i >= 9 ? 0 : i + 1;
        expected[i + 16] = i == 0 || i > 9 ? 9 : i - 1;
    }
    CHECK(run(wrapping, 1, 16, x) == expected);
}

const auto subnormal_sums = kernel("subnormal_sums", params("x"), [](InOut<float> x) {
    Shared<float, 1> s;
    f32 small = x[0];
    s[0] = small;
    sync_block();
    atomic_add(s[0], small);
    atomic_add(x[1], small);
    sync_block();
    x[2] = s[0];
});

TEST_CASE("atomic sums of subnormal numbers: zero in global memory, exact in shared memory") {
    const float small = 1e-40f;
    CHECK(run(subnormal_sums, 1, 1, std::vector<float>{small, small, 7}) ==
          std::vector<float>{small, 0, small + small});
}

const auto wide_operators =
    kernel("wide_operators", params("l", "u", "d", "f", "h"),
           [](InOut<std::int64_t> l, InOut<std::uint64_t> u, InOut<double> d, InOut<float> f, InOut<half> h) {
               u32 i = thread_id().x;
               Shared<std::uint64_t, 2> s;
               if_(i < 2, [&] { s[i] = 0; });
               sync_block();
               atomic_add(l[0], cast<i64>(i) - 100);
               atomic_min(l[1], cast<i64>(i) - 100);
               atomic_max(u[0], cast<u64>(i) << 40);
               atomic_or(u[1], 1ull << i);
               atomic_add(s[0], cast<u64>(i) << 33);
               atomic_xor(s[1], 1ull << i);
               atomic_add(d[0], cast<f64>(i));
               atomic_add(f[0], cast<f32>(i));
               atomic_add(h[0], 1);
               f32 last = atomic_exchange(f[1], cast<f32>(i));
               if_(last < 0, [&] { f[2] = last; });
               atomic_cas(d[1], 2.5, 7.5);
               sync_block();
               if_(i == 0, [&] {
                   u[2] = s[0];
                   u[3] = s[1];
               });
           });

TEST_CASE("atomics of each type") {
    auto& device = simt_device();
    auto l = device.upload(std::vector<std::int64_t>{5, 0}, "l");
    auto u = device.upload(std::vector<std::uint64_t>(4), "u");
    auto d = device.upload(std::vector<double>{0.5, 2.5}, "d");
    auto f = device.upload(std::vector<float>{0.25, -8, 0}, "f");
    auto h = device.upload(std::vector<half>{half(0.5f), half(0.0f)}, "h");
    device.launch(wide_operators, runtime::Grid{{1}, {64}}, l, u, d, f, h);
    const auto got_u = u.download();
    CHECK(l.download() == std::vector<std::int64_t>{5 + 63 * 32 - 6400, -100});
    CHECK(got_u[0] == std::uint64_t{63} << 40);
    CHECK(got_u[1] == ~std::uint64_t{0});
    CHECK(got_u[2] == std::uint64_t{63 * 32} << 33);
    CHECK(got_u[3] == ~std::uint64_t{0});
    CHECK(d.download() == std::vector<double>{0.5 + 63 * 32, 7.5});
    CHECK(f.download()[0] == 0.25f + 63 * 32);
    CHECK(f.download()[2] == -8);
    CHECK(float(h.download()[0]) == 64.5f);
}

// Each thread contributes one value to the minimum and the maximum of its column, in both types and both spaces.
const auto bounds = kernel("bounds", params("x", "f", "d"), [](In<float> x, InOut<float> f, InOut<double> d) {
    u32 i = thread_id().x;
    Shared<float, 2> s;
    if_(i < 2, [&] { s[i] = x[i]; });
    sync_block();
    const Var v = value(x[i]);
    f32 before = atomic_min(f[0], v);
    atomic_max(f[1], v, Order::AcquireRelease, Scope::Gpu);
    atomic_min(d[0], cast<f64>(v));
    atomic_max(d[1], cast<f64>(v));
    atomic_min(s[0], v);
    atomic_max(s[1], v);
    check(!(before < x[63]), "what was there was not below the least");
    sync_block();
    if_(i < 2, [&] { f[2 + i] = s[i]; });
});

TEST_CASE("atomic minimum and maximum of floats") {
    auto& device = simt_device();
    const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
    std::vector<float> x(64);
    for (int i = 0; i < 64; ++i) x[std::size_t(i)] = float((i * 37) % 64 - 20) / 4;
    x[5] = nan, x[6] = -nan, x[63] = -11.5f;
    for (float minimum : {inf, nan, -nan, 0.0f, -0.0f}) {
        auto f = device.upload(std::vector<float>{minimum, -minimum, 0, 0}, "f");
        auto d = device.upload(std::vector<double>{minimum, -minimum}, "d");
        device.launch(bounds, runtime::Grid{{1}, {64}}, device.upload(x, "x"), f, d);
        CHECK(f.download() == std::vector<float>{-11.5f, 10.75f, -11.5f, 10.75f});
        CHECK(d.download() == std::vector<double>{-11.5, 10.75});
    }
    const std::vector<float> zeros(64, -0.0f);  // below +0, also for the atomics
    auto f = device.upload(std::vector<float>{0.0f, -1, 0, 0}, "f");
    auto d = device.upload(std::vector<double>{0.0, -1}, "d");
    device.launch(bounds, runtime::Grid{{1}, {64}}, device.upload(zeros, "x"), f, d);
    CHECK(std::signbit(f.download()[0]));
    CHECK(std::signbit(d.download()[1]));
}

// The last block to finish sums what all have written, which the fence and the counter make visible.
const auto last_block = kernel("last_block", params("x", "n"), [](InOut<std::uint32_t> x, u32 n) {
    u32 block = block_id().x;
    volatile_store(x[2 + block], block * block + 1);
    fence(Scope::Gpu, FenceOrder::SequentiallyConsistent);
    u32 done = atomic_add(x[0], 1, Order::AcquireRelease, Scope::Gpu);
    if_(done == n - 1, [&] {
        fence();
        u32 total = 0;
        for (auto k : range(n)) total += volatile_load(x[2 + k]);
        atomic_store(x[1], total, Order::Release, Scope::Gpu);
    });
});

TEST_CASE("fences, volatile and ordered accesses") {
    const std::uint32_t n = 37;
    const u32s got = run(last_block, n, 1, u32s(2 + n), n);
    std::uint32_t total = 0;
    for (std::uint32_t k = 0; k < n; ++k) total += k * k + 1;
    CHECK(got[0] == n);
    CHECK(got[1] == total);
}

// Thread 0 of each block waits until the other block has written its number.
const auto meeting = kernel("meeting", params("x"), [](InOut<std::uint32_t> x) {
    u32 block = block_id().x;
    atomic_store(x[block], block + 10, Order::Release, Scope::Gpu);
    while_([&] { return atomic_load(x[1 - block], Order::Acquire, Scope::Gpu) == 0; }, [&] { x[4 + block] += 0; });
    x[2 + block] = atomic_load(x[1 - block]);
});

TEST_CASE("two blocks meet") {
    const u32s got = run(meeting, 2, 1, u32s(6));
    CHECK(got[2] == 11);
    CHECK(got[3] == 10);
}

const auto vector_sums = kernel("vector_sums", params("x"), [](InOut<float> x) {
    u32 i = thread_id().x;
    f32 v = cast<f32>(i);
    reduce_add(x.vec<4>(i % 2), {v, 1, -v, 2});
    reduce_add(x.vec<2>(4), {v, 3}, Order::Release, Scope::Sys);
});

TEST_CASE("sums of vectors") {
    const std::vector<float> got = run(vector_sums, 1, 32, std::vector<float>(10, 0.5f));
    CHECK(got == std::vector<float>{240.5f, 16.5f, -239.5f, 32.5f, 256.5f, 16.5f, -255.5f, 32.5f, 496.5f, 96.5f});
}

TEST_CASE("ptxas accepts atomics") {
    check_assembled(operators, 75);
    check_assembled(wide_operators, 75);
    check_assembled(bounds, 75);
    check_assembled(last_block, 75);
    check_assembled(meeting, 75);
    check_assembled(vector_sums, 75);
}

}  // namespace
}  // namespace ikat::test
