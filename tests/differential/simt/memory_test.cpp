// SPDX-License-Identifier: Apache-2.0
// The contents of memory, compared with the host: values that must not be reused across barriers, atomics and aliases;
// where arrays start, and which tables are shared.
#include "tests/differential/simt/run.hpp"

namespace ikat::test {
namespace {

using u32s = std::vector<std::uint32_t>;

TEST_CASE("a store through one alias of dynamic shared memory is seen through the other") {
    CHECK(run_ir(R"(kernel @names(%y: inout u32*) {
  dynamic shared $a: u32[]
  dynamic shared $b: u32[]
^0:
  %y = param.u64 %y
  %a = symbol.u32 $a
  %b = symbol.u32 $b
  %0 = const.u32 1
  %1 = const.u32 2
  store.u32 shared [%a], %0
  store.u32 shared [%b], %1
  %2 = load.u32 shared [%a]
  store.u32 global [%y], %2
  return
})",
                 {0}) == u32s{2});
}

TEST_CASE("a store to a generic address is seen at the global address") {
    CHECK(run_ir(R"(kernel @generic(%y: inout u32*) {
^0:
  %y = param.u64 %y
  %0 = const.u32 5
  %1 = load.u32 global [%y]
  store.u32 generic [%y], %0
  %2 = load.u32 global [%y]
  %3 = add.u32 %1, %2
  store.u32 global [%y+4], %3
  return
})",
                 {7, 0}) == u32s{5, 12});
}

const auto overwritten = kernel("overwritten", params("x"), [](InOut<std::uint32_t> x) {
    Shared<std::uint32_t, 64> s;
    u32 i = thread_id().x;
    s[i] = i;
    x[i] = i;
    sync_block();
    auto other = value(s[63 - i] + x[63 - i]);
    sync_block();
    s[63 - i] = i + 100;
    x[63 - i] = i + 1000;
    sync_block();
    x[64 + i] = s[i] + x[i];  // the other thread's value
    x[128 + i] = other;
});

TEST_CASE("after a barrier memory holds what others stored") {
    const u32s got = run(overwritten, 1, 64, u32s(192));
    for (std::uint32_t i = 0; i < 64; ++i) {
        CHECK(got[64 + i] == (63 - i) * 2 + 1100);
        CHECK(got[128 + i] == (63 - i) * 2);
    }
}

/// Changes each thread's own element by operations other than stores.
const auto between = kernel("between", params("x", "y"), [](InOut<std::uint32_t> x, InOut<std::uint32_t> y) {
    u32 i = thread_id().x;
    x[i] = 1;
    auto before = x[i];
    auto old = atomic_add(x[i], 5);
    auto after = x[i];
    y[i * 8] = before;
    y[i * 8 + 1] = old;
    y[i * 8 + 2] = after - old;
    atomic_exchange(x[i], 40);  // the old value is unused
    y[i * 8 + 3] = x[i];
    atomic_store(x[i], 41);
    y[i * 8 + 4] = x[i];
    volatile_store(x[i], 42);
    y[i * 8 + 5] = x[i];
});

TEST_CASE("a load after an atomic or an ordered store of the same element reads the new value") {
    auto y = simt_device().upload(u32s(256), "y");
    simt_device().launch(between, runtime::Grid{{1}, {32}}, simt_device().upload(u32s(32), "x"), y);
    const u32s got = y.download();
    for (std::uint32_t i = 0; i < 32; ++i)
        CHECK(u32s(got.begin() + i * 8, got.begin() + i * 8 + 6) == u32s{1, 1, 5, 40, 41, 42});
}

const auto reduced = kernel("reduced", params("x", "y"), [](InOut<float> x, InOut<float> y) {
    x.vec<2>(0) = {1, 2};
    reduce_add(x.vec<2>(0), {10, 20});
    y[0] = x[0], y[1] = x[1];
});

TEST_CASE("a load after a vector reduction reads the new value") {
    auto y = simt_device().upload(std::vector<float>(2), "y");
    simt_device().launch(reduced, runtime::Grid{{1}, {1}}, simt_device().upload(std::vector<float>(2), "x"), y);
    CHECK(y.download() == std::vector<float>{11, 22});
}

