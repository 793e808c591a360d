// SPDX-License-Identifier: Apache-2.0
// flash_attention() by names.
#include <fmt/format.h>

#include "codegen/support/diagnostic.hpp"
#include "stdlib/attention/attention.hpp"
#include "stdlib/attention/named_heads.hpp"

namespace ikat::stdlib {
namespace {

constexpr NamedFunction::Setting attention_settings[] = {
    {"scale", "of scores, a positive number; 1 / sqrt(head_dim) if it is not set"},
    {"soft_cap", "scores become soft_cap tanh(score / soft_cap); none if it is not set, 0 or inf"},
    {"window_left", "how many keys before its own a query sees; all if it is not set"},
    {"window_right", "... and after its own; all if it is not set"},
    {"path", "mma_sync, or wgmma, for sm_90a; chosen if it is not set"},
    {"queries_of_block", "64, 128, or by wgmma 192; chosen if it is not set"},
};
constexpr NamedFunction::Size attention_sizes[] = {
    {"sequences", 4}, {"heads", 16},       {"kv_heads", 16}, {"queries", 2048}, {"keys", 2048},    {"head_dim", 128},
    {"offsets", 5},   {"bias_keys", 2048}, {"pages", 512},   {"page_rows", 16}, {"max_pages", 128}};

constexpr auto attention_family = family_of(
    "flash_attention[_heads_in_rows][_causal][_bias][_sinks][_offsets][_pages][_log_sum]_TYPE",
    "O = softmax(scale Q K') V for each head",
    "TYPE is f16, bf16, or f32, without tensor cores, or e4m3 or q8_0, of K and V: Q, O and a bias are f16,\n"
    "bf16 or f32 then, and K and V are decoded to that. A head has 64, 80, 96, 128 or 256 elements, of q8_0\n"
    "not 80. Several heads of Q may share one of K and V: kv_heads divides heads. _heads_in_rows: those of a\n"
    "query, or a key, follow each other in a row. The last query belongs to the last key; _causal, a query\n"
    "sees no key after its own. _bias is added to scores; one sequence or head of it is for all. _sinks: for\n"
    "each head a score without a value, which counts in the softmax and in _log_sum. _offsets: sequences of\n"
    "different lengths, one after the other; where each begins among the queries and keys, and where the last\n"
    "ends; a bias then has a row for each query, for the keys of its sequence. _pages: K and V are pages of a\n"
    "power of two of rows, 16 or more, and key j of a sequence is row j % page_rows of page\n"
    "pages[j / page_rows]; all keys that pages have room for or, with _offsets, as many as these say. _log_sum\n"
    "is the logarithm of the sum of exp(score) of each query, in f32.",
    attention_settings, attention_sizes);

struct AttentionName {
    CacheElements are;  // K and V
    bool is_in_rows, is_causal, has_bias, has_sinks, has_offsets, has_pages, has_log_sum;

