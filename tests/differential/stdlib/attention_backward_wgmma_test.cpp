// SPDX-License-Identifier: Apache-2.0
// attention_backward() by wgmma: shapes around the edges of tiles, walks that go round the ring, heads anywhere, the
// options that it has, and what it refuses.
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

namespace backward_by_wgmma {

using tests::attention_backward::Extra, tests::attention_backward::Problem, tests::attention_backward::Shape;
using tests::attention_backward::Ragged, tests::attention_backward::check_ragged;

const Shape shapes_of_wgmma[] = {
    {.queries = 1, .keys = 1},
    {.queries = 3, .keys = 0},
    {.queries = 0, .keys = 3},
    {.queries = 64, .keys = 64},
    {.queries = 63, .keys = 65, .heads = 2, .kv_heads = 2},
    {.queries = 129, .keys = 31, .gap = 8},
    {.queries = 1, .keys = 140, .heads = 4, .kv_heads = 1},
    {.queries = 127, .keys = 128, .heads = 2, .kv_heads = 1, .batch = 2, .heads_in_rows = true},
    {.queries = 65, .keys = 193, .gap = 8, .first = 8},
    {.queries = 192, .keys = 66, .heads = 4, .kv_heads = 2, .heads_in_rows = true},
};

Device hopper(int seed) { return test::open_device({.target = "sm_90a", .schedule = std::to_string(seed)}); }

/// In one order of threads, another one for each case.
template <class T>
void check_by_wgmma(const Shape& shape, std::uint32_t d, Extra extra) {
    static const std::vector<Device> devices{hopper(0), hopper(1), hopper(2), hopper(3)};
    static std::size_t number = 0;
    extra.options.path = AttentionPath::wgmma;
    const Problem<T> problem(shape, d, extra);
    for (std::size_t seed = 0; seed < devices.size(); ++seed)
        if (tests::is_for_seed(number, seed, devices.size())) problem.check(problem.run(devices[seed]));
    ++number;
}

}  // namespace backward_by_wgmma

}  // namespace

using namespace backward_by_wgmma;

TEMPLATE_TEST_CASE("attention_backward: by wgmma", "", half, bfloat16) {
    tests::Sample sample(3);
    if (std::is_same_v<TestType, bfloat16>) sample.next();  // other cases
    for (const Shape& shape : shapes_of_wgmma)
        for (const std::uint32_t d : {64u, 128u})
            for (const bool causal : {false, true})
                if (sample.next()) check_by_wgmma<TestType>(shape, d, {.options = {.causal = causal}});
}

TEST_CASE("attention_backward: by wgmma, windows, and more tiles than the ring has stages") {
    const Shape few{.queries = 100, .keys = 600}, many{.queries = 700, .keys = 300, .heads = 2, .kv_heads = 1};
    check_by_wgmma<half>(many, 64, {.options = {.causal = true}});
    check_by_wgmma<bfloat16>(many, 128, {.options = {.scale = 0.5f}});
    check_by_wgmma<bfloat16>(few, 64, {.options = {.causal = true, .window_left = 230}});
    check_by_wgmma<half>(few, 128, {.options = {.window_left = 70, .window_right = 300}});
    check_by_wgmma<half>(many, 128, {.options = {.causal = true, .window_left = 10}});
    check_by_wgmma<bfloat16>({.queries = 300, .keys = 70}, 64, {.options = {.window_left = 3, .window_right = 3}});
    check_by_wgmma<half>({.queries = 70, .keys = 130}, 64, {.options = {.causal = true}, .sinks = true});
}

TEMPLATE_TEST_CASE("attention_backward: by wgmma, sequences of different lengths give the bits of calls for each", "",
                   half, bfloat16) {
    const Device device = hopper(5);
    const AttentionPath path = AttentionPath::wgmma;
    const Ragged cases[] = {
        {.queries = {0, 5, 5, 75}, .keys = {0, 9, 12, 80}, .options = {.causal = true, .path = path}},
        {.queries = {8, 68, 70}, .keys = {16, 131, 131}, .d = 128, .options = {.window_left = 20, .path = path}},
        {.queries = {0, 200, 201, 330}, .keys = {0, 150, 150, 400}, .options = {.path = path}},
    };
    tests::Sample sample(2);
    if (std::is_same_v<TestType, bfloat16>) sample.next();  // the others
    for (const Ragged& is : cases)
        if (sample.next()) check_ragged<TestType>(device, is);
}

