// SPDX-License-Identifier: Apache-2.0
// incremental_attention(): all sizes of heads, windows, pages, rows that begin anywhere, and equal bits.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/differential/stdlib/incremental_problem.hpp"

namespace {

using namespace ikat;
using namespace ikat::tests::incremental;
using Catch::Matchers::Contains;

tests::Sample sample_of_sizes(3);

template <class T>
void check_sizes(std::uint32_t d) {
    const auto devices = devices_of_seeds();
    const Case cases[] = {
        {.lengths = {1}},
        {.lengths = {0, 1, 17}, .heads = 2},
        {.lengths = {64}, .heads = 4, .gap = 16},
        {.lengths = {130, 3, 65}, .heads = 8, .kv_heads = 2, .heads_in_rows = false, .room = 5},
        {.lengths = {300}, .heads = 8, .parts = 2},
        {.lengths = {333, 0, 90}, .heads = 4, .kv_heads = 2, .queries = 3, .parts = 3, .causal = true, .room = 100},
        {.lengths = {200}, .heads = 20, .queries = 1, .parts = 1, .page_rows = 16},
        {.lengths = {257, 31}, .heads = 8, .kv_heads = 8, .queries = 2, .parts = 2, .page_rows = 64},
    };
    for (Case is : cases) {
        if (!sample_of_sizes.next()) continue;
        is.d = d;
        Problem<T>(is).check(devices);
    }
}

}  // namespace

TEMPLATE_TEST_CASE("incremental attention: heads of 64", "", half, bfloat16, float) { check_sizes<TestType>(64); }
TEMPLATE_TEST_CASE("incremental attention: heads of 80", "", half, bfloat16, float) { check_sizes<TestType>(80); }
TEMPLATE_TEST_CASE("incremental attention: heads of 96", "", half, bfloat16, float) { check_sizes<TestType>(96); }
TEMPLATE_TEST_CASE("incremental attention: heads of 128", "", half, bfloat16, float) { check_sizes<TestType>(128); }
TEMPLATE_TEST_CASE("incremental attention: heads of 256", "", half, bfloat16, float) { check_sizes<TestType>(256); }

TEMPLATE_TEST_CASE("incremental attention: rows that begin anywhere", "", half, bfloat16, float) {
    const auto devices = devices_of_seeds();
    constexpr std::uint32_t dims[] = {64, 80, 96, 128, 256};
    for (std::uint32_t gap = 1; gap < 16; ++gap) {
        Case is{.lengths = {75, 3}, .heads = 2, .queries = 2, .d = dims[gap % 5], .causal = true, .gap = gap};
        is.query_gap = gap;
        Problem<TestType>(is).check(devices);
        is = {.lengths = {280, 40}, .heads = 4, .kv_heads = 2, .d = dims[(gap + 2) % 5], .parts = 2, .gap = gap};
        is.before = 250, is.query_gap = 16 - gap, is.page_rows = gap % 2 ? 16 : 32, is.heads_in_rows = gap % 4 < 2;
        Problem<TestType>(is).check(devices);
    }
}

TEMPLATE_TEST_CASE("incremental attention: Q, K, V and O that begin anywhere", "", half, bfloat16, float) {
    const auto devices = devices_of_seeds();
    for (const std::uint32_t first : {1u, 2u, 4u, 7u})
        for (std::uint32_t which = 0; which < 4; ++which) {
            Case is{.lengths = {41, 150}, .heads = 2, .d = which % 2 ? 128u : 80u, .parts = which / 2 + 1};
            is.first[which] = first, is.page_rows = first == 2 ? 16 : 0;
            Problem<TestType>(is).check(devices);
        }
}

