// SPDX-License-Identifier: Apache-2.0
// The gradients of swiglu: of views, in place, of special values, by central differences, in any order of the warps.
#include "stdlib/backward/swiglu_backward.hpp"

#include <cmath>
#include <limits>

#include "stdlib/spec/expected.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/placed.hpp"
#include "tests/message.hpp"

namespace ikat::test {
namespace {
namespace swiglu_backward {

double silu(double x) { return x / (1 + std::exp(-x)); }

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return std::ranges::equal(
        a, b, [](float x, float y) { return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y); });
}

/// dgate and dup, which are alike wherever the arrays are, and in place.
template <class T>
void check_places(const runtime::Device& device, const Extents& extents) {
    using P = Placed<T>;
    std::vector<float> of_gate, of_up;
    const Place all[] = {Place::packed, Place::aligned, Place::odd, Place::permuted};
    for (std::size_t i = 0; i < std::size(all); ++i) {
        const auto place = [&](std::size_t k) { return all[(i + (i > 1 ? k : 0)) % std::size(all)]; };
        const P dy(device, place(0), extents, 1), gate(device, place(1), extents, 2), up(device, place(2), extents, 3),
            dgate(device, place(3), extents, 4), dup(device, place(5), extents, 5);
        INFO("place " << i << ", " << extents.back() << " columns");
        stdlib::swiglu_backward(device, dy, gate, up, dgate, dup);
        if (i == 0) of_gate = dgate.elements(), of_up = dup.elements();
        CHECK(same_bits(dgate.elements(), of_gate));
        CHECK(same_bits(dup.elements(), of_up));
        stdlib::swiglu_backward(device, dy, gate, up, gate, up);
        CHECK(same_bits(gate.elements(), of_gate));
        CHECK(same_bits(up.elements(), of_up));
        for (const P* each : {&dy, &gate, &up, &dgate, &dup}) CHECK(each->changed_gaps() == 0);
    }
}

}  // namespace swiglu_backward
}  // namespace

TEST_CASE("backward of swiglu: of views, and in place") {
    using namespace swiglu_backward;
    const runtime::Device device = open_device({.check = "strict,races"});
    for (const std::uint64_t columns : {1u, 16u, 61u}) {
        check_places<float>(device, {2, 3, columns});
        check_places<half>(device, {2, 1, 3, 2, columns});
        check_places<bfloat16>(device, {5, columns});
    }
    check_places<half>(device, {0, 8});
}

TEST_CASE("backward of swiglu: by central differences") {
    using namespace swiglu_backward;
    const runtime::Device device = open_device();
    const std::size_t n = 203;
    const auto x = random_elements<float>(n, 1, -6, 6), u = random_elements<float>(n, 2),
               g = random_elements<float>(n, 3);
    auto dgate = device.buffer<float>(n), dup = device.buffer<float>(n);
    stdlib::swiglu_backward(device, device.upload(g), device.upload(x), device.upload(u), dgate, dup);
    const auto of_gate = dgate.download(), of_up = dup.download();
    const double h = 1e-5;
    for (std::size_t i = 0; i < n; ++i) {
        const auto loss = [&](double gate, double up) { return double(g[i]) * silu(gate) * up; };
        const double a = double(x[i]), b = double(u[i]);
        CHECK(double(of_gate[i]) == Approx((loss(a + h, b) - loss(a - h, b)) / (2 * h)).margin(1e-5));
        CHECK(double(of_up[i]) == Approx((loss(a, b + h) - loss(a, b - h)) / (2 * h)).margin(1e-5));
    }
}

