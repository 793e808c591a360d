// SPDX-License-Identifier: Apache-2.0
// What attention_backward() makes of functions of one's own and of sequences by offsets, in every order of its threads;
// what it reads, and what it refuses.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/differential/stdlib/attention_backward_problem.hpp"

namespace {

using namespace ikat;
using namespace ikat::stdlib;
using Catch::Matchers::Contains;
using runtime::Device;

namespace calls_of_attention_backward {

using reference::AttentionCase;
using tests::attention_backward::Extra, tests::attention_backward::Problem, tests::attention_backward::Shape;
using tests::attention_backward::Ragged, tests::attention_backward::check_ragged;

/// Scores become softer, as a number says, and fall with the distance; keys of a window and the first three are seen.
template <class T>
void add_own(Problem<T>& of) {
    const std::int64_t shift = std::int64_t(of.shape.keys) - of.shape.queries;
    of.give = [](const Device&, AttentionOptions& options, AttentionGradients& gradients) {
        options.scores = scores(
            "softer",
            [](auto score, auto at, auto width) {
                return score / (1.0f + abs(score) * width) - 0.03125f * cast<f32>(abs(at.query - at.key));
            },
            0.25f);
        gradients.slope = scores(
            "slope",
            [](auto score, auto, auto width) {
                const auto root = value(1.0f / (1.0f + abs(score) * width));
                return root * root;
            },
            0.25f);
        options.sees = sees(
            "window",
            [](auto at, auto window) { return (at.key <= at.query) & ((at.key > at.query - window) | (at.key < 3)); },
            40);
    };
    const auto before = of.of_sequence(0).sees;
    of.take_rules([shift, before](AttentionCase& is) {
        is.scores = [shift](double score, auto, std::int64_t i, std::int64_t j) {
            return score / (1 + std::abs(score) / 4) - double(std::abs(i + shift - j)) / 32;
        };
        is.slope = [](double score, auto...) { return std::pow(1 + std::abs(score) / 4, -2); };
        is.sees = [shift, before](std::uint32_t h, std::uint32_t i, std::uint32_t j) {
            const std::int64_t own = std::int64_t(i) + shift, key = j;
            return before(h, i, j) && key <= own && (key > own - 40 || key < 3);
        };
    });
}

}  // namespace calls_of_attention_backward

}  // namespace

using namespace calls_of_attention_backward;

TEMPLATE_TEST_CASE("attention_backward: functions of one's own, by their slope", "", half, bfloat16) {
    const Device device = test::open_device();
    tests::Sample sample(3);
    if (std::is_same_v<TestType, bfloat16>) sample.next();
    for (const std::uint32_t d : {64u, 128u})
        for (const Extra& extra : {Extra{}, Extra{.options = {.soft_cap = 6}, .bias_batch = 1, .bias_heads = 2}}) {
            if (!sample.next()) continue;
            Problem<TestType> problem({.queries = 70, .keys = 100, .heads = 2, .kv_heads = 1}, d, extra);
            add_own(problem);
            problem.check(problem.run(device));
        }
}

TEMPLATE_TEST_CASE("attention_backward: sequences of different lengths give the bits of calls for each", "", half,
                   bfloat16) {
    const Device device = test::open_device();
    const Ragged cases[] = {
        {.queries = {0, 5, 5, 75}, .keys = {0, 9, 12, 80}, .options = {.causal = true}},
        {.queries = {3, 68, 70}, .keys = {1, 131, 131}, .d = 128, .options = {.window_left = 20}},
        {.queries = {2, 40, 110}, .keys = {0, 50, 90}, .options = {.causal = true}, .bias_heads = 2},
        {.queries = {0, 33, 34}, .keys = {0, 30, 90}, .d = 256, .options = {.soft_cap = 3}, .bias_heads = 1},
    };
    tests::Sample sample(2);
    if (std::is_same_v<TestType, bfloat16>) sample.next();  // the other cases
    for (const Ragged& is : cases)
        if (sample.next()) check_ragged<TestType>(device, is);
}

