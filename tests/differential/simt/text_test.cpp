// SPDX-License-Identifier: Apache-2.0
// PTX as text in kernels, and functions that are called.
#include "tests/differential/simt/run.hpp"

namespace ikat::test {
namespace {

using u32s = std::vector<std::uint32_t>;

const auto texts = kernel("texts", params("x"), [](InOut<std::uint32_t> x) {
    u32 i = thread_id().x, a = x[i], d;
    inline_ptx("lop3.b32 {0}, {1}, {2}, {3}, 0xEA;", out(d), in(a), in(i), in(5u));
    x[32 + i] = d;
    // A result that is written before the last operand is read must not take its register.
    u32 low, high;
    inline_ptx("mul.lo.u32 {0}, {2}, {3};\nmul.hi.u32 {1}, {2}, {3};", out(low), out(high), in(a), in(a + 1));
    x[64 + i] = low;
    x[96 + i] = high;
    // A predicate, a variable that is read and written, a local register and a local label: each in a scope.
    pred big;
    inline_ptx("setp.gt.u32 {0}, {1}, 0x7fffffff;", out(big), in(a));
    u32 count = i;
    inline_ptx(
        "{\n.reg .pred p;\n.reg .u32 left;\nmov.u32 left, {1};\nagain:\nsetp.eq.u32 p, left, 0;\n@p bra done;\n"
        "add.u32 {0}, {0}, 2;\nsub.u32 left, left, 1;\nbra again;\ndone:\n}",
        inout(count), in(i % 4));
    x[128 + i] = select(big, count, count + 1000);
    u32 lane;
    inline_ptx("mov.u32 {0}, %laneid;", out(lane));
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

TEST_CASE("parameters, arrays and called functions may share names") {
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

TEST_CASE("inlined functions do the same as called ones") {
    const CompileOptions inlined{.passes = "inline,cfg,fold,simplify,cse,licm,dce,cfg", .verify_each = true};
    std::vector<float> x(64);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i) / 4;
    CHECK(run_compiled(calls, inlined, 64, x) == run(calls, 1, 64, x));
    CHECK(compile(calls.ast(), inlined).ptx.find("call (") == std::string::npos);
    CHECK(compile(calls.ast(), inlined).ptx.find(".func") == std::string::npos);
    const std::uint32_t numbers[] = {100, 1000};
    CHECK(run_compiled(same_names, inlined, 32, u32s(32, 5), numbers) == u32s(32, 1116));
}

TEST_CASE("ptxas accepts text and functions") {
    check_assembled(texts, 75);
    check_assembled(calls, 75);
}

}  // namespace
}  // namespace ikat::test
