// SPDX-License-Identifier: Apache-2.0
// flash_attention(): all sizes of heads, on shapes around the edges of tiles, with heads that begin and continue
// anywhere.
#include <cstdint>
#include <string>
#include <vector>

#include "tests/differential/stdlib/attention_problem.hpp"

namespace {

using namespace ikat;
using namespace ikat::tests::attention;

const Shape shapes[] = {
    {.queries = 1, .keys = 1},
    {.queries = 3, .keys = 0},
    {.queries = 64, .keys = 64, .block = 64},
    {.queries = 63, .keys = 65, .heads = 2, .kv_heads = 2},
    {.queries = 129, .keys = 127, .gap = 8},
    {.queries = 1, .keys = 200, .heads = 4, .kv_heads = 1},
    {.queries = 130, .keys = 20, .heads = 2, .kv_heads = 2, .block = 64},
    {.queries = 20, .keys = 130, .batch = 2, .heads_in_rows = true},
    {.queries = 66, .keys = 129, .heads = 8, .kv_heads = 1, .heads_in_rows = true},
    {.queries = 65, .keys = 64, .gap = 4, .first = 4},
    {.queries = 70, .keys = 66, .gap = 2, .first = 2},
    {.queries = 9, .keys = 70, .first = 1},
    {.queries = 40, .keys = 33, .heads = 2, .kv_heads = 1, .batch = 3, .gap = 5, .heads_in_rows = true},
};

tests::Sample sample_of_shapes(3);

template <class T>
void check_shapes(std::uint32_t d) {
    const auto devices = devices_of_seeds();
    std::size_t number = 0;
    for (const bool causal : {false, true})
        for (const Shape& shape : shapes)
            // The emulator takes long for products of f32: each shape is for one of both.
            if ((sizeof(T) == 2 || number++ % 2 == 0) && sample_of_shapes.next())
                Problem<T>(shape, d, {.options = {.causal = causal}}).check(devices);
    Shape large{.queries = 200, .keys = 190};
    large.block = d < 128 || (d == 128 && sizeof(T) == 2) ? 128 : 64;
    for (const bool causal : {false, true}) Problem<T>(large, d, {.options = {.causal = causal}}).check(devices);
}

}  // namespace

TEMPLATE_TEST_CASE("attention: heads of 64", "", half, bfloat16, float) { check_shapes<TestType>(64); }
TEMPLATE_TEST_CASE("attention: heads of 80", "", half, bfloat16, float) { check_shapes<TestType>(80); }
TEMPLATE_TEST_CASE("attention: heads of 96", "", half, bfloat16, float) { check_shapes<TestType>(96); }
TEMPLATE_TEST_CASE("attention: heads of 128", "", half, bfloat16, float) { check_shapes<TestType>(128); }
TEMPLATE_TEST_CASE("attention: heads of 256", "", half, bfloat16, float) { check_shapes<TestType>(256); }

/// Of which a warp of a block of 128 has 32 rows, from padded tiles.
TEMPLATE_TEST_CASE("attention: heads of 128 have the same bits in blocks of 64 and of 128 queries", "", half,
                   bfloat16) {
    const Device device = test::open_device();
    for (const std::uint32_t gap : {0u, 4u, 1u})
        for (const Extra& extra :
             {Extra{.log_sum = true}, Extra{.options = {.causal = true}, .log_sum = true, .sinks = true},
              Extra{.options = {.window_left = 70, .window_right = 3}}}) {
            INFO("gap " << gap << ", causal " << extra.options.causal);
            const Problem<TestType> problem({.queries = 140, .keys = 150, .heads = 2, .kv_heads = 1, .gap = gap}, 128,
                                            extra);
            const auto large = problem.run(device, {.path = AttentionPath::mma_sync, .queries_of_block = 128});
            problem.compare(large, problem.rows());
            const auto small = problem.run(device, {.path = AttentionPath::mma_sync, .queries_of_block = 64});
            CHECK(std::ranges::equal(std::as_bytes(std::span(large.first)), std::as_bytes(std::span(small.first))));
            CHECK(large.second == small.second);
        }
}

