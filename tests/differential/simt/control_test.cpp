// SPDX-License-Identifier: Apache-2.0
// Loops and their ends, compared with the host: ranges that end at the limits of their type, assignments in conditions,
// threads that leave an iteration early, large block numbers.
#include <limits>

#include "tests/differential/simt/run.hpp"

namespace ikat::test {
namespace {

using u32s = std::vector<std::uint32_t>;

template <class E, std::uint32_t step, unsigned factor>
const auto counted = kernel("counted", params("bounds", "y"), [](In<E> bounds, InOut<std::uint64_t> y) {
    u32 t = thread_id().x;
    u64 rounds = 0, sum = 0;
    for (auto i : range(bounds[2 * t], bounds[2 * t + 1], E(step)).unroll(factor)) {
        ++rounds;
        sum = sum * 31 + cast<u64>(i);
    }
    y[2 * t] = rounds, y[2 * t + 1] = sum;
});

template <class E, std::uint32_t step, unsigned factor>
void check_counted() {
    constexpr E lowest = std::numeric_limits<E>::min(), highest = std::numeric_limits<E>::max();
    const E edges[] = {lowest, E(lowest + 1), E(lowest + 9), E(-2), 0, 3, 10, E(highest - 9), E(highest - 1), highest};
    std::vector<E> bounds;
    for (E begin : edges)
        for (E end : edges)
            if (begin >= end || (__int128(end) - begin) / step < 100) bounds.insert(bounds.end(), {begin, end});
    auto y = simt_device().upload(std::vector<std::uint64_t>(bounds.size()), "y");
    simt_device().launch(counted<E, step, factor>, runtime::Grid{{1}, {std::uint32_t(bounds.size() / 2)}},
                         simt_device().upload(bounds, "bounds"), y);
    const auto got = y.download();
    for (std::size_t t = 0; t < bounds.size() / 2; ++t) {
        std::uint64_t rounds = 0, sum = 0;
        for (__int128 i = bounds[2 * t]; i < bounds[2 * t + 1]; i += step) ++rounds, sum = sum * 31 + std::uint64_t(i);
        INFO("from " << std::int64_t(bounds[2 * t]) << " to " << std::int64_t(bounds[2 * t + 1]) << " by " << step);
        CHECK(got[2 * t] == rounds);
        CHECK(got[2 * t + 1] == sum);
    }
}

template <class E>
void check_ranges() {
    check_counted<E, 1, 1>();
    check_counted<E, 7, 1>();
    check_counted<E, 1, 0>();  // the compiler chooses
    check_counted<E, 7, 0>();
    check_counted<E, 1, 4>();
    check_counted<E, 7, 3>();
    check_counted<E, (std::uint64_t(std::numeric_limits<E>::max()) >> 1 & 0x7fffffff), 2>();
}

TEST_CASE("a range near the ends of its type counts exactly") {
    check_ranges<std::int8_t>();
    check_ranges<std::uint8_t>();
    check_ranges<std::int16_t>();
    check_ranges<std::uint16_t>();
    check_ranges<std::int32_t>();
    check_ranges<std::uint32_t>();
    check_ranges<std::int64_t>();
    check_ranges<std::uint64_t>();
}

/// Small loops, which are unrolled unasked: a sum whose bits depend on its order, and elements that depend on the one
/// before, through memory.
const auto in_order = kernel("in_order", params("x", "y", "sums"), [](In<float> x, InOut<float> y, Out<float> sums) {
    u32 rounds = thread_id().x;
    f32 sum = 0;
    for (auto i : range(rounds)) sum += x[i];
    sums[rounds] = sum;
    auto own = y.slice(cast<u64>(rounds * 40u));
    for (auto i : range(rounds)) own[i + 1] = own[i] * 0.5f + x[i];
});

TEST_CASE("unrolling unasked changes no order") {
    constexpr std::uint32_t threads = 39;
    std::vector<float> x(threads), y(threads * 40, 1.0f);
    for (std::uint32_t i = 0; i < threads; ++i) x[i] = (i % 3 ? 1.0f : -1e6f) / float(i + 1);
    auto x_there = simt_device().upload(x, "x"), y_there = simt_device().upload(y, "y");
    auto sums = simt_device().upload(std::vector<float>(threads), "sums");
    simt_device().launch(in_order, runtime::Grid{{1}, {threads}}, x_there, y_there, sums);
    const std::vector<float> got = sums.download(), chains = y_there.download();
    for (std::uint32_t rounds = 0; rounds < threads; ++rounds) {
        float sum = 0, last = 1;
        for (std::uint32_t i = 0; i < rounds; ++i) sum += x[i], last = last * 0.5f + x[i];
        INFO(rounds << " rounds");
        CHECK(got[rounds] == sum);
        CHECK(chains[rounds * 40 + rounds] == last);
    }
}

const auto constant_ranges = kernel("constant_ranges", params("y"), [](InOut<std::uint32_t> y) {
    u32 rounds = 0;
    i32 last = 0;
    for (auto i : range(i32(INT32_MIN), INT32_MIN + 5, 2)) ++rounds, last = i;
    y[0] = rounds, y[1] = bit_cast<u32>(last);
    for (auto i : range(i32(INT32_MIN), INT32_MIN, 1)) ++rounds, last = i;
    for (auto i : range(i32(INT32_MAX), INT32_MIN, 1)) ++rounds, last = i;
    y[2] = rounds;
    for (auto i : range(i32(INT32_MAX - 3), INT32_MAX, 2)) ++rounds, last = i;
    y[3] = rounds, y[4] = bit_cast<u32>(last);
    for (auto i : range(i32(INT32_MIN), INT32_MAX, INT32_MAX)) ++rounds, last = i;
    y[5] = rounds, y[6] = bit_cast<u32>(last);
});

TEST_CASE("ranges of constants near INT_MIN and INT_MAX") {
    CHECK(run(constant_ranges, 1, 1, u32s(7)) == u32s{3, 0x80000004, 3, 5, 0x7ffffffe, 8, 0x7ffffffe});
}

/// The deciding variable is assigned only in the condition.
const auto in_condition = kernel("in_condition", params("y", "limit"), [](InOut<std::uint32_t> y, u32 limit) {
    u32 n = 0, rounds = 0;
    while_(
        [&] {
            n += 3;
            return n < limit;
        },
        [&] { ++rounds; });
    y[0] = n, y[1] = rounds;
    u32 m = limit;
    while_(
        [&] {
            m = m / 2;
            return m != 0;
        },
        [&] { if_(m == 5, [&] { break_(); }); });
    y[2] = m;
});

TEST_CASE("a variable that only a while's condition assigns") {
    CHECK(run(in_condition, 1, 1, u32s(3), 10u) == u32s{12, 3, 5});
    CHECK(run(in_condition, 1, 1, u32s(3), 0u) == u32s{3, 0, 0});
    CHECK(run(in_condition, 1, 1, u32s(3), 64u) == u32s{66, 21, 0});
}

/// On some paths through the body nothing is left to do in the iteration.
const auto rounds_apart = kernel("rounds_apart", params("y"), [](InOut<std::uint32_t> y) {
    u32 a = thread_id().x, round = 0;
    while_(
        [&] {
            y[thread_id().x] = a;
            return round < 4;
        },
        [&] {
            ++round;
            u32 last = (a + 5) & 15;
            for ([[maybe_unused]] auto i : range(2u, last, 3u).unroll(3)) a = 0;
        });
    y[thread_id().x] = ballot(a == 0);
});

TEST_CASE("threads that finish an iteration early wait for the others before the next") {
    u32s expected(32);
    for (std::uint32_t t = 0; t < 32; ++t) {
        std::uint32_t a = t;
        for (int round = 0; round < 4; ++round)
            if (((a + 5) & 15) > 2) a = 0;
        expected[0] |= std::uint32_t(a == 0) << t;
    }
    for (std::uint32_t& all : expected) all = expected[0];
    for (int launch = 0; launch < 8; ++launch) CHECK(run(rounds_apart, 1, 32, u32s(32)) == expected);
}

const auto far_block = kernel("far_block", params("y"),
                              [](InOut<std::uint32_t> y) { if_(block_id().x > 0xffff, [&] { y[0] = block_id().x; }); });

TEST_CASE("blocks beyond 65535") { CHECK(run(far_block, 0x10001, 1, u32s(1)) == u32s{0x10000}); }

TEST_CASE("a loop with two back edges") {
    const u32s counted = run_ir(R"(kernel @two_ways(%y: inout u32*) {
^0:
  %y = param.u64 %y
  %tid = special.u32 tid.x
  %n = load.u32 global [%y]
  %zero = const.u32 0
  %one = const.u32 1
  jump ^1(%zero, %zero)
^1(%i: u32, %sum: u32):
  %again = lt.u32 %i, %n
  branch %again, ^2, ^4
^2:
  %next = add.u32 %i, %one
  %p = lt.u32 %tid, %next
  branch %p, ^3, ^1(%next, %sum)
^3:
  %more = add.u32 %sum, %tid
  %most = mul.u32 %more, %next
  jump ^1(%next, %most)
^4:
  %four = const.u32 4
  %place = mad_wide.u32 %tid, %four, %y
  barrier 0
  store.u32 global [%place], %sum
  return
})",
                                u32s(32, 5), 32);
    for (std::uint32_t t = 0; t < 32; ++t) {
        std::uint32_t sum = 0;
        for (std::uint32_t i = 0; i < 5; ++i)
            if (t < i + 1) sum = (sum + t) * (i + 1);
        CHECK(counted[t] == sum);
    }
}

