// SPDX-License-Identifier: Apache-2.0
// Kernels at the edges of types, compared with the host: widened narrow loads, products, comparisons and addresses of
// negative numbers, offsets beyond 2^31, sums that must not be fused.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/differential/simt/run.hpp"

namespace ikat::test {
namespace {

using u32s = std::vector<std::uint32_t>;
using i64s = std::vector<std::int64_t>;

// ---- widening

template <class E>
const auto widened = kernel("widened", params("x", "y"), [](In<E> x, InOut<std::int64_t> y) {
    u32 i = thread_id().x;
    y[i * 4] = cast<i64>(x[i]);
    y[i * 4 + 1] = cast<i64>(cast<i32>(x[i]) * 3);
    y[i * 4 + 2] = cast<i64>(cast<u32>(x[i]));
    y[i * 4 + 3] = cast<i64>(x[i]) * 3 - 5;
});

template <class E>
void check_widened() {
    std::vector<E> x(32);
    for (std::uint32_t i = 0; i < 32; ++i) x[i] = E(0x9e3779b97f4a7c15u * i >> 13);
    x[1] = std::numeric_limits<E>::max(), x[2] = std::numeric_limits<E>::min(), x[3] = E(-1);
    auto y = simt_device().upload(i64s(128), "y");
    simt_device().launch(widened<E>, runtime::Grid{{1}, {32}}, simt_device().upload(x, "x"), y);
    const i64s got = y.download();
    for (std::size_t i = 0; i < 32; ++i) {
        CHECK(got[i * 4] == std::int64_t(x[i]));
        CHECK(got[i * 4 + 1] == std::int64_t(std::int32_t(std::uint32_t(std::int32_t(x[i])) * 3)));
        CHECK(got[i * 4 + 2] == std::int64_t(std::uint32_t(x[i])));
        CHECK(got[i * 4 + 3] == std::int64_t(x[i]) * 3 - 5);
    }
}

TEST_CASE("narrow loads are extended according to their type") {
    check_widened<std::int8_t>();
    check_widened<std::uint8_t>();
    check_widened<std::int16_t>();
    check_widened<std::uint16_t>();
    check_widened<std::int32_t>();
    check_widened<std::uint32_t>();
}

const auto widened_or_not = kernel("widened_or_not", params("x", "y"), [](In<std::int16_t> x, InOut<std::int32_t> y) {
    u32 i = thread_id().x;
    y[i] = cast<i32>(x.load_if((i & 1) == 0, i, -3));
});

TEST_CASE("a value that replaces a narrow load is extended, too") {
    std::vector<std::int16_t> x(32);
    std::vector<std::int32_t> expected(32);
    for (std::int32_t i = 0; i < 32; ++i) x[i] = std::int16_t(i - 9), expected[i] = i % 2 == 0 ? i - 9 : -3;
    auto y = simt_device().upload(std::vector<std::int32_t>(32), "y");
    simt_device().launch(widened_or_not, runtime::Grid{{1}, {32}}, simt_device().upload(x, "x"), y);
    CHECK(y.download() == expected);
}

/// x * 2^n in 64 bits, as shifts and as products: mul.wide may be used only below 2^31.
const auto shifted = kernel("shifted", params("x", "y"), [](In<std::int32_t> x, InOut<std::int64_t> y) {
    u32 i = thread_id().x;
    auto s = cast<i64>(x[i]);
    auto u = cast<i64>(cast<u64>(bit_cast<u32>(x[i])));
    for (std::uint32_t n = 0; n < 5; ++n) {
        y[i * 25 + n * 5] = s << (29 + n);
        y[i * 25 + n * 5 + 1] = u << (29 + n);
        y[i * 25 + n * 5 + 2] = s * (std::int64_t(1) << (29 + n));
        y[i * 25 + n * 5 + 3] = u * (std::int64_t(1) << (29 + n));
        y[i * 25 + n * 5 + 4] = s * -(std::int64_t(1) << (29 + n)) + u;
    }
});

TEST_CASE("products and shifts by powers of two around 2^31") {
    std::vector<std::int32_t> x{0, 1, -1, 2, -2, 3, 1 << 30, INT32_MAX, INT32_MIN, INT32_MIN + 1, -12345, 54321};
    auto y = simt_device().upload(i64s(x.size() * 25), "y");
    simt_device().launch(shifted, runtime::Grid{{1}, {std::uint32_t(x.size())}}, simt_device().upload(x, "x"), y);
    const i64s got = y.download();
    for (std::size_t i = 0; i < x.size(); ++i)
        for (std::uint32_t n = 0; n < 5; ++n) {
            const auto s = std::uint64_t(std::int64_t(x[i])), u = std::uint64_t(std::uint32_t(x[i]));
            const auto at = [&](std::size_t k) { return std::uint64_t(got[i * 25 + n * 5 + k]); };
            INFO(x[i] << " by 2^" << 29 + n);
            CHECK(at(0) == s << (29 + n));
            CHECK(at(1) == u << (29 + n));
            CHECK(at(2) == s << (29 + n));
            CHECK(at(3) == u << (29 + n));
            CHECK(at(4) == u - (s << (29 + n)));
        }
}

// ---- addresses

/// Elements of a table in which element k is k, indexed by sums and differences with constants on either side.
const auto differences =
    kernel("differences", params("x", "y", "a", "b"), [](In<std::uint32_t> x, InOut<std::uint32_t> y, u32 a, u32 b) {
        Shared<std::uint32_t, 64> s;
        u32 i = thread_id().x;
        s[i] = i, s[i + 32] = i + 32;
        sync_block();
        auto wide_a = cast<i64>(bit_cast<i32>(a)), wide_b = cast<i64>(bit_cast<i32>(b));
        y[0] = x[a - (b + 3)];
        y[1] = x[(a + 5) - (b - 3)];
        y[2] = x[(a - 5) - b];
        y[3] = s[a - (b + 3)];
        y[4] = s[(a + 5) - (b - 3)];
        y[5] = x[cast<u64>(wide_a - (wide_b + 3))];
        y[6] = x[cast<u64>((wide_a - 4) - (wide_b - 9))];
        y[7] = x[cast<u64>(cast<i64>(bit_cast<i32>(b) - 60) + 60)];
        y[8] = x[cast<u64>(cast<i64>(bit_cast<i32>(b - 60)) * 2 + 120)];
        y[9] = s[(b + 17) * 2 - a];
        y[10] = x[(a - b) * 2 - (b + 1)];
    });

TEST_CASE("addresses of differences keep the signs of their constants") {
    u32s x(256);
    for (std::uint32_t k = 0; k < 256; ++k) x[k] = k;
    const std::uint32_t a = 40, b = 11;
    auto y = simt_device().upload(u32s(11), "y");
    simt_device().launch(differences, runtime::Grid{{1}, {32}}, simt_device().upload(x, "x"), y, a, b);
    CHECK(y.download() == u32s{a - b - 3, a - b + 8, a - b - 5, a - b - 3, a - b + 8, a - b - 3, a - b + 5, b, 2 * b,
                               2 * b + 34 - a, 2 * (a - b) - b - 1});
}

/// Relative to an address far outside: adding the constant gives an element inside.
template <std::uint64_t constant>
const auto far = kernel("far", params("x", "y", "first"), [](In<std::uint32_t> x, InOut<std::uint32_t> y, u64 first) {
    u32 i = thread_id().x;
    y[i] = x[cast<u64>(i) + first + constant] + x[(first + (constant + 1)) + cast<u64>(i)];
    y[i + 32] = x.slice(first).slice(constant)[i];
});

template <std::uint64_t constant>
void check_far(const runtime::Buffer<std::uint32_t>& x) {
    auto y = simt_device().upload(u32s(64), "y");
    simt_device().launch(far<constant>, runtime::Grid{{1}, {32}}, x, y, 7 - constant);
    const u32s got = y.download();
    INFO(constant);
    for (std::uint32_t i = 0; i < 32; ++i) {
        CHECK(got[i] == 2 * (i + 7) + 1);
        CHECK(got[i + 32] == i + 7);
    }
}

TEST_CASE("constants of 2^31 to 2^32 bytes and beyond in an address") {
    u32s x(64);
    for (std::uint32_t k = 0; k < 64; ++k) x[k] = k;
    const auto buffer = simt_device().upload(x, "x");
    check_far<(1u << 29) - 1>(buffer);  // bytes: 2^31 - 4
    check_far<(1u << 29)>(buffer);
    check_far<(1u << 29) + 5>(buffer);
    check_far<(1u << 30) - 4>(buffer);  // 2^32 - 16
    check_far<(1u << 30)>(buffer);
    check_far<(1ull << 32) - 1>(buffer);
    check_far<(1ull << 40) + 3>(buffer);
}

/// One address with different constants on each path: the common part is computed on both.
const auto either_way = kernel("either_way", params("x", "y"), [](In<std::uint32_t> x, InOut<std::uint32_t> y) {
    u32 i = thread_id().x;
    u32 number = x[i];
    if_((i & 1) == 0, [&] { y[i + 32] = number; }).else_([&] { y[i + 64] = number + 100; });
});

TEST_CASE("addresses on both paths of a branch") {
    u32s expected(128, 7);
    u32s x(32);
    for (std::uint32_t i = 0; i < 32; ++i) {
        x[i] = i * i;
        expected[i % 2 == 0 ? i + 32 : i + 64] = i % 2 == 0 ? x[i] : x[i] + 100;
    }
    auto y = simt_device().upload(u32s(128, 7), "y");
    simt_device().launch(either_way, runtime::Grid{{1}, {32}}, simt_device().upload(x, "x"), y);
    CHECK(y.download() == expected);
}

// ---- arithmetic

const auto separate = kernel("separate", params("x", "y"), [](In<float> x, InOut<float> y) {
    u32 i = thread_id().x;
    y[i * 4] = x[i] * x[i] + x[i + 1];
    y[i * 4 + 1] = x[i + 1] - x[i] * x[i];
    y[i * 4 + 2] = fma(x[i], x[i], x[i + 1]);
    f32 product = x[i] * x[i];
    y[i * 4 + 3] = product - x[i + 1];
});

TEST_CASE("a product and a sum round twice, fma once") {
    std::vector<float> x;
    for (int k = 1; k <= 16; ++k) x.insert(x.end(), {1 + float(k) * 0x1p-23f, -1 - float(2 * k) * 0x1p-23f});
    x.push_back(1);
    auto y = simt_device().upload(std::vector<float>(128), "y");
    simt_device().launch(separate, runtime::Grid{{1}, {32}}, simt_device().upload(x, "x"), y);
    const std::vector<float> got = y.download();
    int differ = 0;
    for (std::size_t i = 0; i < 32; ++i) {
        const volatile float product = x[i] * x[i];
        const float fused = std::fma(x[i], x[i], x[i + 1]);
        CHECK(got[i * 4] == product + x[i + 1]);
        CHECK(got[i * 4 + 1] == x[i + 1] - product);
        CHECK(got[i * 4 + 2] == fused);
        CHECK(got[i * 4 + 3] == product - x[i + 1]);
        differ += fused != product + x[i + 1];
    }
    CHECK(differ > 8);  // or the test says nothing
}

const auto rounded = kernel("rounded", params("x", "y"), [](In<float> x, InOut<std::int32_t> y) {
    u32 i = thread_id().x;
    y[i * 4] = cast<i32>(x[i], Rounding::Nearest);
    y[i * 4 + 1] = cast<i32>(x[i], Rounding::Zero);
    y[i * 4 + 2] = cast<i32>(x[i], Rounding::Down);
    y[i * 4 + 3] = cast<i32>(x[i], Rounding::Up);
});

TEST_CASE("four rounding modes of one value give four numbers") {
    std::vector<float> x;
    for (int k = 0; k < 32; ++k) x.push_back(float(k - 16) / 4 + 0.125f);
    auto y = simt_device().upload(std::vector<std::int32_t>(128), "y");
    simt_device().launch(rounded, runtime::Grid{{1}, {32}}, simt_device().upload(x, "x"), y);
    const std::vector<std::int32_t> got = y.download();
    for (std::size_t i = 0; i < 32; ++i) {
        CHECK(got[i * 4] == std::int32_t(std::nearbyint(x[i])));
        CHECK(got[i * 4 + 1] == std::int32_t(std::trunc(x[i])));
        CHECK(got[i * 4 + 2] == std::int32_t(std::floor(x[i])));
        CHECK(got[i * 4 + 3] == std::int32_t(std::ceil(x[i])));
    }
}

const auto wide_products = kernel("wide_products", params("x", "y"), [](In<std::int32_t> x, InOut<std::uint64_t> y) {
    u32 i = thread_id().x;
    i32 a = x[i], b = x[i ^ 1];
    y[i * 2] = bit_cast<u64>(mul_wide(a, b));
    y[i * 2 + 1] = mul_wide(bit_cast<u32>(a), bit_cast<u32>(b));
});

TEST_CASE("the wide product of the same bits, signed and unsigned") {
    std::vector<std::int32_t> x(32);
    for (std::uint32_t i = 0; i < 32; ++i) x[i] = std::int32_t(0x9e3779b9u * (i + 1));
    auto y = simt_device().upload(std::vector<std::uint64_t>(64), "y");
    simt_device().launch(wide_products, runtime::Grid{{1}, {32}}, simt_device().upload(x, "x"), y);
    const std::vector<std::uint64_t> got = y.download();
    for (std::size_t i = 0; i < 32; ++i) {
        CHECK(got[i * 2] == std::uint64_t(std::int64_t(x[i]) * x[i ^ 1]));
        CHECK(got[i * 2 + 1] == std::uint64_t(std::uint32_t(x[i])) * std::uint32_t(x[i ^ 1]));
    }
}

/// Comparisons of a number that is at least 8 with one that is at most 8; and the remainder of a number that is at most
/// the divisor.
template <class T>
const auto touching = kernel("touching", params("x", "y"), [](In<T> x, InOut<std::uint32_t> y) {
    u32 i = thread_id().x;
    auto above = value(max(x[i], 8)), below = value(min(x[i ^ 1], 8));
    const auto ask = [&](const auto& a, const auto& b) {
        return cast<u32>(a < b) | cast<u32>(a <= b) << 1 | cast<u32>(a > b) << 2 | cast<u32>(a >= b) << 3 |
               cast<u32>(a == b) << 4 | cast<u32>(a != b) << 5;
    };
    y[i * 3] = ask(above, below);
    y[i * 3 + 1] = ask(below, above);
    y[i * 3 + 2] = cast<u32>(max(min(x[i], 9), 0) % 9);
});

template <class T>
void check_touching() {
    std::vector<T> x;
    for (const int a : {0, 7, 8, 9})
        for (const int b : {0, 7, 8, 9}) x.insert(x.end(), {T(a), T(b)});
    auto y = simt_device().upload(u32s(96), "y");
    simt_device().launch(touching<T>, runtime::Grid{{1}, {32}}, simt_device().upload(x, "x"), y);
    const u32s got = y.download();
    const auto ask = [](T a, T b) {
        return std::uint32_t((a < b) | (a <= b) << 1 | (a > b) << 2 | (a >= b) << 3 | (a == b) << 4 | (a != b) << 5);
    };
    for (std::size_t i = 0; i < 32; ++i) {
        const T above = std::max(x[i], T(8)), below = std::min(x[i ^ 1], T(8));
        CHECK(got[i * 3] == ask(above, below));
        CHECK(got[i * 3 + 1] == ask(below, above));
        CHECK(got[i * 3 + 2] == std::uint32_t(x[i] % 9));
    }
}

TEST_CASE("comparisons and remainders of numbers whose ranges touch") {
    check_touching<std::uint32_t>();
    check_touching<std::int32_t>();
    check_touching<std::int64_t>();
}

}  // namespace
}  // namespace ikat::test