TEST_CASE("attention_backward: by wgmma, the same bits in every order of warps, and no races") {
    // More tiles than the ring has stages.
    Problem<half> problem({.queries = 300, .keys = 450, .heads = 2, .kv_heads = 1}, 64,
                          {.options = {.causal = true, .path = AttentionPath::wgmma}});
    const auto once = problem.run(hopper(0));
    CHECK(problem.run(test::open_device({.target = "sm_90a", .threads = 3, .schedule = "7"})) == once);
    const auto checked = test::open_device({.target = "sm_90a", .threads = 1, .check = "races,strict", .schedules = 4});
    CHECK(problem.run(checked) == once);
    problem.check(once);
}

TEST_CASE("attention_backward: by wgmma, tiles of which no query sees a key are not read") {
    Problem<half> problem({.queries = 64, .keys = 320}, 64,
                          {.options = {.causal = true, .window_left = 20, .path = AttentionPath::wgmma}});
    for (std::uint32_t j = 0; j < 192; ++j)
        for (std::uint32_t e = 0; e < 64; ++e)
            problem.K.stored[problem.K.at(0, 0, j, e)] = problem.V.stored[problem.V.at(0, 0, j, e)] = half(NAN);
    const auto made = problem.run(hopper(0));
    CHECK(std::ranges::all_of(made.dQ, [](half v) { return std::isfinite(float(v)); }));
    // A block has 128 keys: of those before, no query sees one.
    for (const std::vector<half>* x : {&made.dK, &made.dV})
        CHECK(std::all_of(x->begin(), x->begin() + 128 * 64, [](half v) { return float(v) == 0; }));
}

TEST_CASE("attention_backward: by which products") {
    const auto path = [](const Shape& shape, const Extra& extra, const char* target = "sm_90a", std::uint32_t d = 64) {
        std::vector<emulator::LaunchTraffic> traffic;
        const Device device = Device::open({.device = "emulator", .target = target, .traffic = &traffic});
        Problem<half>(shape, d, extra).run(device);
        std::string entries;
        for (const auto& launch : traffic) entries += launch.entry + " ";
        return entries;
    };
    const std::string rows = "attention_backward_rows_f16_d64 ", keys = "attention_backward_keys_and_values_f16_d64",
                      queries = "attention_backward_queries_f16_d64";
    const std::string by_warps = rows + keys + " " + queries + " ",
                      by_warpgroups = rows + keys + "_wgmma " + queries + "_wgmma ";
    const Shape large{.queries = 65, .keys = 9};
    CHECK(path(large, {}) == by_warpgroups);
    CHECK(path(large, {}, "sm_90") == by_warps);
    CHECK(path(large, {.options = {.path = AttentionPath::mma_sync}}) == by_warps);
    CHECK(path({.queries = 64, .keys = 9}, {}) == by_warps);
    CHECK(path({.queries = 64, .keys = 9}, {.options = {.path = AttentionPath::wgmma}}) == by_warpgroups);
    CHECK(path({.queries = 65, .keys = 9, .gap = 4}, {}) == by_warps);
    CHECK_THAT(path(large, {.options = {.soft_cap = 4}}), !Contains("wgmma"));
    CHECK_THAT(path(large, {}, "sm_90a", 96), !Contains("wgmma"));
}

TEST_CASE("attention_backward: what wgmma cannot do") {
    const auto message = [](const Shape& shape, Extra extra, std::uint32_t d = 64, const char* target = "sm_90a") {
        extra.options.path = AttentionPath::wgmma;
        try {
            Problem<half>(shape, d, extra).run(test::open_device({.target = target}));
        } catch (const Error& error) { return std::string(error.what()); }
        return std::string("no error");
    };
    const Shape shape{.queries = 65, .keys = 9};
    CHECK(message(shape, {}) == "no error");
    CHECK_THAT(message(shape, {}, 64, "sm_90"), Contains("wgmma: the device is opened for sm_90, not sm_90a"));
    const char* const of_kernels = "wgmma: there are kernels of heads of 64 and 128 elements, without a soft cap";
    CHECK_THAT(message(shape, {}, 80), Contains(of_kernels));
    CHECK_THAT(message(shape, {.options = {.soft_cap = 4}}), Contains(of_kernels));
    CHECK_THAT(message(shape, {.bias_batch = 1, .bias_heads = 1}), Contains(of_kernels));
    CHECK_THAT(message({.queries = 65, .keys = 9, .gap = 4}, {}),
               Contains("wgmma: rows of Q, K, V, dO, dQ, dK or dV do not begin at multiples of 16 bytes"));
}