TEMPLATE_TEST_CASE("incremental attention: windows, scales and caps", "", half, bfloat16, float) {
    const auto devices = devices_of_seeds();
    const Case cases[] = {
        {.lengths = {100, 7}, .heads = 2, .before = 10},
        {.lengths = {100, 40, 3}, .queries = 4, .causal = true, .before = 0},
        {.lengths = {300, 70}, .heads = 4, .queries = 5, .parts = 2, .before = 150},
        {.lengths = {90}, .parts = 1, .before = ~0u, .scale = 1.5f},
        {.lengths = {90, 20}, .heads = 4, .queries = 2, .causal = true, .soft_cap = 2},
        {.lengths = {200}, .parts = 2, .page_rows = 32, .before = 60, .soft_cap = 30, .scale = 3.0f},
        {.lengths = {90, 20}, .heads = 4, .queries = 2, .soft_cap = 1e8f},
        {.lengths = {200}, .parts = 2, .soft_cap = 65, .scale = 40.0f},
        {.lengths = {200, 77}, .parts = 3, .scale = 1.0f, .magnitude = 100},  // exponents of thousands
        {.lengths = {2, 1, 5}, .heads = 2, .queries = 4, .causal = true},     // queries before the first key
    };
    for (Case is : cases)
        for (const std::uint32_t d : {64u, 128u}) {
            is.d = d;
            Problem<TestType>(is).check(devices);
        }
}

TEMPLATE_TEST_CASE("incremental attention: learned sinks, which count in the logarithms, too", "", half, bfloat16,
                   float) {
    auto devices = devices_of_seeds();
    devices.push_back(test::open_device({.threads = 1, .check = "races", .schedules = 2}));
    const Case cases[] = {
        {.lengths = {100, 0, 7}, .heads = 4},
        {.lengths = {300, 1}, .heads = 4, .kv_heads = 2, .queries = 5, .parts = 2, .causal = true},
        {.lengths = {90, 200}, .heads = 8, .kv_heads = 1, .queries = 3, .parts = 3, .page_rows = 32, .before = 60},
        {.lengths = {90}, .heads = 4, .kv_heads = 4, .soft_cap = 100},
        {.lengths = {90}, .heads = 20, .queries = 1, .soft_cap = 4},
    };
    for (Case is : cases)
        for (const std::uint32_t d : {64u, 256u}) {
            is.d = d, is.sinks = true;
            Problem<TestType>(is).check(devices);
        }
}

TEMPLATE_TEST_CASE("incremental attention: pages give the bits of keys that follow each other", "", half, bfloat16,
                   float) {
    const auto devices = devices_of_seeds(2);
    for (const std::uint32_t parts : {1u, 3u})
        for (const std::uint32_t page_rows : {16u, 32u, 128u}) {
            Case is{.lengths = {210, 0, 33, 128}, .heads = 4, .kv_heads = 2, .queries = 2, .parts = parts};
            is.causal = true, is.d = 96, is.room = page_rows * ((210 + page_rows - 1) / page_rows) - 210;
            const auto contiguous = Problem<TestType>(is).run(devices[0]);
            is.page_rows = page_rows;
            CHECK((Problem<TestType>(is).run(devices[1]) == contiguous));
        }
}

TEMPLATE_TEST_CASE("incremental attention: heads that share keys give the bits of heads with copies of them", "", half,
                   float) {
    const auto devices = devices_of_seeds(1);
    for (const std::uint32_t group : {1u, 4u, 8u}) {
        Case is{.lengths = {77, 200}, .heads = 8, .kv_heads = 8 / group, .d = 128, .parts = 2};
        const Problem<TestType> grouped(is);
        is.kv_heads = 8;
        Problem<TestType> copied(is);
        for (std::uint32_t s = 0; s < 2; ++s)
            for (std::uint32_t h = 0; h < 8; ++h)
                for (std::uint32_t n = 0; n < is.capacity() * is.d; ++n) {
                    copied.k[copied.key_at(s, h, 0) + n] = grouped.k[grouped.key_at(s, h / group, 0) + n];
                    copied.v[copied.key_at(s, h, 0) + n] = grouped.v[grouped.key_at(s, h / group, 0) + n];
                }
        CHECK((grouped.run(devices[0]) == copied.run(devices[0])));
    }
}

