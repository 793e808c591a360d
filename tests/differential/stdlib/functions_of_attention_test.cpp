// SPDX-License-Identifier: Apache-2.0
// Attention by its names computes what the names say, against plain loops.
#include <algorithm>
#include <array>
#include <cmath>

#include "stdlib/reference/attention.hpp"
#include "tests/differential/stdlib/named_call.hpp"

namespace ikat::tests {
namespace {

/// How far an element of O, of at most 1, may be off: weights are rounded, and O.
double tolerance_of(const Called& made) {
    const ir::Type type = made.type_of("O");
    return type == ir::Type::BF16 ? 0x1p-7 : type == ir::Type::F16 ? 0x1p-10 : 0x1p-18;
}

/// Keys in pages: 5 of 16 rows for each of two sequences. Arrays of any type are of `of_any`.
void check_attention(const std::string& name, const stdlib::FunctionSettings& settings = {},
                     ir::Type of_any = ir::Type::F16) {
    INFO(name << ", " << ir::info(of_any).name);
    const bool has_pages = name.contains("_pages");
    const std::uint64_t sequences = 2, heads = 4, kv_heads = 2, queries = 5, keys = has_pages ? 80 : 70, dim = 64;
    const std::vector<double> pages = {4, 1, 0, 5, 9, 7, 2, 3, 10, 6};
    const double choices[] = {-1, -0.5, 0, 0.25, 1};
    const Called made(name,
                      {{"sequences", sequences},
                       {"heads", heads},
                       {"kv_heads", kv_heads},
                       {"queries", queries},
                       {"keys", keys},
                       {"head_dim", dim},
                       {"bias_heads", heads},
                       {"bias_keys", keys},
                       {"pages", 11},
                       {"page_rows", 16},
                       {"max_pages", 5}},
                      choices, settings, {{"pages", pages}}, of_any);
    // Where row `row` of a head of `heads` begins, of `rows`.
    const auto at = [&](std::uint64_t sequence, std::uint64_t head, std::uint64_t heads, std::uint64_t row,
                        std::uint64_t rows) {
        const bool is_in_rows = name.contains("_heads_in_rows");
        return (is_in_rows ? (sequence * rows + row) * heads + head : (sequence * heads + head) * rows + row) * dim;
    };
    const auto at_key = [&](std::uint64_t sequence, std::uint64_t head, std::uint64_t j) {
        if (!has_pages) return at(sequence, head, kv_heads, j, keys);
        return at(std::uint64_t(pages[sequence * 5 + j / 16]), head, kv_heads, j % 16, 16);
    };
    const bool is_causal = name.contains("_causal");
    double worst = 0, worst_log = 0;
    for (std::uint64_t head = 0; head < sequences * heads; ++head)
        for (std::uint64_t i = 0; i < queries; ++i) {
            const std::uint64_t sequence = head / heads, of_sequence = head % heads, query = head * queries + i;
            const std::uint64_t q = at(sequence, of_sequence, heads, i, queries);
            std::vector<double> wanted(dim);
            double total = made.has("sinks") ? std::exp(made["sinks"][of_sequence]) : 0;
            for (std::uint64_t j = 0; j < (is_causal ? i + keys - queries + 1 : keys); ++j) {
                const std::uint64_t k = at_key(sequence, of_sequence / 2, j);
                double score = 0;
                for (std::uint64_t e = 0; e < dim; ++e) score += made["Q"][q + e] * made["K"][k + e];
                score /= 8;
                if (made.has("bias")) score += made["bias"][(head % heads * queries + i) * keys + j];
                total += std::exp(score);
                for (std::uint64_t e = 0; e < dim; ++e) wanted[e] += std::exp(score) * made["V"][k + e];
            }
            for (std::uint64_t e = 0; e < dim; ++e)
                worst = std::max(worst, std::abs(made["O"][q + e] - wanted[e] / total));
            if (made.has("log_sum"))
                worst_log = std::max(worst_log, std::abs(made["log_sum"][query] - std::log(total)));
        }
    CHECK(worst <= tolerance_of(made));
    CHECK(worst_log <= 0x1p-15);
}

/// Of O and log_sum that are any numbers.
void check_backward(const std::string& name, const stdlib::FunctionSettings& settings = {}) {
    INFO(name);
    const std::uint32_t sequences = 2, heads = 4, kv_heads = 2, queries = 5, keys = 9, dim = 64;
    const double choices[] = {-1, -0.5, 0, 0.25, 1};
    const Called made(name,
                      {{"sequences", sequences},
                       {"heads", heads},
                       {"kv_heads", kv_heads},
                       {"queries", queries},
                       {"keys", keys},
                       {"head_dim", dim},
                       {"bias_sequences", sequences},
                       {"bias_heads", heads}},
                      choices, settings);
    const bool is_in_rows = name.contains("_heads_in_rows"), is_causal = name.contains("_causal");
    const auto at = [&](std::uint32_t s, std::uint32_t h, std::uint32_t of, std::uint32_t i, std::uint32_t rows) {
        return std::size_t(is_in_rows ? (s * rows + i) * of + h : (s * of + h) * rows + i) * dim;
    };
    const auto each = [&](std::uint32_t s, std::uint32_t of, std::uint32_t rows, auto&& f) {
        for (std::uint32_t h = 0; h < of; ++h)
            for (std::uint32_t i = 0; i < rows; ++i)
                for (std::uint32_t e = 0; e < dim; ++e) f(at(s, h, of, i, rows) + e);
    };
    for (std::uint32_t s = 0; s < sequences; ++s) {
        stdlib::reference::AttentionCase is{queries, keys, heads, kv_heads, dim};
        const auto take = [&](const char* array, std::uint32_t of, std::uint32_t rows, std::vector<double>& to) {
            each(s, of, rows, [&](std::size_t n) { to.push_back(made[array][n]); });
        };
        const auto part = [&](const char* array, std::size_t count) {
            const auto first = made[array].begin() + std::ptrdiff_t(s * count);
            return std::vector<double>(first, first + std::ptrdiff_t(count));
        };
        take("Q", heads, queries, is.Q), take("K", kv_heads, keys, is.K), take("V", kv_heads, keys, is.V);
        take("O", heads, queries, is.O), take("dO", heads, queries, is.dO);
        is.log_sum = part("log_sum", heads * queries);
        if (made.has("bias")) is.bias = part("bias", heads * queries * keys);
        is.scale = 0.125, is.step = made.type_of("Q") == ir::Type::F16 ? 0x1p-11 : 0x1p-8;
        is.sees = [&](auto, std::uint32_t i, std::uint32_t j) { return !is_causal || j <= i + keys - queries; };
        const auto wanted = stdlib::reference::attention_backward(is);
        const auto compare = [&](const char* array, std::uint32_t of, std::uint32_t rows, const auto& expected) {
            std::size_t n = 0, wrong = 0;
            each(s, of, rows, [&](std::size_t place) {
                wrong += !(std::abs(made[array][place] - expected[n].value) <= expected[n].error), ++n;
            });
            INFO(array);
            CHECK(wrong == 0);
        };
        compare("dQ", heads, queries, wanted.dQ), compare("dK", kv_heads, keys, wanted.dK);
        compare("dV", kv_heads, keys, wanted.dV);
        if (!made.has("dbias")) continue;
        const auto dbias = part("dbias", heads * queries * keys);
        for (std::size_t n = 0; n < dbias.size(); ++n) {
            const auto expected = stdlib::reference::bounded_sum({wanted.dbias[n]}, is.step);
            CHECK(std::abs(dbias[n] - expected.value) <= expected.error);
        }
    }
}

/// The keys of two sequences, which have 37 and 9 of them, in pages of 16.
void check_incremental(const std::string& name, ir::Type of_any = ir::Type::F16) {
    INFO(name << ", " << ir::info(of_any).name);
    const bool has_pages = name.contains("_pages"), has_lengths = name.contains("_lengths");
    const std::uint64_t queries = 2, heads = 2, room = 48, dim = 64, lengths[] = {37, 9}, pages[] = {4, 1, 0, 5, 2, 3};
    const double choices[] = {-1, -0.5, 0, 0.25, 1};
    const bool is_in_rows = name.contains("_heads_in_rows");
    const Called made(name,
                      {{"sequences", 2},
                       {"heads", heads},
                       {"kv_heads", 1},
                       {"queries", queries},
                       {"keys", room},
                       {"head_dim", dim},
                       {"pages", 6},
                       {"page_rows", 16},
                       {"max_pages", 3}},
                      choices, {}, {{"lengths", {37, 9}}, {"pages", {4, 1, 0, 5, 2, 3}}}, of_any);
    double worst = 0;
    for (std::uint64_t query = 0; query < 2 * heads * queries; ++query) {
        const std::uint64_t sequence = query / (heads * queries), length = has_lengths ? lengths[sequence] : room;
        const std::uint64_t head = query / queries % heads, i = query % queries;
        const std::uint64_t q = is_in_rows ? ((sequence * queries + i) * heads + head) * dim : query * dim;
        const std::uint64_t seen = name.contains("_causal") ? length - queries + i + 1 : length;
        std::vector<double> wanted(dim);
        double total = made.has("sinks") ? std::exp(made["sinks"][head]) : 0;
        for (std::uint64_t j = 0; j < seen; ++j) {
            const std::uint64_t key = has_pages ? pages[sequence * 3 + j / 16] * 16 + j % 16 : sequence * room + j;
            double score = 0;
            for (std::uint64_t e = 0; e < dim; ++e) score += made["Q"][q + e] * made["K"][key * dim + e];
            total += std::exp(score / 8);
            for (std::uint64_t e = 0; e < dim; ++e) wanted[e] += std::exp(score / 8) * made["V"][key * dim + e];
        }
        for (std::uint64_t e = 0; e < dim; ++e) worst = std::max(worst, std::abs(made["O"][q + e] - wanted[e] / total));
        if (made.has("log_sum")) CHECK(std::abs(made["log_sum"][query] - std::log(total)) < 0x1p-15);
    }
    CHECK(worst <= tolerance_of(made));
}

TEST_CASE("functions: the gradients of attention by names") {
    for (const char* const name : {"attention_backward_f16", "attention_backward_causal_bf16",
                                   "attention_backward_heads_in_rows_causal_bias_f16", "attention_backward_bias_bf16"})
        check_backward(name);
}

TEST_CASE("functions: attention") {
    for (const char* name :
         {"f16", "causal_f16", "bias_f16", "causal_log_sum_f16", "causal_bias_log_sum_f16", "bf16", "causal_bf16",
          "log_sum_bf16", "causal_bias_f32", "sinks_f16", "causal_bias_sinks_log_sum_f32"})
        check_attention(std::string("flash_attention_") + name);
}

TEST_CASE("functions: attention to encoded caches and to pages") {
    for (const char* name : {"e4m3", "q8_0", "causal_bias_sinks_log_sum_q8_0", "heads_in_rows_causal_e4m3",
                             "heads_in_rows_pages_q8_0", "causal_bias_pages_log_sum_e4m3", "pages_f32"})
        for (const ir::Type type : {ir::Type::F16, ir::Type::BF16, ir::Type::F32})
            check_attention(std::string("flash_attention_") + name, {}, type);
    stdlib::FunctionSettings settings;  // bytes of two heads and a block more, elements of them
    settings.set("K_pitch", "170"), settings.set("V_pitch", "136"), settings.set("Q_pitch", "260");
    check_attention("flash_attention_heads_in_rows_causal_q8_0", settings);
    for (const char* name : {"e4m3", "lengths_q8_0", "heads_in_rows_causal_lengths_q8_0", "causal_pages_sinks_e4m3",
                             "heads_in_rows_lengths_pages_log_sum_q8_0"})
        for (const ir::Type type : {ir::Type::F16, ir::Type::BF16, ir::Type::F32})
            check_incremental(std::string("incremental_attention_") + name, type);
}

TEST_CASE("functions: attention of heads in rows") {
    for (const char* name : {"f16", "causal_bias_log_sum_bf16"})
        check_attention(std::string("flash_attention_heads_in_rows_") + name);
    stdlib::FunctionSettings settings;
    for (const auto& [name, pitch] :
         {std::pair("Q_pitch", "264"), {"K_pitch", "129"}, {"V_pitch", "130"}, {"O_pitch", "257"}})
        settings.set(name, pitch);
    check_attention("flash_attention_heads_in_rows_causal_log_sum_f16", settings);
}

TEST_CASE("functions: attention with pitches") {
    stdlib::FunctionSettings settings;
    for (const char* name : {"Q_pitch", "K_pitch", "O_pitch"}) settings.set(name, "72");
    settings.set("bias_pitch", "71"), settings.set("log_sum_pitch", "6");
    check_attention("flash_attention_causal_bias_log_sum_bf16", settings);
}

/// A sequence of two queries and keys, and one of a query and four keys, all the same: each sees as many as there are.
TEST_CASE("functions: attention of sequences of different lengths") {
    for (const char* name :
         {"log_sum_f16", "log_sum_bf16", "log_sum_f32", "pages_log_sum_bf16", "pages_log_sum_q8_0"}) {
        INFO(name);
        const Called made(std::string("flash_attention_causal_offsets_") + name,
                          {{"heads", 1},
                           {"kv_heads", 1},
                           {"queries", 3},
                           {"keys", 6},
                           {"head_dim", 64},
                           {"offsets", 3},
                           {"sequences", 2},
                           {"pages", 2},
                           {"page_rows", 16},
                           {"max_pages", 1}},
                          std::array{0.0}, {},
                          {{"query_offsets", {0, 2, 3}}, {"key_offsets", {0, 2, 6}}, {"pages", {1, 0}}});
        for (std::size_t i = 0; i < 3; ++i)
            CHECK(std::abs(made["log_sum"][i] - std::log(std::array{1.0, 2.0, 4.0}[i])) < 0x1p-15);
        CHECK(made["O"] == std::vector<double>(3 * 64, 0.0));
    }
}

TEST_CASE("functions: attention to a cache") {
    for (const char* name :
         {"f16", "lengths_bf16", "causal_lengths_f32", "causal_pages_log_sum_f16", "lengths_pages_bf16",
          "causal_lengths_pages_log_sum_f32", "heads_in_rows_causal_lengths_f16", "heads_in_rows_lengths_pages_bf16",
          "sinks_f16", "causal_lengths_pages_sinks_log_sum_f32"})
        check_incremental(std::string("incremental_attention_") + name);
}

}  // namespace
}  // namespace ikat::tests