namespace {

tests::Sample sample_of_extra(5);

template <class T>
void check_extra(const Extra& extra, std::initializer_list<Shape> more = {}, std::uint32_t d = 64) {
    const auto devices = devices_of_seeds();
    std::vector<Shape> all{{.queries = 1, .keys = 1},
                           {.queries = 5, .keys = 0},
                           {.queries = 65, .keys = 130, .heads = 2, .kv_heads = 1, .batch = 2},
                           {.queries = 200, .keys = 70, .block = 64},
                           {.queries = 70, .keys = 200, .gap = 1, .heads_in_rows = true},
                           {.queries = 130, .keys = 300, .gap = 8, .heads_in_rows = true}};
    all.insert(all.end(), more);
    for (Shape shape : all) {
        if (!sample_of_extra.next()) continue;
        Extra of_shape = extra;
        if (of_shape.bias_batch > 1) of_shape.bias_batch = shape.batch;
        if (of_shape.bias_heads > 1) of_shape.bias_heads = shape.heads;
        Problem<T>(shape, d, of_shape).check(devices);
    }
}

}  // namespace

TEMPLATE_TEST_CASE("attention: windows", "", half, bfloat16, float) {
    const Shape large{.queries = 150, .keys = 300, .block = 128};
    check_extra<TestType>({.options = {.window_left = 10}}, {large});
    check_extra<TestType>({.options = {.causal = true, .window_left = 0}}, {large});
    check_extra<TestType>({.options = {.window_left = 70, .window_right = 3}}, {large});
    check_extra<TestType>({.options = {.window_right = 100}}, {large});
    check_extra<TestType>({.options = {.window_left = ~0u, .window_right = ~0u}}, {large});
}

TEMPLATE_TEST_CASE("attention: scales and caps", "", half, bfloat16, float) {
    check_extra<TestType>({.options = {.scale = 1.5f}}, {{.queries = 150, .keys = 80, .block = 128}});
    check_extra<TestType>({.options = {.soft_cap = 2}}, {{.queries = 150, .keys = 80, .block = 128}});
    check_extra<TestType>({.options = {.causal = true, .scale = 3.0f, .soft_cap = 30}, .log_sum = true}, {}, 128);
    check_extra<TestType>({.options = {.scale = 40.0f, .soft_cap = 65}, .log_sum = true});
    check_extra<TestType>({.options = {.soft_cap = 1e8f}, .log_sum = true});
    check_extra<TestType>({.options = {.soft_cap = INFINITY}, .log_sum = true});
}

TEST_CASE("attention: numbers at the edge of f32 give no NaN") {
    const Device device = test::open_device({.target = "sm_90a"});
    constexpr float max = std::numeric_limits<float>::max(), min = std::numeric_limits<float>::denorm_min();
    for (const AttentionPath path : {AttentionPath::mma_sync, AttentionPath::wgmma})
        for (const float cap : {0.0f, min, 1e-30f, 1.0f, 64.0f, 1e30f, max})
            for (const float scale : {min, 1e-30f, 1.0f, 1e30f, max})
                for (const bool is_zero : {true, false}) {
                    INFO("path " << int(path) << ", cap " << cap << ", scale " << scale << ", zero " << is_zero);
                    // Without a cap, scores that overflow are the caller's.
                    if (cap == 0 && !is_zero && scale > 1) continue;
                    Problem<half> problem({.queries = 3, .keys = 5}, 64,
                                          {.options = {.scale = scale, .soft_cap = cap}});
                    for (auto& q : problem.Q.stored) q = half(is_zero ? 0.0f : 0x1p-6f);
                    for (auto& k : problem.K.stored) k = half(0x1p-6f);
                    for (auto& v : problem.V.stored) v = half(2.0f);
                    // All keys have the same score: O is the mean of V.
                    const auto got = problem.run(device, {.path = path}).first;
                    CHECK(std::ranges::all_of(std::span(got).first(3 * 64), [](half v) { return float(v) == 2; }));
                }
}

TEMPLATE_TEST_CASE("attention: large scores", "", half, bfloat16, float) {
    // Exponents of thousands: all but the largest of a row are far from it.
    check_extra<TestType>({.options = {.scale = 1.0f}, .magnitude = 100, .log_sum = true});
    check_extra<TestType>({.options = {.causal = true, .scale = 8.0f}, .magnitude = 1000, .log_sum = true}, {}, 80);
}

