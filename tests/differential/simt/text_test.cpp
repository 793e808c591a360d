// SPDX-License-Identifier: Apache-2.0
// PTX as text in kernels, and sums that carry.
#include "tests/differential/simt/run.hpp"

namespace ikat::test {
namespace {

using u32s = std::vector<std::uint32_t>;
using u64s = std::vector<std::uint64_t>;

const auto texts = kernel("texts", params("x"), [](InOut<std::uint32_t> x) {
    u32 i = thread_id().x, a = x[i], d;
    ptx("lop3.b32 {0}, {1}, {2}, {3}, 0xEA;", out(d), in(a), in(i), in(5u));
    x[32 + i] = d;
    // A result that is written before the last operand is read must not take its register.
    u32 low, high;
    ptx("mul.lo.u32 {0}, {2}, {3};\nmul.hi.u32 {1}, {2}, {3};", out(low), out(high), in(a), in(a + 1));
    x[64 + i] = low;
    x[96 + i] = high;
    // A predicate, a variable that is read and written, a register and a label of its own: each in a scope.
    pred big;
    ptx("setp.gt.u32 {0}, {1}, 0x7fffffff;", out(big), in(a));
    u32 count = i;
    ptx("{\n.reg .pred p;\n.reg .u32 left;\nmov.u32 left, {1};\nagain:\nsetp.eq.u32 p, left, 0;\n@p bra done;\n"
        "add.u32 {0}, {0}, 2;\nsub.u32 left, left, 1;\nbra again;\ndone:\n}",
        inout(count), in(i % 4));
    x[128 + i] = select(big, count, count + 1000);
    u32 lane;
    ptx("mov.u32 {0}, %laneid;", out(lane));
    x[160 + i] = lane;
});

TEST_CASE("PTX as text runs") {
    u32s x(192);
    for (std::uint32_t i = 0; i < 32; ++i) x[i] = 0x9e3779b9u * (i + 1);
    const u32s got = run(texts, 1, 32, x);
    for (std::uint32_t i = 0; i < 32; ++i) {
        const std::uint64_t product = std::uint64_t(x[i]) * (x[i] + 1);
        CHECK(got[32 + i] == ((x[i] & i) | 5));
        CHECK(got[64 + i] == std::uint32_t(product));
        CHECK(got[96 + i] == std::uint32_t(product >> 32));
        CHECK(got[128 + i] == i + 2 * (i % 4) + (x[i] > 0x7fffffff ? 0 : 1000));
        CHECK(got[160 + i] == i);
    }
}

const auto squared = device_fn("squared", [](f32 x) { return x * x; });
const auto steps = device_fn("steps", params("x", "n"), [](f32 x, u32 n) {
    f32 sum = 0;
    for (auto k : range(n)) if_(k % 2 == 0, [&] { sum += squared(x); }).else_([&] { sum -= x; });
    return sum;
});
const auto calls = kernel("calls", params("x"), [](InOut<float> x) {
    u32 i = thread_id().x;
    f32 a = x[i];
    if_(i % 3 == 0, [&] { x[i] = steps(a, i % 7) + squared(a + 1); }).else_([&] { x[i] = steps(squared(2), 3); });
});

const auto a0 = device_fn("a0", params("r"), [](u32 r) { return r * 3 + 1; });
const auto r = device_fn("r", params("a0"), [](u32 n) {
    Local<std::uint32_t, 2> twice;
    twice[n % 2] = a0(n);
    return u32(twice[n % 2]);
});
const auto same_names = kernel("local0", params("r", "a0", "local1"), [](InOut<std::uint32_t> x, u32 n, u32 m) {
    Local<std::uint32_t, 32> local;
    local[thread_id().x] = n;
    auto result = r(x[thread_id().x]);
    x[thread_id().x] = result + local[thread_id().x] + m;
});

TEST_CASE("parameters, arrays and the functions that are called may share names") {
    const u32s got = run(same_names, 1, 32, u32s(32, 5), 100, 1000);
    CHECK(got == u32s(32, 1116));
    check_assembled(same_names, 75);
}

TEST_CASE("functions that are called") {
    std::vector<float> x(64);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i) / 4;
    const auto got = run(calls, 1, 64, x);
    const auto model = [](float v, std::uint32_t n) {
        float sum = 0;
        for (std::uint32_t k = 0; k < n; ++k) sum = k % 2 == 0 ? sum + v * v : sum - v;
        return sum;
    };
    for (std::uint32_t i = 0; i < 64; ++i)
        CHECK(got[i] == (i % 3 == 0 ? model(x[i], i % 7) + (x[i] + 1) * (x[i] + 1) : model(4, 3)));
}

const auto long_sums = kernel("long_sums", params("x"), [](InOut<std::uint64_t> x) {
    u32 i = thread_id().x;
    u64 a0 = x[4 * i], a1 = x[4 * i + 1], b0 = x[4 * i + 2], b1 = x[4 * i + 3];
    auto low = add_carry(a0, b0);
    auto high = add_carry(a1, b1, low.carry);
    auto less = sub_borrow(a0, b0);
    auto least = sub_borrow(a1, b1, less.carry);
    x[4 * i] = low.value;
    x[4 * i + 1] = high.value;
    x[4 * i + 2] = less.value;
    x[4 * i + 3] = least.value;
});

const auto short_sums = kernel("short_sums", params("x"), [](InOut<std::uint32_t> x) {
    u32 i = thread_id().x, a = x[2 * i], b = x[2 * i + 1];
    auto sum = add_carry(a, b, 1);
    auto rest = sub_borrow(a, b, 1);
    x[64 + 4 * i] = sum.value;
    x[65 + 4 * i] = sum.carry;
    x[66 + 4 * i] = rest.value;
    x[67 + 4 * i] = rest.carry;
});

TEST_CASE("sums that carry") {
    const std::uint64_t ends[] = {0, 1, ~std::uint64_t{0}, std::uint64_t{1} << 63, 0x123456789abcdef0};
    u64s x;
    for (std::uint32_t i = 0; i < 32; ++i)
        for (std::uint32_t k = 0; k < 4; ++k) x.push_back(ends[(i * (k + 1) + k) % 5]);
    const u64s got = run(long_sums, 1, 32, x);
    for (std::size_t i = 0; i < 32; ++i) {
        using Wide = unsigned __int128;
        const Wide a = Wide(x[4 * i + 1]) << 64 | x[4 * i], b = Wide(x[4 * i + 3]) << 64 | x[4 * i + 2];
        CHECK(got[4 * i] == std::uint64_t(a + b));
        CHECK(got[4 * i + 1] == std::uint64_t((a + b) >> 64));
        CHECK(got[4 * i + 2] == std::uint64_t(a - b));
        CHECK(got[4 * i + 3] == std::uint64_t((a - b) >> 64));
    }
    u32s y(64 + 128);
    for (std::uint32_t i = 0; i < 64; ++i) y[i] = std::uint32_t(ends[i * 7 % 5] >> (i % 3));
    const u32s sums = run(short_sums, 1, 32, y);
    for (std::size_t i = 0; i < 32; ++i) {
        const std::uint64_t a = y[2 * i], b = y[2 * i + 1];
        CHECK(sums[64 + 4 * i] == std::uint32_t(a + b + 1));
        CHECK(sums[65 + 4 * i] == (a + b + 1) >> 32);
        CHECK(sums[66 + 4 * i] == std::uint32_t(a - b - 1));
        CHECK(sums[67 + 4 * i] == (a < b + 1 ? 1 : 0));
    }
}

TEST_CASE("ptxas takes text, functions and carries") {
    check_assembled(texts, 75);
    check_assembled(calls, 75);
    check_assembled(long_sums, 75);
    check_assembled(short_sums, 75);
}

}  // namespace
}  // namespace ikat::test
