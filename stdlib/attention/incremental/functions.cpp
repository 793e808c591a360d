// SPDX-License-Identifier: Apache-2.0
// incremental_attention() by names.
#include <fmt/format.h>

#include "stdlib/attention/incremental/incremental.hpp"
#include "stdlib/attention/named_heads.hpp"

namespace ikat::stdlib {
namespace {

constexpr NamedFunction::Setting incremental_settings[] = {
    {"scale", "of scores, a positive number; 1 / sqrt(head_dim) if it is not set"},
    {"soft_cap", "scores become soft_cap tanh(score / soft_cap); none if it is not set, 0 or inf"},
    {"window_left", "how many keys before its own a query sees; all if it is not set"},
    {"parts", "into how many parts keys are divided; chosen if it is not set"},
};
constexpr NamedFunction::Size incremental_sizes[] = {{"sequences", 8}, {"heads", 32},     {"kv_heads", 8},
                                                     {"queries", 1},   {"keys", 4096},    {"head_dim", 128},
                                                     {"pages", 2048},  {"page_rows", 16}, {"max_pages", 256}};

constexpr auto incremental_family = family_of(
    "incremental_attention[_heads_in_rows][_causal][_lengths][_pages][_sinks][_log_sum]_TYPE",
    "O = softmax(scale Q K') V of few queries to a cache of keys",
    "TYPE is f16, bf16 or f32, or e4m3 or q8_0, of K and V: Q and O are f16, bf16 or f32 then, and K and V are\n"
    "decoded to that. A head has 64, 80, 96, 128 or 256 elements, of q8_0 not 80. Several heads of Q may share\n"
    "one of K and V: kv_heads divides heads. _heads_in_rows: those of a query, or a key, follow each other in a\n"
    "row. _lengths: how many keys each sequence has; without, all have as many as there is room for. _pages: K\n"
    "and V are pages of a power of two of rows, 16 or more, and key j of a sequence is row j % page_rows of\n"
    "page pages[j / page_rows]. The last query belongs to the last key; _causal, a query sees no key after\n"
    "its own. _sinks: for each head a score without a value, which counts in the softmax, and in _log_sum.\n"
    "_log_sum is the logarithm of the sum of exp(score) of each query, in f32.",
    incremental_settings, incremental_sizes);

struct IncrementalName {
    CacheElements are;  // K and V
    bool is_in_rows, is_causal, has_lengths, has_pages, has_sinks, has_log_sum;

    std::string text() const {
        return fmt::format("incremental_attention{}{}{}{}{}{}_{}", is_in_rows ? "_heads_in_rows" : "",
                           is_causal ? "_causal" : "", has_lengths ? "_lengths" : "", has_pages ? "_pages" : "",
                           has_sinks ? "_sinks" : "", has_log_sum ? "_log_sum" : "", are.name());
    }
};

void run_incremental(const IncrementalName& is, const Queue& queue, NamedArrays arrays,
                     const FunctionSettings& settings) {
    IncrementalOptions options{.causal = is.is_causal, .window_left = settings.count("window_left")};
    options.scale = settings.number("scale");
    options.soft_cap = settings.number("soft_cap").value_or(0);
    options.parts = settings.count("parts").value_or(0);
    const auto heads = [&](std::size_t i) { return heads_of(arrays[i], is.is_in_rows); };
    std::size_t next = 3;
    if (is.has_lengths) options.lengths = arrays[next++];
    if (is.has_pages) options.pages = arrays[next++];
    if (is.has_sinks) options.sinks = arrays[next++];
    const MutableTensorView O = heads(next++);
    if (is.has_log_sum) options.log_sum = arrays[next];
    incremental_attention(queue, heads(0), heads(1), heads(2), O, options);
}

NamedFunction incremental_function(const IncrementalName& is) {
    NamedFunction out{.name = is.text(), .family = &incremental_family};
    const bool is_plain = !is.is_in_rows && !is.is_causal && !is.has_lengths && !is.has_pages && !is.has_sinks &&
                          !is.has_log_sum && !is.are.are_encoded();
    if (is_plain) out.other_names = {"incremental_attention"};
    out.formula = fmt::format("O = softmax(scale Q K') V{}{}", is.has_sinks ? ", with sinks" : "",
                              is.is_causal ? ", causal" : "");
    std::string options;  // in the order of IncrementalOptions
    if (is.has_lengths) options += ", .lengths = lengths";
    if (is.has_pages) options += ", .pages = pages";
    if (is.is_causal) options += ", .causal = true";
    if (is.has_sinks) options += ", .sinks = sinks";
    if (is.has_log_sum) options += ", .log_sum = log_sum";
    out.call = fmt::format("incremental_attention(queue, {}{})", call_of_heads(is.is_in_rows),
                           options.empty() ? "" : ", {" + options.substr(2) + "}");
    constexpr HeadsShape of_q{"[sequences] [heads] queries head_dim", "[sequences] queries heads head_dim"};
    const HeadsShape of_k =
        is.has_pages ? paged_shape
                     : HeadsShape{"[sequences] [kv_heads] keys head_dim", "[sequences] keys kv_heads head_dim"};
    out.arrays = {of_q.decoded("Q", is.are, is.is_in_rows, Access::In), of_k.array("K", is.are, is.is_in_rows),
                  of_k.array("V", is.are, is.is_in_rows)};
    if (is.has_lengths) out.arrays.push_back(input("lengths", "sequences", ir::Type::U32));
    if (is.has_pages) out.arrays.push_back(input("pages", "sequences max_pages", ir::Type::U32));
    if (is.has_sinks) out.arrays.push_back(input("sinks", "heads", ir::Type::F32));
    out.arrays.push_back(of_q.decoded("O", is.are, is.is_in_rows, Access::Out));
    if (is.has_log_sum) out.arrays.push_back(output("log_sum", "[sequences] [heads] queries", ir::Type::F32));
    out.run = [is](const Queue& queue, NamedArrays arrays, const FunctionSettings& settings) {
        run_incremental(is, queue, arrays, settings);
    };
    return out;
}

}  // namespace

std::vector<NamedFunction> incremental_functions() {
    std::vector<NamedFunction> out;
    for (const CacheElements& are : named_elements)
        for (const bool is_in_rows : {false, true})
            for (const bool is_causal : {false, true})
                for (const bool has_lengths : {false, true})
                    for (const bool has_pages : {false, true})
                        for (const bool has_sinks : {false, true})
                            for (const bool has_log_sum : {false, true})
                                out.push_back(incremental_function(
                                    {are, is_in_rows, is_causal, has_lengths, has_pages, has_sinks, has_log_sum}));
    return out;
}

}  // namespace ikat::stdlib