TEMPLATE_TEST_CASE("attention: biases", "", half, bfloat16, float) {
    check_extra<TestType>({.bias_batch = 2, .bias_heads = 2});
    check_extra<TestType>({.bias_batch = 1, .bias_heads = 1, .hides = true, .log_sum = true});
    check_extra<TestType>({.options = {.causal = true, .soft_cap = 4}, .bias_batch = 2, .bias_heads = 1, .hides = true},
                          {}, 256);
}

TEMPLATE_TEST_CASE("attention: logarithms of sums", "", half, bfloat16, float) {
    check_extra<TestType>({.log_sum = true}, {{.queries = 150, .keys = 80, .block = 128}});
    check_extra<TestType>({.options = {.causal = true}, .log_sum = true}, {}, 128);
}

TEMPLATE_TEST_CASE("attention: learned sinks, which count in the logarithms, too", "", half, bfloat16, float) {
    const Shape heads{.queries = 70, .keys = 66, .heads = 4, .kv_heads = 2};
    check_extra<TestType>({.log_sum = true, .sinks = true}, {heads, {.queries = 150, .keys = 80, .block = 128}});
    check_extra<TestType>({.options = {.causal = true, .window_left = 20}, .log_sum = true, .sinks = true}, {heads},
                          128);
    check_extra<TestType>({.options = {.soft_cap = 4}, .sinks = true}, {heads});
    check_extra<TestType>(
        {.options = {.soft_cap = 100}, .bias_batch = 1, .bias_heads = 1, .hides = true, .sinks = true}, {heads});
}

TEST_CASE("attention: learned sinks, in every order of the warps, without a race") {
    const Problem<half> problem({.queries = 130, .keys = 200, .heads = 4, .kv_heads = 2}, 64,
                                {.log_sum = true, .sinks = true});
    const Device device = test::open_device({.target = "sm_90a", .threads = 1, .check = "races", .schedules = 4});
    for (const AttentionPath path : {AttentionPath::mma_sync, AttentionPath::wgmma})
        problem.compare(device, problem.rows(), {.path = path});
}

TEST_CASE("attention: heads that share keys give what heads with copies of them give") {
    const Device device = test::open_device();
    for (const std::uint32_t group : {1u, 4u, 8u}) {
        const Shape shared{.queries = 70, .keys = 90, .heads = 8, .kv_heads = 8 / group};
        const Shape apart{.queries = 70, .keys = 90, .heads = 8, .kv_heads = 8};
        const Problem<bfloat16> grouped(shared, 128, {.options = {.causal = true}});
        Problem<bfloat16> copied(apart, 128, {.options = {.causal = true}});
        for (std::uint32_t h = 0; h < 8; ++h)
            for (std::uint32_t j = 0; j < 90; ++j)
                for (std::uint32_t e = 0; e < 128; ++e) {
                    copied.K.stored[copied.K.at(0, h, j, e)] = grouped.K.stored[grouped.K.at(0, h / group, j, e)];
                    copied.V.stored[copied.V.at(0, h, j, e)] = grouped.V.stored[grouped.V.at(0, h / group, j, e)];
                }
        CHECK(grouped.run(device).first == copied.run(device).first);
    }
}

TEST_CASE("attention: wgmma with blocks of all sizes, which take one tile of queries after the other") {
    const auto check = [](std::uint32_t d, const Extra& extra, std::initializer_list<std::uint32_t> blocks) {
        const Problem<half> problem({.queries = 330, .keys = 400, .heads = 3, .kv_heads = 1, .batch = 2}, d, extra);
        const auto rows = problem.rows();
        const Devices one = devices_of_seeds(2), three = devices_of_seeds(2, 3);
        for (const std::uint32_t block : blocks)
            for (const Devices* devices : {&one, &three})
                for (const Device& device : devices->hopper)
                    problem.compare(device, rows, {.path = AttentionPath::wgmma, .queries_of_block = block});
    };
    check(64, {.options = {.causal = true}, .log_sum = true}, {64, 128, 192});
    check(64, {.options = {.window_left = 40, .window_right = 150}}, {192});
    check(128, {.options = {.causal = true}}, {64, 128});
    check(128, {.log_sum = true}, {128});  // tiles of more keys
}

