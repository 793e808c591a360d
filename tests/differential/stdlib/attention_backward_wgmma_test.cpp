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
    const auto checked = [](std::uint32_t schedules) {
        return test::open_device({.target = "sm_90a", .threads = 1, .check = "races,strict", .schedules = schedules});
    };
    // More tiles than the ring has stages.
    Problem<half> problem({.queries = 300, .keys = 450, .heads = 2, .kv_heads = 1}, 64,
                          {.options = {.causal = true, .path = AttentionPath::wgmma}});
    const auto once = problem.run(hopper(0));
    CHECK(problem.run(test::open_device({.target = "sm_90a", .threads = 3, .schedule = "7"})) == once);
    CHECK(problem.run(checked(4)) == once);
    problem.check(once);
    Problem<bfloat16> wide({.queries = 200, .keys = 400, .heads = 2, .kv_heads = 1}, 128,
                           {.options = {.window_left = 300, .path = AttentionPath::wgmma}});
    wide.check(wide.run(checked(2)));
    check_ragged<half>(
        checked(2),
        {.queries = {0, 200, 210}, .keys = {0, 330, 350}, .d = 128, .options = {.path = AttentionPath::wgmma}});
}

TEST_CASE("attention_backward: by wgmma, by offsets of no keys, and of no queries") {
    const Device device = hopper(0);
    const std::uint32_t heads = 2, queries = 70, d = 64;
    const auto offsets = device.upload(std::vector<std::uint32_t>{0, queries}),
               none = device.upload(std::vector<std::uint32_t>{0, 0});
    const auto x = device.upload(std::vector<half>(heads * queries * d, half(0.25f)));
    const auto log_sum = device.upload(std::vector<float>(heads * queries, 1.0f));
    const auto made = [&] { return device.upload(std::vector<half>(heads * queries * d, half(-7.0f))); };
    const auto rows = [&](auto& of, bool are_there) {
        return of.slice(0, are_there ? of.size() : 0).view(heads, are_there ? queries : 0, d);
    };
    for (const bool are_queries : {false, true}) {
        auto dq = made(), dk = made(), dv = made();
        const AttentionOptions options{.query_offsets = are_queries ? offsets : none,
                                       .key_offsets = are_queries ? none : offsets,
                                       .path = AttentionPath::wgmma};
        attention_backward(
            device, rows(x, are_queries), rows(x, !are_queries), rows(x, !are_queries), rows(x, are_queries),
            log_sum.slice(0, are_queries ? log_sum.size() : 0).view(heads, are_queries ? queries : 0),
            rows(x, are_queries), rows(dq, are_queries), rows(dk, !are_queries), rows(dv, !are_queries), options);
        const auto is_zero = [](half v) { return float(v) == 0; };
        CHECK(std::ranges::all_of(dq.download(), is_zero) == are_queries);
        CHECK(std::ranges::all_of(dk.download(), is_zero) == !are_queries);
        CHECK(std::ranges::all_of(dv.download(), is_zero) == !are_queries);
    }
}

TEST_CASE("attention_backward: by wgmma, rows of Q, K and V, and of their gradients, beside each other") {
    const Device device = hopper(0);
    const std::uint32_t heads = 2, length = 130, d = 64, row = heads * d;
    std::vector<half> numbers(std::size_t(length) * 3 * row);
    for (std::size_t n = 0; n < numbers.size(); ++n) numbers[n] = half(float(tests::attention::small(n)));
    const auto part = [&](auto& x, std::uint32_t which, std::uint32_t parts) {
        return heads_in_rows(x.slice(which * row, x.size() - which * row)
                                 .view(1, length, heads, d)
                                 .pitched(x.size(), std::uint64_t(parts) * row, d));
    };
    const auto apart = [&](std::uint32_t which) {
        std::vector<half> out;
        for (std::uint32_t i = 0; i < length; ++i)
            out.insert(out.end(), &numbers[(i * 3 + which) * row], &numbers[(i * 3 + which) * row] + row);
        return device.upload(out);
    };
    const auto all = device.upload(numbers), q = apart(0), k = apart(1), v = apart(2);
    const auto log_sum = device.upload(std::vector<float>(heads * length, 5.0f));
    const TensorView sums = log_sum.view(1, heads, length);
    auto together = device.buffer<half>(numbers.size()), dq = device.buffer<half>(q.size()),
         dk = device.buffer<half>(q.size()), dv = device.buffer<half>(q.size());
    const AttentionOptions options{.causal = true, .path = AttentionPath::wgmma};
    attention_backward(device, part(all, 0, 3), part(all, 1, 3), part(all, 2, 3), part(q, 0, 1), sums, part(v, 0, 1),
                       part(together, 0, 3), part(together, 1, 3), part(together, 2, 3), options);
    attention_backward(device, part(q, 0, 1), part(k, 0, 1), part(v, 0, 1), part(q, 0, 1), sums, part(v, 0, 1),
                       part(dq, 0, 1), part(dk, 0, 1), part(dv, 0, 1), options);
    const auto made = together.download();
    const std::vector<half> alone[] = {dq.download(), dk.download(), dv.download()};
    std::size_t different = 0;
    for (std::size_t n = 0; n < made.size(); ++n)
        different += !(float(made[n]) == float(alone[n / row % 3][n / (3 * row) * row + n % row]));
    CHECK(different == 0);
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