TEMPLATE_TEST_CASE("incremental attention: queries together give the bits of queries one by one", "", half, float) {
    const auto devices = devices_of_seeds(1);
    // Of f32, nine rows have other teams of lanes than one.
    const std::uint32_t queries = sizeof(TestType) == 4 ? 4 : 5;
    const Case is{.lengths = {150}, .heads = 2, .queries = queries, .causal = true};
    const Problem<TestType> together(is);
    const auto all = together.run(devices[0]);
    for (std::uint32_t i = 0; i < is.queries; ++i) {
        Case one = is;
        one.queries = 1, one.lengths = {150 - is.queries + i + 1};
        Problem<TestType> single(one);
        for (std::uint32_t h = 0; h < 2; ++h)
            std::copy_n(together.q.begin() + std::ptrdiff_t(together.row_at(0, h, i) * is.d), is.d,
                        single.q.begin() + std::ptrdiff_t(h * is.d));
        for (std::uint32_t j = 0; j < one.lengths[0]; ++j)
            for (std::uint32_t e = 0; e < is.d; ++e) {
                single.k[single.key_at(0, 0, j) + e] = together.k[together.key_at(0, 0, j) + e];
                single.v[single.key_at(0, 0, j) + e] = together.v[together.key_at(0, 0, j) + e];
            }
        const auto got = single.run(devices[0]);
        for (std::uint32_t h = 0; h < 2; ++h) {
            CHECK(got.log_sums[h] == all.log_sums[together.row_at(0, h, i)]);
            CHECK(std::equal(got.o.begin() + std::ptrdiff_t(h * is.d), got.o.begin() + std::ptrdiff_t((h + 1) * is.d),
                             all.o.begin() + std::ptrdiff_t(together.row_at(0, h, i) * is.d)));
        }
    }
}

TEMPLATE_TEST_CASE("incremental attention: the bits are the same in every run", "", half, float) {
    const auto devices = devices_of_seeds();
    for (const std::uint32_t parts : {1u, 2u, 5u, 0u}) {
        const Problem<TestType> problem({.lengths = {400, 90}, .heads = 4, .kv_heads = 2, .parts = parts});
        const auto first = problem.run(devices[0]);
        problem.compare(first);
        for (const Device& device : devices) CHECK((problem.run(device) == first));
    }
}

TEST_CASE("incremental attention: without lengths all keys are seen") {
    const auto devices = devices_of_seeds(1);
    const Problem<half> problem({.lengths = {70, 70}, .heads = 2});
    CHECK((problem.run(devices[0], false) == problem.run(devices[0])));
    const Problem<half> paged({.lengths = {96, 96}, .page_rows = 32});
    CHECK((paged.run(devices[0], false) == paged.run(devices[0])));
}

TEST_CASE("incremental attention: a length that is too large makes its sequence NaN") {
    const auto devices = devices_of_seeds(1);
    for (const std::uint32_t parts : {1u, 2u}) {
        Problem<half> problem({.lengths = {200, 200}, .parts = parts});
        const auto right = problem.run(devices[0]);
        const auto q = devices[0].upload(problem.q, "Q"), k = devices[0].upload(problem.k, "K"),
                   v = devices[0].upload(problem.v, "V");
        const auto lengths = devices[0].upload(std::vector<std::uint32_t>{201, 200}, "lengths");
        auto o = devices[0].buffer<half>(128, "O");
        auto log_sum = devices[0].buffer<float>(2, "log_sum");
        IncrementalOptions options{.lengths = lengths};
        options.log_sum = log_sum.view(2, 1, 1);
        options.parts = parts;
        incremental_attention(devices[0], q.view(2, 1, 1, 64), k.view(2, 1, 200, 64), v.view(2, 1, 200, 64),
                              o.view(2, 1, 1, 64), options);
        const auto got = o.download();
        for (std::size_t e = 0; e < 64; ++e) {
            CHECK(std::isnan(float(got[e])));
            CHECK(got[64 + e] == right.o[64 + e]);
        }
        CHECK(std::isnan(log_sum.download()[0]));
    }
}

