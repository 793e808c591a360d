// SPDX-License-Identifier: Apache-2.0
// Values of 8, 16 and 64 bits in operations on 32-bit registers: shuffles, matches, reductions, ranges, text, vectors,
// structs, called functions.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/differential/simt/run.hpp"

namespace ikat::test {
namespace {

using u32s = std::vector<std::uint32_t>;

/// Each lane's value from the lane two above, and from the lane with its reversed number.
template <class E>
const auto shuffled = kernel("shuffled", params("x", "y"), [](In<E> x, InOut<E> y) {
    u32 i = thread_id().x;
    auto v = x[i];
    y[i] = shuffle_down(v, 2);
    y[32 + i] = shuffle_idx(v, 31 - i);
    y[64 + i] = shuffle_xor(v, 5);
    y[96 + i] = shuffle_up(v, 1);
});

template <class E>
E pattern(std::uint32_t i) {
    const ir::Word mask = ~ir::Word{0} >> (64 - 8 * sizeof(E));
    return ir::from_word<E>(0x9e3779b97f4a7c15u * (i + 1) & mask);
}
template <class E>
bool same(const E& a, const E& b) {
    return ir::to_word(a) == ir::to_word(b);
}

template <class E>
void check_shuffles() {
    std::vector<E> x(32);
    for (std::uint32_t i = 0; i < 32; ++i) x[i] = pattern<E>(i);
    auto y = simt_device().upload(std::vector<E>(128), "y");
    simt_device().launch(shuffled<E>, runtime::Grid{{1}, {32}}, simt_device().upload(x, "x"), y);
    const std::vector<E> got = y.download();
    for (std::uint32_t i = 0; i < 32; ++i) {
        CHECK(same(got[i], x[i + 2 < 32 ? i + 2 : i]));
        CHECK(same(got[32 + i], x[31 - i]));
        CHECK(same(got[64 + i], x[i ^ 5]));
        CHECK(same(got[96 + i], x[i > 0 ? i - 1 : 0]));
    }
    check_assembled(shuffled<E>, sizeof(E) == 1 && ir::is_float(ir::type_of<E>) ? 89 : 75);
}

TEST_CASE("shuffles of each width") {
    check_shuffles<std::int8_t>();
    check_shuffles<std::uint8_t>();
    check_shuffles<std::int16_t>();
    check_shuffles<std::uint16_t>();
    check_shuffles<half>();
    check_shuffles<bfloat16>();
    check_shuffles<half2>();
    check_shuffles<bfloat16x2>();
    check_shuffles<e4m3>();
    check_shuffles<std::int64_t>();
    check_shuffles<std::uint64_t>();
    check_shuffles<double>();
}

const auto together = kernel("together", params("x", "y"), [](InOut<std::uint32_t> x, InOut<std::int8_t> y) {
    u32 i = thread_id().x;
    i8 small = y[i];
    u16 group = cast<u16>(i / 8);
    x[i] = match_any(small);
    x[32 + i] = match_all(group, match_any(group));
    pred agree = all_match(group), these = all_match(group, match_any(group));
    x[64 + i] = select(agree, 1u, 0u) + select(these, 2u, 0u);
    y[32 + i] = reduce_min(small);
    y[64 + i] = reduce_add(small);
    x[96 + i] = cast<u32>(reduce_max(group));
});

TEST_CASE("matches and reductions of narrow integers") {
    std::vector<std::int8_t> y(96);
    for (std::uint32_t i = 0; i < 32; ++i) y[i] = std::int8_t(i * 37 % 5 - 100);
    auto bytes = simt_device().upload(y, "y");
    const u32s got = run(together, 1, 32, u32s(128), bytes);
    const auto low = bytes.download();
    std::uint32_t sum = 0;
    for (std::uint32_t i = 0; i < 32; ++i) sum += std::uint32_t(y[i]);
    for (std::uint32_t i = 0; i < 32; ++i) {
        std::uint32_t alike = 0;
        for (std::uint32_t k = 0; k < 32; ++k) alike |= std::uint32_t(y[k] == y[i]) << k;
        CHECK(got[i] == alike);
        CHECK(got[32 + i] == 0xffu << (i / 8 * 8));
        CHECK(got[64 + i] == 2);
        CHECK(got[96 + i] == 3);
        CHECK(low[32 + i] == -100);
        CHECK(low[64 + i] == std::int8_t(sum));
    }
    check_assembled(together, 80);
}

// Loops over numbers of 8 and 16 bits count to the end of their types and do not wrap.
const auto ranges = kernel("ranges", params("x", "n", "m"), [](InOut<std::uint32_t> x, u16 n, i8 m) {
    for (auto k : range(n)) x[0] += cast<u32>(k);
    for (auto k : range(n - 3, n, 2)) {
        u16 held = k;
        x[1] += cast<u32>(held);
    }
    for (auto k : range(i8(-128), m, 50).unroll(2)) x[2] += cast<u32>(cast<i32>(k) + 1000);
    for (auto k : range(cast<u8>(n), 255)) x[3] += cast<u32>(k) - 254;
});

TEST_CASE("ranges of narrow integers") {
    const std::uint16_t n = 65535;
    const std::int8_t m = 127;
    const u32s got = run(ranges, 1, 1, u32s(4), n, m);
    CHECK(got[0] == 65534u * 65535u / 2);
    CHECK(got[1] == 65532u + 65534u);
    CHECK(got[2] == 872u + 922 + 972 + 1022 + 1072 + 1122);
    CHECK(got[3] == 0);  // from 255 on there is nothing
    const std::uint16_t minimum = 254;
    const std::int8_t none = -128;
    const u32s few = run(ranges, 1, 1, u32s(4), minimum, none);
    CHECK(few[2] == 0);
    CHECK(few[3] == 0);
    check_assembled(ranges, 75);
}

const auto narrow_texts =
    kernel("texts", params("x", "y", "h"), [](InOut<std::uint16_t> x, InOut<std::int8_t> y, InOut<half> h) {
        u32 i = thread_id().x;
        u16 a = x[i], sum;
        inline_ptx("add.u16 {0}, {1}, {2};", out(sum), in(a), in(a));
        x[32 + i] = sum;
        i8 b = y[i], shifted;
        inline_ptx("shl.b32 {0}, {1}, 1;", out(shifted), in(b));
        inline_ptx("add.s32 {0}, {0}, 100;", inout(b));
        y[32 + i] = shifted;
        y[64 + i] = b;
        f16 v = h[i], twice;
        inline_ptx("add.rn.f16 {0}, {1}, {1};", out(twice), in(v));
        h[32 + i] = twice;
        u8 byte;
        inline_ptx("cvt.u32.u16 {0}, {1};", out(byte), in(a));
        x[64 + i] = cast<u16>(byte);
    });

TEST_CASE("text on narrow operands") {
    std::vector<std::uint16_t> x(96);
    std::vector<std::int8_t> y(96);
    std::vector<half> h(64);
    for (std::uint32_t i = 0; i < 32; ++i)
        x[i] = std::uint16_t(i * 5000), y[i] = std::int8_t(i * 11 - 128), h[i] = half(float(i) - 8);
    auto bytes = simt_device().upload(y, "y");
    auto halves = simt_device().upload(h, "h");
    const auto got = run(narrow_texts, 1, 32, x, bytes, halves);
    const auto low = bytes.download();
    const auto floats = halves.download();
    for (std::uint32_t i = 0; i < 32; ++i) {
        CHECK(got[32 + i] == std::uint16_t(2 * x[i]));
        CHECK(low[32 + i] == std::int8_t(y[i] * 2));
        CHECK(low[64 + i] == std::int8_t(y[i] + 100));
        CHECK(float(floats[32 + i]) == 2 * float(h[i]));
        CHECK(got[64 + i] == (x[i] & 255));
    }
    check_assembled(narrow_texts, 75);
}

// 16 bytes in one access for any element type: changed, under a condition, from shared memory.
template <class E, int N>
const auto long_vectors = kernel("long_vectors", params("x", "y", "n"), [](In<E> x, InOut<E> y, u32 n) {
    u32 i = thread_id().x;
    Shared<E, 32 * N> s;
    auto v = x.template vec<N>(i);
    y.template vec<N>(i) = v;
    s.flat().template vec<N>(31 - i) = v;
    sync_block();
    y.template vec<N>(32 + i) = s.flat().template vec<N>(i);
    auto some = x.template load_if<N>(i < n, i, x[0]);
    y.template store_if<N>(i < n + 1, 64 + i, some);
});

template <class E, int N>
void check_long_vectors() {
    std::vector<E> x(32 * N);
    for (std::uint32_t i = 0; i < x.size(); ++i) x[i] = pattern<E>(i);
    auto y = simt_device().upload(std::vector<E>(96 * N), "y");
    const std::uint32_t n = 7;
    simt_device().launch(long_vectors<E, N>, runtime::Grid{{1}, {32}}, simt_device().upload(x, "x"), y, n);
    const std::vector<E> got = y.download();
    for (std::uint32_t i = 0; i < 32 * N; ++i) {
        const std::uint32_t row = i / N, column = i % N;
        CHECK(same(got[i], x[i]));
        CHECK(same(got[32 * N + i], x[(31 - row) * N + column]));
        CHECK(same(got[64 * N + i], row < n ? x[i] : row == n ? x[0] : E{}));
    }
    const std::string ptx = compile(long_vectors<E, N>.ast(), {.target = "sm_80"}).ptx;
    if (N * sizeof(E) == 16) {
        CHECK(ptx.find("ld.global.nc.v4.u32") != ptx.npos);
        CHECK(ptx.find("st.global.v4.u32") != ptx.npos);
    }
    check_assembled(long_vectors<E, N>, 75);
}

TEST_CASE("vectors of 8 and 16 elements") {
    check_long_vectors<half, 8>();
    check_long_vectors<bfloat16, 8>();
    check_long_vectors<std::int16_t, 8>();
    check_long_vectors<std::uint8_t, 8>();
    check_long_vectors<std::uint8_t, 16>();
    check_long_vectors<std::int8_t, 16>();
}

// Arithmetic on the elements: bytes that are not wrapped before they are packed, floats that are converted in pairs.
const auto computed = kernel("computed", params("x", "h"), [](InOut<std::uint8_t> x, InOut<half> h) {
    auto v = x.vec<16>(0);
    const auto bytes = [&]<std::size_t... k>(std::index_sequence<k...>) {
        return Vec<std::uint8_t, 16>(cast<u8>(cast<u32>(v[k]) * 3 + std::uint32_t(k))...);
    }
    (std::make_index_sequence<16>{});
    x.vec<16>(1) = bytes;
    auto f = h.vec<8>(0);
    const auto halves = [&]<std::size_t... k>(std::index_sequence<k...>) {
        return Vec<half, 8>(cast<f16>(cast<f32>(f[k]) * 2 + float(k))...);
    }
    (std::make_index_sequence<8>{});
    h.vec<8>(1) = halves;
});

TEST_CASE("elements of long vectors compute") {
    std::vector<std::uint8_t> x(32);
    std::vector<half> h(16);
    for (std::uint32_t i = 0; i < 16; ++i) x[i] = std::uint8_t(i * 31), h[i % 8] = half(float(i % 8) / 4);
    auto halves = simt_device().upload(h, "h");
    const auto got = run(computed, 1, 1, x, halves);
    const auto floats = halves.download();
    for (std::uint32_t i = 0; i < 16; ++i) CHECK(got[16 + i] == std::uint8_t(x[i] * 3 + i));
    for (std::uint32_t i = 0; i < 8; ++i) CHECK(float(floats[8 + i]) == float(h[i]) * 2 + float(i));
    check_assembled(computed, 75);
}

const auto minimum = device_fn("least", params("a", "b"), [](i8 a, i8 b) { return min(a, b); });
const auto mixed = device_fn("mixed", params("a", "h", "p"), [](u16 a, f16 h, f16x2 p) {
    return fma(pack(h, h), p, pack<f16x2>(cast<f32>(a), cast<f32>(a)));
});
const auto narrow_calls = kernel("calls", params("x", "y"), [](InOut<std::int8_t> x, InOut<half2> y) {
    u32 i = thread_id().x;
    x[32 + i] = minimum(x[i], x[31 - i]);
    y[i] = mixed(cast<u16>(i), cast<f16>(i), y[i]);
});

TEST_CASE("functions of narrow numbers are called") {
    std::vector<std::int8_t> x(64);
    std::vector<half2> y(32);
    for (std::uint32_t i = 0; i < 32; ++i) x[i] = std::int8_t(i * 9 - 128), y[i] = {half(1.0f), half(float(i % 4))};
    auto pairs = simt_device().upload(y, "y");
    const auto got = run(narrow_calls, 1, 32, x, pairs);
    const auto products = pairs.download();
    for (std::uint32_t i = 0; i < 32; ++i) {
        CHECK(got[32 + i] == std::min(x[i], x[31 - i]));
        CHECK(float(products[i].x) == float(2 * i));
        CHECK(float(products[i].y) == float(i * (i % 4) + i));
    }
    check_assembled(narrow_calls, 75);
}

const DeviceFunction<std::uint32_t, u32, u32> binomial =
    device_fn("binomial", params("n", "k"), [](u32 n, u32 k) -> u32 {
        u32 out = 1;
        if_((k > 0) & (k < n), [&] {
            u32 left = binomial(n - 1, k - 1);
            out = left + binomial(n - 1, k);
        });
        return out;
    });
const auto triangle = kernel("triangle", params("x"), [](InOut<std::uint32_t> x) {
    u32 i = thread_id().x;
    x[i] = binomial(i / 4 + 2, i % 4);
});

TEST_CASE("a function calls itself") {
    const u32s got = run(triangle, 1, 32, u32s(32));
    for (std::uint32_t i = 0; i < 32; ++i) {
        std::uint32_t row[16] = {1};
        const std::uint32_t n = i / 4 + 2, k = i % 4;
        for (std::uint32_t r = 1; r <= n; ++r)
            for (std::uint32_t c = r; c > 0; --c) row[c] += row[c - 1];
        CHECK(got[i] == (k > n ? 1 : row[k]));
    }
    if (tests::skip_without_ptxas()) return;
    const std::string ptx = compile(triangle.ast(), {.target = "sm_80"}).ptx;
    CHECK(tests::assemble(ptx, "sm_80").assembled);  // with a warning: how deep it goes is not known
}

const auto swapped = kernel("swapped", params("x", "n"), [](InOut<std::uint32_t> x, u32 n) {
    u32 a = x[0], b = x[1];
    for (auto k : range(n)) {
        swap(a, b);
        a += k;
    }
    Regs<u32, 4> r;
    for (std::uint32_t k = 0; k < 4; ++k) r[k] = k;
    std::ranges::reverse(r);
    x[0] = a;
    x[1] = b;
    for (std::uint32_t k = 0; k < 4; ++k) x[2 + k] = r[k];
});

TEST_CASE("variables are exchanged") {
    for (std::uint32_t n : {0u, 1u, 6u}) {
        std::uint32_t a = 10, b = 20;
        for (std::uint32_t k = 0; k < n; ++k) std::swap(a, b), a += k;
        const u32s got = run(swapped, 1, 1, u32s{10, 20, 0, 0, 0, 0}, n);
        CHECK(got == u32s{a, b, 3, 2, 1, 0});
    }
}

// Exponentials and tangents in 16 bits, and operations that absorb a clamp.
const auto approximate = kernel("approximate", params("x", "y"), [](In<half> x, InOut<float> y) {
    u32 i = thread_id().x;
    f16 v = x[i];
    bf16 w = cast<bf16>(cast<f32>(v));
    y[i] = cast<f32>(approx::exp2(v));
    y[32 + i] = cast<f32>(approx::tanh(w));
    auto both = approx::exp2(pack(w, w));
    y[64 + i] = cast<f32>(both[1]);
    y[96 + i] = saturate(cast<f32>(v) * 0.25f + 0.5f);
    y[128 + i] = cast<f32>(saturate(v + v));
});

TEST_CASE("approximations in 16 bits, clamped sums") {
    std::vector<half> x(32);
    for (std::uint32_t i = 0; i < 32; ++i) x[i] = half(float(int(i) - 16) / 4);
    const auto input = simt_device().upload(x, "x");
    auto y = simt_device().upload(std::vector<float>(160), "y");
    simt_device().launch(approximate, runtime::Grid{{1}, {32}}, input, y);
    const auto got = y.download();
    const auto clamped = [](float v) { return std::min(std::max(v, 0.0f), 1.0f); };
    for (std::uint32_t i = 0; i < 32; ++i) {
        const float v = float(x[i]);
        CHECK(std::abs(got[i] / std::exp2(v) - 1) <= 0x1p-9f);       // f16: 2^-9.9, and the rounding of the result
        CHECK(std::abs(got[32 + i] - std::tanh(v)) <= 0x1p-7f);      // bf16: 2^-8
        CHECK(std::abs(got[64 + i] / std::exp2(v) - 1) <= 0x1p-6f);  // bf16: 2^-7
        CHECK(got[96 + i] == clamped(v * 0.25f + 0.5f));
        CHECK(got[128 + i] == clamped(2 * v));
    }
    check_assembled(approximate, 75);
    const std::string ptx = compile(approximate.ast(), {.target = "sm_90"}).ptx;
    for (const char* instruction :
         {"ex2.approx.f16 ", "tanh.approx.bf16 ", "ex2.approx.ftz.bf16x2 ", "add.rn.sat.f32 ", "add.rn.sat.f16 "})
        CHECK(ptx.find(instruction) != ptx.npos);
}

template <class E>
const auto compared = kernel("compared", params("x", "y"), [](In<E> x, Out<E> y) {
    u32 i = thread_id().x;
    auto a = x[i], b = x[32 + i];
    y[i] = lanes_less(a, b) + lanes_equal(a, b) * 2 + lanes_greater_equal(b, a) * 4;
    y[32 + i] = lanes_not_equal(a, b) + lanes_less_equal(b, 1) * 2 + lanes_greater(a, 0) * 4;
});

template <class E>
void check_compared() {
    using Lane = typename E::lane_type;
    std::vector<E> x(64);
    const float numbers[] = {0, -0.0f, 1, -2, std::numeric_limits<float>::quiet_NaN(), 1e4f};
    for (std::uint32_t i = 0; i < 64; ++i) x[i] = {Lane(numbers[i * 7 % 6]), Lane(numbers[(i / 32 + i) * 5 / 3 % 6])};
    auto y = simt_device().upload(std::vector<E>(64), "y");
    simt_device().launch(compared<E>, runtime::Grid{{1}, {32}}, simt_device().upload(x, "x"), y);
    const auto got = y.download();
    const auto first = [](float a, float b) { return float((a < b) + 2 * (a == b) + 4 * (b >= a)); };
    const auto second = [](float a, float b) { return float((a != b) + 2 * (b <= 1) + 4 * (a > 0)); };
    for (std::uint32_t i = 0; i < 32; ++i) {
        CHECK(float(got[i].x) == first(float(x[i].x), float(x[32 + i].x)));
        CHECK(float(got[i].y) == first(float(x[i].y), float(x[32 + i].y)));
        CHECK(float(got[32 + i].x) == second(float(x[i].x), float(x[32 + i].x)));
        CHECK(float(got[32 + i].y) == second(float(x[i].y), float(x[32 + i].y)));
    }
    check_assembled(compared<E>, 75);
}

TEST_CASE("comparisons of both lanes") {
    check_compared<half2>();
    check_compared<bfloat16x2>();
}

}  // namespace
}  // namespace ikat::test