TEST_CASE("attention_backward: the same bits in every order of warps, on any number of multiprocessors") {
    Problem<half> problem({.queries = 70, .keys = 140, .heads = 4, .kv_heads = 2}, 64,
                          {.options = {.causal = true}, .bias_batch = 1, .bias_heads = 1});
    const auto once = problem.run(test::open_device());
    CHECK(problem.run(test::open_device({.threads = 3, .schedule = "7"})) == once);
    const auto checked = test::open_device({.threads = 1, .check = "races,strict", .schedules = 4});
    CHECK(problem.run(checked) == once);
    problem.check(once);
}

TEST_CASE("attention_backward: tiles of which no query sees a key are not read") {
    const Device device = test::open_device();
    for (const bool is_own : {false, true}) {
        Problem<half> problem({.queries = 64, .keys = 256}, 64, {.options = {.causal = true}});
        if (is_own)
            add_own(problem);
        else
            problem.extra.options.window_left = 20;
        const std::uint32_t first = is_own ? 32 : 0, last = is_own ? 96 : 128;
        for (std::uint32_t j = first; j < last; ++j)
            for (std::uint32_t e = 0; e < 64; ++e)
                problem.K.stored[problem.K.at(0, 0, j, e)] = problem.V.stored[problem.V.at(0, 0, j, e)] = half(NAN);
        const auto made = problem.run(device);
        const auto is_finite = [](half v) { return std::isfinite(float(v)); };
        CHECK(std::ranges::all_of(made.dQ, is_finite));
        if (is_own) continue;  // a block of keys has the first three, too
        CHECK(std::ranges::all_of(made.dK, is_finite));
        CHECK(std::ranges::all_of(std::span(made.dV).first(128 * 64), [](half v) { return float(v) == 0; }));
    }
}

TEST_CASE("attention_backward: large scores, and a NaN in dO") {
    const Device device = test::open_device();
    Problem<bfloat16> large({.queries = 35, .keys = 70}, 64,
                            {.options = {.causal = true, .scale = 8.0f}, .magnitude = 100});
    large.check(large.run(device));
    Problem<half> problem({.queries = 40, .keys = 70, .heads = 2, .kv_heads = 2}, 64);
    problem.dO.stored[problem.dO.at(0, 0, 3, 5)] = half(NAN);
    const auto made = problem.run(device);
    for (std::uint32_t h = 0; h < 2; ++h)
        for (std::uint32_t i = 0; i < 40; ++i)
            CHECK(std::isnan(float(made.dQ[problem.Q.at(0, h, i, 7)])) == (h == 0 && i == 3));
    CHECK(std::isnan(float(made.dV[problem.V.at(0, 0, 9, 5)])));
    CHECK(!std::isnan(float(made.dV[problem.V.at(0, 0, 9, 6)])));
    CHECK(!std::isnan(float(made.dK[problem.K.at(0, 1, 9, 5)])));
}

TEST_CASE("attention_backward: central differences of the forward pass in double") {
    Problem<half> problem({.queries = 5, .keys = 7, .heads = 2, .kv_heads = 1}, 64,
                          {.options = {.soft_cap = 6}, .bias_batch = 1, .bias_heads = 2});
    add_own(problem);
    const auto made = problem.run(test::open_device());
    AttentionCase is = problem.of_sequence(0);
    const auto loss = [](AttentionCase of) {
        reference::attention_forward(of);
        double sum = 0;
        for (std::size_t n = 0; n < of.O.size(); ++n) sum += of.O[n] * of.dO[n];
        return sum;
    };
    const auto check = [&](std::vector<double> AttentionCase::*array, const std::vector<half>& gradient,
                           double tolerance) {
        for (std::size_t n = 0; n < gradient.size(); n += 13) {
            constexpr double step = 0x1p-12;
            AttentionCase more = is, less = is;
            (more.*array)[n] += step, (less.*array)[n] -= step;
            CHECK(std::abs((loss(more) - loss(less)) / (2 * step) - double(float(gradient[n]))) <= tolerance);
        }
    };
    // Gradients are around 1/4, and have the roundings of weights and of the results.
    check(&AttentionCase::Q, made.dQ, 0x1p-9), check(&AttentionCase::K, made.dK, 0x1p-8);
    check(&AttentionCase::V, made.dV, 0x1p-8), check(&AttentionCase::bias, made.dbias, 0x1p-9);
}