const auto aliased = kernel("aliased", params("x", "y"), [](InOut<std::uint32_t> x, InOut<std::uint32_t> y) {
    y[0] = x[1];
    y[1] = 7;
    y[2] = x[1];
});
const auto read_only = kernel("read_only", params("x", "y"), [](In<std::uint32_t> x, InOut<std::uint32_t> y) {
    y[0] = x[1];
    y[1] = 7;
    y[2] = x[1];
});

TEST_CASE("two parameters of one buffer see each other's stores; a read-only one is rejected") {
    auto buffer = simt_device().upload(u32s{0, 5, 0, 0}, "buffer");
    simt_device().launch(aliased, runtime::Grid{{1}, {1}}, buffer, buffer);
    CHECK(buffer.download() == u32s{5, 7, 7, 0});
    CHECK_THROWS_WITH(simt_device().launch(read_only, runtime::Grid{{1}, {1}}, buffer, buffer),
                      tests::contains("are the same memory"));
}

const auto three_arrays = kernel("three_arrays", params("x", "n"), [](InOut<std::uint32_t> x, u32 n) {
    auto a = dynamic_shared<std::uint32_t>(n), b = dynamic_shared<std::uint32_t>(n),
         c = dynamic_shared<std::uint32_t>(n);
    u32 i = thread_id().x;
    a[i] = i;
    b[i] = i + 100;
    c[i] = i + 200;
    sync_block();
    x[i] = a[n - 1 - i];
    x[n + i] = b[n - 1 - i];
    x[2 * n + i] = c[n - 1 - i];
});

TEST_CASE("dynamic arrays follow each other") {
    u32s expected(96);
    for (std::uint32_t i = 0; i < 96; ++i) expected[i] = i / 32 * 100 + 31 - i % 32;
    auto x = simt_device().upload(u32s(96), "x");
    simt_device().launch(three_arrays, runtime::Grid{{1}, {32}, 3 * 32 * 4}, x, 32u);
    CHECK(x.download() == expected);
}

const auto tables = kernel("tables", params("x"), [](InOut<std::uint32_t> x) {
    Constant<std::uint32_t, 4> a{1, 2, 3, 4}, b{1, 2, 3, 5}, c{1, 2, 3, 4};
    u32 i = thread_id().x;
    x[i] = a[i & 3] * 100 + b[i & 3] * 10 + c[i & 3];
});

TEST_CASE("tables with a common prefix are different") {
    CHECK(run(tables, 1, 4, u32s(4)) == u32s{111, 222, 333, 454});
}

TEST_CASE("one place is loaded under two conditions") {
    const auto two = kernel("two", params("x", "y", "n"), [](In<std::uint32_t> x, Out<std::uint32_t> y, u32 n) {
        const auto t = value(thread_id().x);
        const auto below = value(x.load_if(t < n, t, 1000u)), above = value(x.load_if(t > n, t, 1000u));
        y[t * 3u] = below;
        y[t * 3u + 1u] = above;
        y[t * 3u + 2u] = x.load_if(t < n, t, 2000u);
    });
    constexpr std::uint32_t threads = 32, n = 11;
    std::vector<std::uint32_t> values(threads);
    for (std::uint32_t t = 0; t < threads; ++t) values[t] = 7 * t + 1;
    const auto x = simt_device().upload(values, "x");
    auto y = simt_device().buffer<std::uint32_t>(3 * threads, "y");
    simt_device().launch(two, runtime::Grid{{1}, {threads}}, x, y, n);
    const auto got = y.download();
    for (std::uint32_t t = 0; t < threads; ++t) {
        CHECK(got[3 * t] == (t < n ? values[t] : 1000));
        CHECK(got[3 * t + 1] == (t > n ? values[t] : 1000));
        CHECK(got[3 * t + 2] == (t < n ? values[t] : 2000));
    }
}

}  // namespace
}  // namespace ikat::test