    std::string text() const {
        return fmt::format("flash_attention{}{}{}{}{}{}{}_{}", is_in_rows ? "_heads_in_rows" : "",
                           is_causal ? "_causal" : "", has_bias ? "_bias" : "", has_sinks ? "_sinks" : "",
                           has_offsets ? "_offsets" : "", has_pages ? "_pages" : "", has_log_sum ? "_log_sum" : "",
                           are.name());
    }
};

void run_attention(const AttentionName& is, const Queue& queue, NamedArrays arrays, const FunctionSettings& settings) {
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
    if (is.has_pages) options.pages = arrays[next++];
    const MutableTensorView O = heads(next++);
    if (is.has_log_sum) options.log_sum = arrays[next];
    flash_attention(queue, heads(0), heads(1), heads(2), O, options);
}

NamedFunction attention_function(const AttentionName& is) {
    NamedFunction out{.name = is.text(), .family = &attention_family};
    const bool is_plain = !is.is_in_rows && !is.has_bias && !is.has_sinks && !is.has_offsets && !is.has_pages &&
                          !is.has_log_sum && !is.are.are_encoded();
    if (is_plain && is.is_causal) out.other_names = {"flash_attention_causal", "llama_attention"};
    if (is_plain && !is.is_causal) out.other_names = {"flash_attention"};
    out.formula = fmt::format("O = softmax(scale Q K'{}) V{}{}", is.has_bias ? " + bias" : "",
                              is.has_sinks ? ", with sinks" : "", is.is_causal ? ", causal" : "");
    std::string options;  // in the order of AttentionOptions
    if (is.is_causal) options += ", .causal = true";
    if (is.has_bias) options += ", .bias = bias";
    if (is.has_sinks) options += ", .sinks = sinks";
    if (is.has_log_sum) options += ", .log_sum = log_sum";
    if (is.has_offsets) options += ", .query_offsets = query_offsets, .key_offsets = key_offsets";
    if (is.has_pages) options += ", .pages = pages";
    out.call = fmt::format("flash_attention(queue, {}{})", call_of_heads(is.is_in_rows),
                           options.empty() ? "" : ", {" + options.substr(2) + "}");
    const HeadsShape of_q =
        is.has_offsets ? HeadsShape{"[heads] queries head_dim", "queries heads head_dim"}
                       : HeadsShape{"[sequences] [heads] queries head_dim", "[sequences] queries heads head_dim"};
    const HeadsShape of_k =
        is.has_pages     ? paged_shape
        : is.has_offsets ? HeadsShape{"[kv_heads] keys head_dim", "keys kv_heads head_dim"}
                         : HeadsShape{"[sequences] [kv_heads] keys head_dim", "[sequences] keys kv_heads head_dim"};
    const OperandShape of_log_sum =
        is.has_offsets ? OperandShape("[heads] queries") : OperandShape("[sequences] [heads] queries");
    out.arrays = {of_q.decoded("Q", is.are, is.is_in_rows, Access::In), of_k.array("K", is.are, is.is_in_rows),
                  of_k.array("V", is.are, is.is_in_rows)};
    if (is.has_bias)
        out.arrays.push_back(input("bias",
                                   is.has_offsets ? OperandShape("[bias_heads] queries bias_keys")
                                   : is.has_pages ? OperandShape("[bias_sequences] [bias_heads] queries bias_keys")
                                                  : OperandShape("[bias_sequences] [bias_heads] queries keys"),
                                   is.are.decoded()));
    if (is.has_sinks) out.arrays.push_back(input("sinks", "heads", ir::Type::F32));
    if (is.has_offsets)
        for (const std::string_view name : {"query_offsets", "key_offsets"})
            out.arrays.push_back(input(name, "offsets", ir::Type::U32));
    if (is.has_pages) out.arrays.push_back(input("pages", "sequences max_pages", ir::Type::U32));
    out.arrays.push_back(of_q.decoded("O", is.are, is.is_in_rows, Access::Out));
    if (is.has_log_sum) out.arrays.push_back(output("log_sum", of_log_sum, ir::Type::F32));
    out.run = [is](const Queue& queue, NamedArrays arrays, const FunctionSettings& settings) {
        run_attention(is, queue, arrays, settings);
    };
    return out;
}

}  // namespace

std::vector<NamedFunction> attention_functions() {
    std::vector<NamedFunction> out;
    for (const CacheElements& are : named_elements)
        for (const bool is_in_rows : {false, true})
            for (const bool is_causal : {false, true})
                for (const bool has_log_sum : {false, true})
                    for (const bool has_bias : {false, true})
                        for (const bool has_sinks : {false, true})
                            for (const bool has_offsets : {false, true})
                                for (const bool has_pages : {false, true})
                                    out.push_back(attention_function({are, is_in_rows, is_causal, has_bias, has_sinks,
                                                                      has_offsets, has_pages, has_log_sum}));
    return out;
}

}  // namespace ikat::stdlib