TEST_CASE("backward of swiglu: infinities, NaNs, subnormal and large numbers") {
    const runtime::Device device = open_device();
    const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    struct Row {
        float dy, gate, up, dgate, dup;
    };
    const Row rows[] = {{2, inf, 3, 6, inf},       {2, -inf, 3, 0, 0},           {1, 0, 4, 2, 0},
                        {1, 300, 2, 2, 300},       {1, -300, 2, 0, 0},           {inf, 1, 1, inf, inf},
                        {nan, 1, 1, nan, nan},     {1, nan, 1, nan, nan},        {1, 1, nan, nan, 0.7310586f},
                        {0, 5, 7, 0, 0},           {1, 1e-40f, 2, 1, 5e-41f},    {1e-40f, 0, 1, 5e-41f, 0},
                        {1e30f, 0, 1e30f, inf, 0}, {1e30f, -inf, 1e30f, nan, 0}, {1, 0, inf, inf, 0}};
    std::vector<float> dy, gate, up;
    for (const Row& row : rows) dy.push_back(row.dy), gate.push_back(row.gate), up.push_back(row.up);
    auto dgate = device.buffer<float>(std::size(rows)), dup = device.buffer<float>(std::size(rows));
    stdlib::swiglu_backward(device, device.upload(dy), device.upload(gate), device.upload(up), dgate, dup);
    const auto of_gate = dgate.download(), of_up = dup.download();
    const auto is = [](float got, float want) {
        return std::isnan(want) ? std::isnan(got)
                                : got == want || std::abs(got - want) <= 1e-6f * std::abs(want) + 1e-44f;
    };
    for (std::size_t i = 0; i < std::size(rows); ++i) {
        INFO("row " << i << ": " << of_gate[i] << " " << of_up[i]);
        CHECK(is(of_gate[i], rows[i].dgate));
        CHECK(is(of_up[i], rows[i].dup));
    }
}

TEST_CASE("backward of swiglu: the same bits in every order of the warps, without a race") {
    using namespace swiglu_backward;
    const std::size_t n = 3001;
    std::vector<float> first, second;
    for (const char* seed : {"0", "1", "2", "3"})
        for (const unsigned threads : {1u, 2u}) {
            const runtime::Device device = open_device({.threads = threads, .schedule = seed, .check = "races"});
            const auto dy = device.upload(random_elements<float>(n, 1));
            auto gate = device.upload(random_elements<float>(n, 2)), up = device.upload(random_elements<float>(n, 3));
            stdlib::swiglu_backward_in_place(device, dy, gate, up);
            if (first.empty()) first = gate.download(), second = up.download();
            CHECK(same_bits(gate.download(), first));
            CHECK(same_bits(up.download(), second));
        }
}

TEST_CASE("backward of swiglu: mistakes") {
    const runtime::Device device = open_device();
    auto a = device.buffer<float>(12, "a"), b = device.buffer<float>(12, "b"), c = device.buffer<float>(12, "c"),
         d = device.buffer<float>(12, "d");
    auto halves = device.buffer<half>(12, "halves");
    using Catch::Contains;
    using tests::message_of;
    // In place of one alone: the other gradient would be made from what has been written.
    CHECK_THAT(message_of([&] { stdlib::swiglu_backward(device, a, b, c, b, d); }),
               Contains("'gate' (read) and 'dgate' (written)"));
    CHECK_THAT(message_of([&] { stdlib::swiglu_backward(device, a, b, c, d, d); }),
               Contains("'dgate' (written) and 'dup' (written)"));
    CHECK_THAT(message_of([&] { stdlib::swiglu_backward(device, a, b, c, c, b); }), Contains("(read)"));
    CHECK_THAT(message_of([&] { stdlib::swiglu_backward_in_place(device, a, a, b); }),
               Contains("'dy' (read) and 'gate' (written)"));
    CHECK_THAT(message_of([&] { stdlib::swiglu_backward_in_place(device, a, halves, b); }),
               Contains("'gate' has elements of f16, and 'dy' of f32"));
    CHECK_THAT(message_of([&] { stdlib::swiglu_backward_in_place(device, a, b.slice(0, 8), c); }),
               Contains("'dy' is 12, and 'gate' is 8"));
}

}  // namespace ikat::test
