// SPDX-License-Identifier: Apache-2.0
// flash_attention() of sequences of different lengths, by offsets, against calls for each of them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stdlib/attention/attention.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/targets.hpp"

namespace {

using namespace ikat;
using namespace ikat::stdlib;
using Catch::Matchers::Contains;
using runtime::Device;

/// Numbers between -1 and 1, many of them equal.
double small(std::size_t i) { return double((i * 2654435761u >> 7) % 129) / 64 - 1; }

struct Ragged {
    std::vector<std::uint32_t> queries, keys;  // where sequences begin and end
    std::uint32_t heads = 4, kv_heads = 2, d = 64, block = 64;
    std::uint32_t bias_heads = 0;  // 0: there is no bias
    AttentionOptions options{};
    bool has_sinks = false;
};

/// O and log_sum of all sequences at once are those of calls for each; what belongs to no sequence is NaN and stays so.
template <class T>
void check_ragged(const Device& device, const Ragged& is) {
    const auto rows = [&](std::uint32_t heads, const std::vector<std::uint32_t>& offsets, std::size_t seed) {
        std::vector<T> out((offsets.back() + 2) * std::size_t(heads) * is.d, T(NAN));
        for (std::size_t n = offsets[0] * std::size_t(heads) * is.d; n < offsets.back() * std::size_t(heads) * is.d;
             ++n)
            out[n] = T(float(small(n + seed)));
        return out;
    };
    const auto q = device.upload(rows(is.heads, is.queries, 0), "Q"),
               k = device.upload(rows(is.kv_heads, is.keys, 5), "K"),
               v = device.upload(rows(is.kv_heads, is.keys, 99), "V");
    const auto query_offsets = device.upload(is.queries, "query_offsets"),
               key_offsets = device.upload(is.keys, "key_offsets");
    const std::uint32_t all = is.queries.back() + 2;
    const auto poisoned = [&](auto zero, std::size_t size) { return std::vector(size, decltype(zero)(NAN)); };
    const std::size_t of_o = std::size_t(all) * is.heads * is.d, of_log_sum = std::size_t(all) * is.heads;
    auto o = device.upload(poisoned(T{}, of_o), "O"), o_one_by_one = device.upload(poisoned(T{}, of_o), "O");
    auto log_sum = device.upload(poisoned(0.0f, of_log_sum), "log_sum"),
         log_sum_one_by_one = device.upload(poisoned(0.0f, of_log_sum), "log_sum");
    // Rows `first` to `last - 1` of all heads.
    const auto part = [&](auto& buffer, std::uint32_t heads, std::uint32_t first, std::uint32_t last) {
        const std::size_t row = std::size_t(heads) * is.d;
        return heads_in_rows(buffer.slice(first * row, (last - first) * row).view(1, last - first, heads, is.d));
    };
    const auto part_of_sums = [&](auto& buffer, std::uint32_t first, std::uint32_t last) {
        return buffer.slice(first, buffer.size() - first).view(1, is.heads, last - first).pitched(of_log_sum, all);
    };
    // A row for each query, with an element for each key of the longest sequence, and some more.
    std::uint32_t columns = 3;
    for (std::size_t s = 0; s + 1 < is.keys.size(); ++s) columns = std::max(columns, is.keys[s + 1] - is.keys[s] + 3);
    std::vector<T> biases;
    for (std::size_t n = 0; n < std::max(is.bias_heads, 1u) * std::size_t(all) * columns; ++n)
        biases.push_back(T(float(small(n + 3))));
    const auto bias = device.upload(biases, "bias");
    const auto bias_of = [&](std::uint32_t first, std::uint32_t last, std::uint32_t keys) {
        return bias.slice(std::uint64_t(first) * columns, bias.size() - std::uint64_t(first) * columns)
            .view(1, is.bias_heads, last - first, keys)
            .pitched(bias.size(), std::uint64_t(all) * columns, columns);
    };
    const auto sinks = device.upload(std::vector<float>{0.5f, -INFINITY, 4, -2}, "sinks");
    AttentionOptions options = is.options;
    options.queries_of_block = is.block;
    if (is.has_sinks) options.sinks = sinks;
    if (is.bias_heads) options.bias = bias_of(0, all, columns);
    options.query_offsets = query_offsets, options.key_offsets = key_offsets;
    options.log_sum = part_of_sums(log_sum, 0, all);
    flash_attention(device, part(q, is.heads, 0, all), part(k, is.kv_heads, 0, is.keys.back() + 2),
                    part(v, is.kv_heads, 0, is.keys.back() + 2), part(o, is.heads, 0, all), options);
    options.query_offsets.reset(), options.key_offsets.reset();
    for (std::size_t s = 0; s + 1 < is.queries.size(); ++s) {
        const std::uint32_t first = is.queries[s], last = is.queries[s + 1], key = is.keys[s], end = is.keys[s + 1];
        options.log_sum = part_of_sums(log_sum_one_by_one, first, last);
        if (is.bias_heads) options.bias = bias_of(first, last, end - key);
        flash_attention(device, part(q, is.heads, first, last), part(k, is.kv_heads, key, end),
                        part(v, is.kv_heads, key, end), part(o_one_by_one, is.heads, first, last), options);
    }
    const auto same = [](const auto& a, const auto& b) {
        return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](auto x, auto y) {
            return float(x) == float(y) || (std::isnan(float(x)) && std::isnan(float(y)));
        });
    };
    CHECK(same(o.download(), o_one_by_one.download()));
    CHECK(same(log_sum.download(), log_sum_one_by_one.download()));
    const std::vector<T> got = o.download();
    const auto numbers = std::count_if(got.begin(), got.end(), [](const T& x) { return !std::isnan(float(x)); });
    CHECK(std::size_t(numbers) == std::size_t(is.queries.back() - is.queries[0]) * is.heads * is.d);
}

}  // namespace

