// SPDX-License-Identifier: Apache-2.0
// flash_attention() by names.
#include <fmt/format.h>

#include "codegen/support/diagnostic.hpp"
#include "stdlib/attention/attention.hpp"
#include "stdlib/attention/named_heads.hpp"
#include "stdlib/spec/functions.hpp"

namespace ikat::stdlib {
namespace {

constexpr std::string_view attention_paths[] = {"chosen", "mma_sync", "wgmma"};
constexpr NamedFunction::Setting attention_settings[] = {
    {"scale", "of scores, a positive number; 1 / sqrt(head_dim) if it is not set"},
    {"soft_cap", "scores become soft_cap tanh(score / soft_cap); none if it is not set, 0 or inf"},
    {"window_left", "how many keys before its own a query sees; all if it is not set"},
    {"window_right", "... and after its own; all if it is not set"},
    {"path", "mma_sync, or wgmma, for sm_90a; chosen if it is not set"},
    {"queries_of_block", "64, 128, or by wgmma 192; chosen if it is not set"},
};
constexpr NamedFunction::Size attention_sizes[] = {{"sequences", 4},  {"heads", 16},      {"kv_heads", 16},
                                                   {"queries", 2048}, {"keys", 2048},     {"head_dim", 128},
                                                   {"offsets", 5},    {"bias_keys", 2048}};

constexpr NamedFunction::Family attention_family{
    .prefix = "flash_attention",
    .form = "flash_attention[_heads_in_rows][_causal][_bias][_sinks][_offsets][_log_sum]_TYPE",
    .summary = "O = softmax(scale Q K') V for each head",
    .document =
        "TYPE is f16, bf16, or f32, without tensor cores. A head has 64, 80, 96, 128 or 256 elements. Several\n"
        "heads of Q may share one of K and V: kv_heads divides heads. _heads_in_rows: those of a query, or a key,\n"
        "follow each other in a row. The last query belongs to the last key; _causal, a query sees no key after\n"
        "its own. _bias is added to scores; one sequence or head of it is for all. _sinks: for each head a score\n"
        "without a value, which counts in the softmax and in _log_sum. _offsets: sequences of different lengths,\n"
        "one after the other; where each begins among the queries and keys, and where the last ends; a bias then\n"
        "has a row for each query, for the keys of its sequence. _log_sum is the logarithm of the sum of\n"
        "exp(score) of each query, in f32.",
    .settings = attention_settings,
    .sizes = attention_sizes};

struct AttentionName {
    ir::Type type;
    bool is_in_rows, is_causal, has_bias, has_sinks, has_offsets, has_log_sum;

    std::string text() const {
        return fmt::format("flash_attention{}{}{}{}{}{}_{}", is_in_rows ? "_heads_in_rows" : "",
                           is_causal ? "_causal" : "", has_bias ? "_bias" : "", has_sinks ? "_sinks" : "",
                           has_offsets ? "_offsets" : "", has_log_sum ? "_log_sum" : "", ir::info(type).name);
    }
};

void run_attention(const AttentionName& is, const Queue& queue, std::span<const MutableTensorView> arrays,
                   const FunctionSettings& settings) {
    AttentionOptions options{.causal = is.is_causal,
                             .window_left = settings.count("window_left"),
                             .window_right = settings.count("window_right")};
    options.scale = settings.number("scale");
    options.soft_cap = settings.number("soft_cap").value_or(0);
    options.path = AttentionPath(settings.one_of("path", attention_paths));
    options.queries_of_block = settings.count("queries_of_block").value_or(0);
    const auto heads = [&](std::size_t i) { return heads_of(arrays[i], is.is_in_rows); };
    std::size_t next = 3;
    if (is.has_bias) options.bias = arrays[next++];
    if (is.has_sinks) options.sinks = arrays[next++];
    if (is.has_offsets) options.query_offsets = arrays[next++], options.key_offsets = arrays[next++];
    const MutableTensorView O = heads(next++);
    if (is.has_log_sum) options.log_sum = arrays[next];
    flash_attention(queue, heads(0), heads(1), heads(2), O, options);
}

NamedFunction attention_function(const AttentionName& is) {
    NamedFunction out{.name = is.text(), .family = &attention_family};
    out.formula = fmt::format("O = softmax(scale Q K'{}) V{}{}", is.has_bias ? " + bias" : "",
                              is.has_sinks ? ", with sinks" : "", is.is_causal ? ", causal" : "");
    std::string options;  // in the order of AttentionOptions
    if (is.is_causal) options += ", .causal = true";
    if (is.has_bias) options += ", .bias = bias";
    if (is.has_sinks) options += ", .sinks = sinks";
    if (is.has_log_sum) options += ", .log_sum = log_sum";
    if (is.has_offsets) options += ", .query_offsets = query_offsets, .key_offsets = key_offsets";
    out.call = fmt::format("flash_attention(queue, {}{})", call_of_heads(is.is_in_rows),
                           options.empty() ? "" : ", {" + options.substr(2) + "}");
    const HeadsShape of_q =
        is.has_offsets ? HeadsShape{"[heads] queries head_dim", "queries heads head_dim"}
                       : HeadsShape{"[sequences] [heads] queries head_dim", "[sequences] queries heads head_dim"};
    const HeadsShape of_k =
        is.has_offsets ? HeadsShape{"[kv_heads] keys head_dim", "keys kv_heads head_dim"}
                       : HeadsShape{"[sequences] [kv_heads] keys head_dim", "[sequences] keys kv_heads head_dim"};
    const OperandShape of_log_sum =
        is.has_offsets ? OperandShape("[heads] queries") : OperandShape("[sequences] [heads] queries");
    out.arrays = {of_q.array("Q", is.type, is.is_in_rows), of_k.array("K", is.type, is.is_in_rows),
                  of_k.array("V", is.type, is.is_in_rows)};
    if (is.has_bias)
        out.arrays.push_back({"bias", is.type,
                              is.has_offsets ? OperandShape("[bias_heads] queries bias_keys")
                                             : OperandShape("[bias_sequences] [bias_heads] queries keys")});
    if (is.has_sinks) out.arrays.push_back({"sinks", ir::Type::F32, "heads"});
    if (is.has_offsets)
        for (const std::string_view name : {"query_offsets", "key_offsets"})
            out.arrays.push_back({name, ir::Type::U32, "offsets"});
    out.arrays.push_back(of_q.array("O", is.type, is.is_in_rows));
    out.arrays.back().access = Access::Out;
    if (is.has_log_sum) out.arrays.push_back({"log_sum", ir::Type::F32, of_log_sum, Access::Out});
    out.run = [is](const Queue& queue, std::span<const MutableTensorView> arrays, const FunctionSettings& settings) {
        run_attention(is, queue, arrays, settings);
    };
    return out;
}

}  // namespace

std::vector<NamedFunction> attention_functions() {
    std::vector<NamedFunction> out;
    for (const ir::Type type : {ir::Type::F16, ir::Type::BF16, ir::Type::F32})
        for (const bool is_in_rows : {false, true})
            for (const bool is_causal : {false, true})
                for (const bool has_log_sum : {false, true})
                    for (const bool has_bias : {false, true})
                        for (const bool has_sinks : {false, true})
                            for (const bool has_offsets : {false, true})
                                out.push_back(attention_function(
                                    {type, is_in_rows, is_causal, has_bias, has_sinks, has_offsets, has_log_sum}));
    return out;
}

}  // namespace ikat::stdlib