TEST_CASE("attention_backward: calls that do not fit together") {
    const Device device = test::open_device();
    const auto x = device.upload(std::vector<half>(4096), "x");
    auto y = device.buffer<half>(4096, "y"), z = device.buffer<half>(4096, "z"), w = device.buffer<half>(4096, "w");
    auto floats = device.upload(std::vector<float>(4096), "floats");
    const auto bytes = device.buffer<e4m3>(4096, "bytes");
    const auto words = device.buffer<std::uint32_t>(64, "words");
    auto little = device.buffer<std::uint8_t>(64, "little");
    const TensorView rows = x.view(2, 4, 64), sums = floats.view(2, 4);
    struct Operands {
        TensorView Q, K, V, O, log_sum, dO;
        MutableTensorView dQ, dK, dV;
    };
    const Operands right{rows, rows, rows, rows, sums, rows, y.view(2, 4, 64), z.view(2, 4, 64), w.view(2, 4, 64)};
    const auto message = [&](const Operands& with, const AttentionOptions& options = {},
                             const AttentionGradients& more = {}) {
        try {
            attention_backward(device, with.Q, with.K, with.V, with.O, with.log_sum, with.dO, with.dQ, with.dK, with.dV,
                               options, more);
        } catch (const Error& error) { return std::string(error.what()); }
        return std::string("no error");
    };
    const auto with = [&](auto&& change) {
        Operands changed = right;
        change(changed);
        return message(changed);
    };
    CHECK(message(right) == "no error");
    const TensorView single = floats.view(2, 4, 64), encoded = bytes.view(2, 4, 64);
    CHECK_THAT(with([&](auto& o) { o.Q = single; }), Contains("elements are f32"));
    CHECK_THAT(with([&](auto& o) { o.K = o.V = encoded; }), Contains("K has elements of e4m3"));
    CHECK_THAT(with([&](auto& o) { o.dO = x.view(2, 5, 64); }), Contains("dO is 1 x 2 x 5 x 64, not 1 x 2 x 4 x 64"));
    CHECK_THAT(with([&](auto& o) { o.dV = y.view(2, 5, 64); }), Contains("dV is 1 x 2 x 5 x 64"));
    CHECK_THAT(with([&](auto& o) { o.log_sum = floats.view(2, 5); }), Contains("log_sum"));
    CHECK_THAT(with([&](auto& o) { o.dQ = o.dK; }), Contains("dQ"));
    CHECK_THAT(with([&](auto& o) { o.dQ = MutableTensorView(floats.view(2, 4, 64)); }),
               Contains("dQ has elements of f32"));
    CHECK_THAT(with([&](auto& o) {
                   o.Q = o.O = o.dO = x.slice(0, 0).view(0, 4, 64);
                   o.dQ = y.slice(0, 0).view(0, 4, 64), o.log_sum = floats.slice(0, 0).view(0, 4);
               }),
               Contains("Q has no heads, K has 2"));
    CHECK_THAT(message(right, {.pages = words.view(8, 8)}), Contains("K and V in pages"));
    const OwnScores own = scores("same", [](auto score, auto) { return score + 0.0f; });
    CHECK_THAT(message(right, {.scores = own}), Contains("scores 'same' without a slope"));
    CHECK_THAT(message(right, {}, {.slope = own}), Contains("a slope without scores"));
    CHECK_THAT(message(right, {}, {.dbias = y.view(2, 4, 4)}), Contains("dbias without a bias"));
    CHECK_THAT(message(right, {}, {.workspace = little}), Contains("a workspace of 64 bytes"));
    CHECK(attention_backward_workspace(rows) == 2 * 64 * 16);
    auto enough = device.buffer<std::uint8_t>(2 * 64 * 16, "enough");
    CHECK(message(right, {}, {.workspace = enough}) == "no error");
}