TEST_CASE("incremental attention: infinities and NaNs") {
    const auto devices = devices_of_seeds(1);
    for (const std::uint32_t parts : {1u, 2u}) {
        Problem<half> problem({.lengths = {200}, .heads = 3, .parts = parts});
        const auto fill = [](std::vector<half>& rows, std::size_t first, float x) {
            std::fill_n(rows.begin() + std::ptrdiff_t(first * 64), 64, half(x));
        };
        fill(problem.q, 0, NAN), fill(problem.q, 1, INFINITY), fill(problem.q, 2, 1);
        for (std::size_t j = 0; j < 200; ++j) fill(problem.k, j, 1), fill(problem.v, j, j == 150 ? INFINITY : 1);
        const auto got = problem.run(devices[0]).o;
        CHECK(std::isnan(float(got[0])));    // scores of NaN
        CHECK(std::isnan(float(got[64])));   // infinite scores: inf - inf
        CHECK(float(got[128]) == INFINITY);  // an infinite element of V
    }
}

TEST_CASE("incremental attention: a NaN in V reaches the queries of its sequence from the first window on") {
    const auto devices = devices_of_seeds(1);
    const auto check = [&]<class T>(T) {
        for (const std::uint32_t key : {49u, 50u, 99u, 100u}) {
            INFO("key " << key);
            Problem<T> problem({.lengths = {100}, .queries = 4, .causal = true, .before = 46});
            std::fill_n(problem.v.begin() + key * 64, 64, T(NAN));
            // The first query is at key 96, and sees those from 50 on.
            const auto got = problem.run(devices[0]).o;
            for (std::uint32_t i = 0; i < 4; ++i) CHECK(std::isnan(float(got[i * 64])) == (key >= 50 && key < 100));
        }
    };
    check(half{}), check(float{});
}

TEST_CASE("incremental attention: a page that does not exist is found") {
    const auto device = Device::open({.device = "emulator"});
    const auto q = device.upload(std::vector<half>(64, half(1.0f)), "Q"),
               cache = device.upload(std::vector<half>(4 * 16 * 64, half(1.0f)), "cache");
    auto o = device.buffer<half>(64, "O");
    const auto run = [&](std::uint32_t last) {
        const auto pages = device.upload(std::vector<std::uint32_t>{3, 0, last}, "pages");
        IncrementalOptions options{};
        options.pages = pages.view(1, 3);
        try {
            incremental_attention(device, q.view(1, 1, 1, 64), cache.view(4, 1, 16, 64), cache.view(4, 1, 16, 64),
                                  o.view(1, 1, 1, 64), options);
        } catch (const Error& error) { return std::string(error.what()); }
        return std::string("no error");
    };
    CHECK(run(2) == "no error");
    CHECK_THAT(run(4), Contains("past the end of buffer 'cache'"));
}

TEST_CASE("incremental attention: workspace") {
    const auto devices = devices_of_seeds(1);
    const Device& device = devices[0];
    const Problem<half> problem({.lengths = {300}, .heads = 2, .parts = 3});
    const auto q = device.upload(problem.q, "Q"), k = device.upload(problem.k, "K"), v = device.upload(problem.v, "V");
    auto o = device.buffer<half>(128, "O");
    IncrementalOptions options{};
    options.parts = 3;
    const auto run = [&](auto&& function) {
        return function(device, q.view(2, 1, 64), k.view(1, 300, 64), v.view(1, 300, 64), o.view(2, 1, 64), options);
    };
    const auto bytes = run([](auto&&... x) { return incremental_attention_workspace(x...); });
    CHECK(bytes == 2 * 3 * (64 + 2) * 4);
    auto workspace = device.buffer<std::uint8_t>(bytes, "workspace");
    options.workspace = workspace;
    run([](auto&&... x) { incremental_attention(x...); });
    CHECK(o.download() == problem.run(device).o);
    options.workspace = workspace.slice(0, bytes - 16);
    CHECK_THROWS_WITH(run([](auto&&... x) { incremental_attention(x...); }), Contains("workspace"));
    options.parts = 1;
    CHECK(run([](auto&&... x) { return incremental_attention_workspace(x...); }) == 0);
}
