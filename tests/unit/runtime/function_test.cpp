// SPDX-License-Identifier: Apache-2.0
// Functions with return_value(): called and inlined ones.
#include <ikat/ikat.hpp>

#include <cmath>

#include "tests/catch.hpp"
#include "tests/unit/runtime/emulator.hpp"

namespace ikat::tests {
namespace {

/// The first power of two above v, returned from inside two loops; 0 below 1.
constexpr auto above = [](const auto& v) {
    return inline_fn([&] {
        if_(v < 1, [&] { return_value(0); });
        for (auto i : range(3))
            for (auto j : range(4)) {
                u32 power = u32(1) << (4 * i + j);
                if_(cast<f32>(power) > v, [&] { return_value(cast<f32>(power)); });
            }
        return 4096.0f;
    })();
};

const auto limited = device_fn("limited", params("x", "n"), [](f32 x, u32 n) {
    if_(x < 0, [&] { return_value(0); });
    for (auto i : range(n)) {
        if_(x < cast<f32>(i * i), [&] { return_value(cast<f32>(i)); });
    }
    return x;
});

const auto both = kernel("both", params("x", "y", "z"), [](In<float> x, Out<float> y, Out<float> z) {
    u32 i = global_id().x;
    y[i] = above(x[i]);
    z[i] = limited(x[i], 5);
});

TEST_CASE("return_value returns a value from inside loops") {
    std::vector<float> host;
    for (int i = 0; i < 64; ++i) host.push_back(float(i) * 0.75f * float(i) - 2);
    const Device device = emulator();
    const auto x = device.upload(host);
    auto y = device.buffer<float>(64), z = device.buffer<float>(64);
    device.launch(both, grid(64, 32), x, y, z);
    const auto powers = y.download(), roots = z.download();
    for (std::size_t i = 0; i < 64; ++i) {
        INFO(host[i]);
        float power = host[i] < 1 ? 0 : 1;
        while (power > 0 && power <= host[i] && power < 4096) power *= 2;
        CHECK(powers[i] == power);
        float root = host[i];
        for (int n = 0; n < 5; ++n)
            if (root == host[i] && host[i] < float(n * n)) root = float(n);
        CHECK(roots[i] == (host[i] < 0 ? 0 : root));
    }
}

TEST_CASE("threads that leave an inlined function early reconverge after it") {
    const auto k = kernel("back", params("x"), [](InOut<std::uint32_t> x) {
        Shared<std::uint32_t, 64> s;
        const auto t = thread_id().x;
        inline_fn([&] {
            s[t] = 1;
            if_(t % 3 == 0, [&] { return_value(); });
            inline_fn([&] {
                if_(t % 3 == 1, [&] { return_value(); });
                s[t] += 10;
            })();
            s[t] += 100;
        })();
        sync_block();
        x[t] = s[63 - t];
    });
    const Device device = emulator();
    auto x = device.buffer<std::uint32_t>(64);
    device.launch(k, grid(64, 64), x);
    const auto got = x.download();
    for (std::uint32_t t = 0; t < 64; ++t) {
        const std::uint32_t from = (63 - t) % 3;
        CHECK(got[t] == (from == 0 ? 1u : from == 1 ? 101u : 111u));
    }
}

TEST_CASE("the condition of a while_ may call a function that is left early") {
    const auto k = kernel("condition", params("x"), [](InOut<std::uint32_t> x) {
        u32 n = 0;
        const auto goes_on = inline_fn([&] {
            if_(n == 7, [&] { return_value(false); });
            return n < 100;
        });
        while_([&] { return goes_on(); }, [&] { ++n; });
        x[0] = n;
    });
    const Device device = emulator();
    auto x = device.buffer<std::uint32_t>(1);
    device.launch(k, grid(1, 1), x);
    CHECK(x.download()[0] == 7);
}

TEST_CASE("the host may count in an inlined function, which runs once") {
    const auto k = kernel("counts", params("x"), [](InOut<std::uint32_t> x) {
        unsigned n = 0;
        inline_fn([&] {
            for (int i = 0; i < 3; ++i) x[n++] = 5;
        })();
        x[n] = n;
    });
    const Device device = emulator();
    auto x = device.buffer<std::uint32_t>(4);
    device.launch(k, grid(1, 1), x);
    CHECK(x.download() == std::vector<std::uint32_t>{5, 5, 5, 3});
}

}  // namespace

// ---- contraction

namespace {

// 1 + 2^-12: its square has a bit that does not fit a float.
const float a = 1 + 0x1p-12f, fused = std::fma(a, a, -1.0f), rounded = a * a - 1.0f;

const auto contracted = kernel("contracted", params("x", "y"), [](In<float> x, Out<float> y) {
                            f32 v = x[0], one = x[1];
                            y[0] = v * v + -one;
                            y[1] = v * v - one;
                            y[2] = one - v * v;
                            y[3] = exact([&] { return v * v; }) - one;
                            exact([&] { y[4] = v * v - one; });
                            y[5] = fma(v, v, -one);
                        }).contract();
const auto partly = kernel("partly", params("x", "y"), [](In<float> x, Out<float> y) {
    f32 v = x[0], one = x[1];
    y[0] = v * v - one;
    contract([&] {
        y[1] = v * v - one;
        exact([&] { y[2] = v * v - one; });
        y[3] = v * v - one;
    });
    y[4] = contract([&] { return v * v; }) - one;
    y[5] = contract([&] { return v * v - one; });
});

TEST_CASE("products and sums become one fma only inside contract") {
    REQUIRE(fused != rounded);
    const Device device = emulator();
    const auto x = device.upload(std::vector<float>{a, 1});
    auto y = device.buffer<float>(6);
    device.launch(contracted, grid(1, 1), x, y);
    CHECK(y.download() == std::vector<float>{fused, fused, -fused, rounded, rounded, fused});
    device.launch(partly, grid(1, 1), x, y);
    CHECK(y.download() == std::vector<float>{rounded, fused, rounded, fused, rounded, fused});
}

}  // namespace
}  // namespace ikat::tests