TEMPLATE_TEST_CASE("ragged attention: sequences of different lengths give what calls for each give", "", half, bfloat16,
                   float) {
    const auto path = GENERATE(AttentionPath::mma_sync, AttentionPath::wgmma);
    const bool is_by_wgmma = path == AttentionPath::wgmma;
    if (is_by_wgmma && sizeof(TestType) == 4) return;
    std::vector<Device> devices;
    for (int seed = 0; seed < 4; ++seed) {
        const std::string schedule = std::to_string(seed);
        devices.push_back(test::open_device({.target = is_by_wgmma ? "sm_90a" : "", .schedule = schedule}));
    }
    const Ragged cases[] = {
        {.queries = {0, 5}, .keys = {0, 9}},
        {.queries = {3, 8, 8, 138, 202, 203}, .keys = {1, 71, 74, 203, 203, 204}},
        {.queries = {0, 64, 128, 129}, .keys = {0, 64, 100, 180}, .options = {.causal = true}},
        {.queries = {0, 0, 0, 70}, .keys = {0, 10, 20, 150}, .d = 128, .options = {.causal = true, .window_left = 20}},
        {.queries = {0, 130, 390}, .keys = {0, 100, 300}, .heads = 1, .kv_heads = 1, .block = 128},
        {.queries = {3, 8, 8, 300},
         .keys = {1, 71, 74, 270},
         .d = 128,
         .block = sizeof(TestType) == 2 ? 128u : 64u,
         .options = {.causal = true, .window_left = 90},
         .has_sinks = true},
        {.queries = {0, 40, 80}, .keys = {2, 100, 300}, .d = 80, .options = {.window_right = 30, .soft_cap = 3}},
        {.queries = {0, 127, 128, 300}, .keys = {0, 90, 91, 92}, .d = 256},
        {.queries = {3, 8, 8, 138, 202}, .keys = {1, 71, 74, 203, 203}, .bias_heads = 4},
        {.queries = {0, 40, 110}, .keys = {0, 100, 300}, .bias_heads = 1, .options = {.causal = true, .soft_cap = 3}},
        {.queries = {0, 5, 70, 110}, .keys = {0, 0, 100, 300}, .options = {.causal = true}, .has_sinks = true},
    };
    std::size_t number = 0;
    for (Ragged is : cases) {
        INFO("case " << number << ", d " << is.d << ", path " << int(path));
        is.options.path = path;
        if (is_by_wgmma && is.d == 64) is.block = 64 * std::uint32_t(1 + number % 3);
        for (std::size_t seed = 0; seed < devices.size(); ++seed)
            if (tests::is_for_seed(number, seed, devices.size())) check_ragged<TestType>(devices[seed], is);
        ++number;
    }
}