// Two arms in a loop compute the same index and load from there. Neither runs where the index is beyond the buffer.
TEST_CASE("what two arms of a loop load is not loaded where neither runs") {
    const auto arms =
        kernel("arms", params("x", "y", "n", "m"), [](In<std::uint32_t> x, InOut<std::uint32_t> y, u32 n, u32 m) {
            for (auto i : range(m)) {
                const auto arm = [&](std::uint32_t which) {
                    const auto v = value(x[i * 2u]);
                    for (auto j : range(v % 4u)) y[i * 2u + which] = y[i * 2u + which] + v + j;
                };
                if_(i < n, [&] { arm(0); });
                if_(i + 3u < n, [&] { arm(1); });
            }
        });
    constexpr std::uint32_t n = 8, m = 12;
    u32s values(2 * n - 1);
    for (std::uint32_t i = 0; i < values.size(); ++i) values[i] = 5 * i + 1;
    const auto x = simt_device().upload(values, "x");
    auto y = simt_device().upload(u32s(2 * m), "y");
    simt_device().launch(arms, runtime::Grid{{1}, {1}}, x, y, n, m);
    const auto got = y.download();
    for (std::uint32_t i = 0; i < 2 * m; ++i) {
        std::uint32_t expected = 0;
        if (i / 2 + i % 2 * 3 < n)
            for (std::uint32_t j = 0; j < values[i / 2 * 2] % 4; ++j) expected += values[i / 2 * 2] + j;
        CHECK(got[i] == expected);
    }
}

}  // namespace
}  // namespace ikat::test