/// On a GPU, the other shapes have at most one tile of queries for each block.
TEST_CASE("attention: several tiles of queries for each block that the device runs at once") {
    const Device device = test::open_device({.target = "sm_90a", .threads = 2, .schedule = "1"});
    const std::uint32_t heads = device.properties().multiprocessors;
    const Shape shape{.queries = 130, .keys = 200, .heads = heads, .kv_heads = heads};
    for (const bool causal : {false, true}) {
        const Problem<bfloat16> problem(shape, 64, {.options = {.causal = causal}});
        problem.compare(device, problem.rows(), {.path = AttentionPath::wgmma, .queries_of_block = 64});
    }
}

TEST_CASE("attention: tiles of keys that no query of a block sees are not read") {
    const auto path = GENERATE(AttentionPath::mma_sync, AttentionPath::wgmma);
    Problem<half> problem({.queries = 64, .keys = 512}, 64, {.options = {.causal = true, .window_left = 10}});
    const auto rows = problem.rows();
    for (auto* of : {&problem.K, &problem.V})
        std::fill_n(of->stored.begin(), 384 * 64, half(NAN));  // the first query sees keys from 438 on
    problem.compare(test::open_device({.target = "sm_90a"}), rows, {.path = path});
}

TEST_CASE("attention: infinities and NaNs") {
    const auto path = GENERATE(AttentionPath::mma_sync, AttentionPath::wgmma);
    const Device device = test::open_device({.target = "sm_90a"});
    Problem<half> problem({.queries = 4, .keys = 3}, 64);
    const auto set = [&](auto& rows, std::uint32_t i, float v) {
        for (std::uint32_t e = 0; e < 64; ++e) rows.stored[rows.at(0, 0, i, e)] = half(v);
    };
    set(problem.Q, 0, NAN), set(problem.Q, 1, INFINITY), set(problem.Q, 2, 1);
    for (std::uint32_t j = 0; j < 3; ++j) set(problem.K, j, 1), set(problem.V, j, j == 1 ? INFINITY : 1);
    const auto got = problem.run(device, {.path = path}).first;
    CHECK(std::isnan(float(got[0])));    // scores of NaN
    CHECK(std::isnan(float(got[64])));   // infinite scores: inf - inf
    CHECK(float(got[128]) == INFINITY);  // an infinite element of V
}

TEST_CASE("attention: a NaN or an infinity in V reaches the blocks of queries that read its tile, and no others") {
    const Device device = test::open_device({.target = "sm_90a"});
    const auto check = [&]<class T>(T, std::uint32_t d, AttentionPath path, std::uint32_t of_block,
                                    std::uint32_t of_tile, const AttentionOptions& options) {
        const Shape shape{.queries = 200, .keys = 300};
        for (const std::uint32_t key : {0u, 127u, 128u, 299u})
            for (const float poison : {NAN, -INFINITY}) {
                INFO("d " << d << ", path " << int(path) << ", blocks of " << of_block << ", key " << key);
                Problem<T> problem(shape, d, {.options = options});
                std::fill_n(problem.V.stored.begin() + problem.V.at(0, 0, key, 0), d, T(poison));
                std::fill_n(problem.K.stored.begin() + problem.K.at(0, 0, key, 0), d, T(NAN));
                const auto got = problem.run(device, {.path = path, .queries_of_block = of_block}).first;
                for (std::uint32_t i = 0; i < shape.queries; ++i) {
                    const std::uint32_t first = i / of_block * of_block,
                                        last = std::min(first + of_block, shape.queries);
                    std::uint32_t from = shape.keys, to = 0;  // what the block sees
                    for (std::uint32_t j = 0; j < shape.keys; ++j)
                        for (std::uint32_t query = first; query < last; ++query)
                            if (problem.sees(query, j)) from = std::min(from, j), to = std::max(to, j + 1);
                    const bool reads = from / of_tile <= key / of_tile && key < (to + of_tile - 1) / of_tile * of_tile;
                    CHECK(std::isnan(float(got[problem.O.at(0, 0, i, 0)])) == reads);
                }
            }
    };
    const AttentionOptions causal{.causal = true}, window{.window_left = 20, .window_right = 5};
    for (const AttentionOptions& options : {causal, window}) {
        check(half{}, 64, AttentionPath::mma_sync, 64, 64, options);
        check(half{}, 64, AttentionPath::mma_sync, 128, 64, options);
        check(half{}, 64, AttentionPath::wgmma, 192, 128, options);
        check(half{}, 256, AttentionPath::wgmma, 64, 64, options);
        check(float{}, 256, AttentionPath::mma_sync, 64, 16, options);
    }
}