TEST_CASE("ragged attention: by wgmma where sequences are long") {
    const auto entry = [](std::uint32_t sequences) {
        std::vector<emulator::LaunchTraffic> traffic;
        const auto device = Device::open({.device = "emulator", .target = "sm_90a", .traffic = &traffic});
        std::vector<std::uint32_t> starts;
        for (std::uint32_t s = 0; s <= sequences; ++s) starts.push_back(s * 130 / sequences);
        const auto x = device.upload(std::vector<half>(130 * 64), "rows");
        auto o = device.buffer<half>(130 * 64, "O");
        const auto offsets = device.upload(starts, "offsets");
        AttentionOptions options{};
        options.query_offsets = offsets, options.key_offsets = offsets;
        flash_attention(device, x.view(130, 64), x.view(130, 64), x.view(130, 64), o.view(130, 64), options);
        return traffic.at(0).entry;
    };
    CHECK(entry(2) == "flash_attention_f16_d64_wgmma_offsets");
    CHECK(entry(3) == "flash_attention_f16_d64_offsets");
}

TEST_CASE("ragged attention: an offset beyond the rows is found") {
    const auto path = GENERATE(AttentionPath::mma_sync, AttentionPath::wgmma);
    const auto device = Device::open({.device = "emulator", .target = "sm_90a"});
    const auto x = device.upload(std::vector<half>(10 * 64, half(1.0f)), "rows");
    auto o = device.buffer<half>(10 * 64, "O");
    const auto right = device.upload(std::vector<std::uint32_t>{0, 4, 10}, "right"),
               wrong = device.upload(std::vector<std::uint32_t>{0, 4, 11}, "wrong");
    const auto run = [&](const TensorView& queries, const TensorView& keys) {
        AttentionOptions options{.path = path};
        options.query_offsets = queries, options.key_offsets = keys;
        try {
            flash_attention(device, x.view(10, 64), x.view(10, 64), x.view(10, 64), o.view(10, 64), options);
        } catch (const Error& error) { return std::string(error.what()); }
        return std::string("no error");
    };
    CHECK(run(right, right) == "no error");
    CHECK_THAT(run(right, wrong), Contains("past the end of buffer 'rows'"));
    CHECK_THAT(run(wrong, right), Contains("past the end of buffer"));
}

TEST_CASE("ragged attention: calls that do not fit together") {
    const Device device = test::open_device();
    const auto x = device.buffer<half>(4096, "x");
    auto y = device.buffer<half>(4096, "y");
    auto words = device.buffer<std::uint32_t>(64, "words");
    const auto sums = device.buffer<float>(64, "sums");
    const auto run = [&](const TensorView& Q, const TensorView& K, const TensorView& V, const MutableTensorView& O,
                         const AttentionOptions& options) {
        try {
            flash_attention(device, Q, K, V, O, options);
        } catch (const Error& error) { return std::string(error.what()); }
        return std::string("no error");
    };
    const auto q = x.view(2, 4, 64), k = x.view(1, 5, 64);
    const auto o = y.view(2, 4, 64);
    const auto with = [&](const std::optional<TensorView>& queries, const std::optional<TensorView>& keys) {
        AttentionOptions options{};
        options.query_offsets = queries, options.key_offsets = keys;
        return options;
    };
    CHECK_THAT(run(q, k, k, o, with(words, {})), Contains("query_offsets without key_offsets"));
    CHECK_THAT(run(q, k, k, o, with({}, words)), Contains("key_offsets without query_offsets"));
    CHECK_THAT(run(q, k, k, o, with(words, words.slice(0, 5))), Contains("has 64 elements, key_offsets 5"));
    CHECK_THAT(run(q, k, k, o, with(words.view(8, 8), words)), Contains("query_offsets has 2 dimensions"));
    CHECK_THAT(run(q, k, k, o, with(words, sums)), Contains("key_offsets has elements of f32"));
    CHECK_THAT(
        run(x.view(2, 1, 4, 64), x.view(2, 1, 5, 64), x.view(2, 1, 5, 64), y.view(2, 1, 4, 64), with(words, words)),
        Contains("Q is 2 x 1 x 4 x 64, with offsets"));
    AttentionOptions biased = with(words, words);
    biased.bias = x.view(5, 5);  // not a row for each query
    CHECK_THAT(run(q, k, k, o, biased), Contains("the bias is 1 x 1 x 5 x 5, not 1 x 1 x 4 x 5"));
    auto freed = std::optional(device.buffer<std::uint32_t>(64, "freed"));
    const TensorView gone = *freed;
    freed.reset();
    CHECK_THAT(run(q, k, k, o, with(words, gone)), Contains("has been freed"));
}
