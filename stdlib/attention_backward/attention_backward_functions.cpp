// SPDX-License-Identifier: Apache-2.0
// attention_backward() by names.
#include <fmt/format.h>

#include "stdlib/attention/named_heads.hpp"
#include "stdlib/attention_backward/attention_backward.hpp"

namespace ikat::stdlib {
namespace {

constexpr NamedFunction::Setting backward_settings[] = {
    {"scale", "as of flash_attention, as are the others"},
    {"soft_cap", "... none if it is not set, 0 or inf"},
    {"window_left", "... all keys before its own if it is not set"},
    {"window_right", "... and after its own"},
    {"path", "mma_sync, or wgmma, for sm_90a; chosen if it is not set"},
};
constexpr NamedFunction::Size backward_sizes[] = {{"sequences", 4},  {"heads", 16},      {"kv_heads", 16},
                                                  {"queries", 2048}, {"keys", 2048},     {"head_dim", 128},
                                                  {"offsets", 5},    {"bias_keys", 2048}};

constexpr auto backward_family = family_of(
    "attention_backward[_heads_in_rows][_causal][_bias][_offsets]_TYPE", "the gradients of flash_attention",
    "TYPE is f16 or bf16. dQ, dK and dV from dO, the gradient of O, and from O and log_sum, which\n"
    "flash_attention made of Q, K and V; also by heads of 80 and 96, and several heads of Q may share one of K\n"
    "and V, of which dK and dV are sums. _bias: and dbias, the sum over what shares the bias. The rest as of\n"
    "flash_attention.",
    backward_settings, backward_sizes);

struct BackwardName {
    CacheElements are;
    bool is_in_rows, is_causal, has_bias, has_offsets;

    std::string text() const {
        return fmt::format("attention_backward{}{}{}{}_{}", is_in_rows ? "_heads_in_rows" : "",
                           is_causal ? "_causal" : "", has_bias ? "_bias" : "", has_offsets ? "_offsets" : "",
                           are.name());
    }
};

void run_backward(const BackwardName& is, const Queue& queue, NamedArrays arrays, const FunctionSettings& settings) {
    AttentionOptions options{.causal = is.is_causal,
                             .window_left = settings.count("window_left"),
                             .window_right = settings.count("window_right")};
    options.scale = settings.number("scale");
    options.soft_cap = settings.number("soft_cap").value_or(0);
    options.path = AttentionPath(settings.one_of("path", attention_paths));
    std::size_t next = 0;
    const auto heads = [&] { return heads_of(arrays[next++], is.is_in_rows); };
    const MutableTensorView Q = heads(), K = heads(), V = heads(), O = heads(), log_sum = arrays[next++], dO = heads();
    if (is.has_bias) options.bias = arrays[next++];
    if (is.has_offsets) options.query_offsets = arrays[next++], options.key_offsets = arrays[next++];
    const MutableTensorView dQ = heads(), dK = heads(), dV = heads();
    AttentionGradients gradients;
    if (is.has_bias) gradients.dbias = arrays[next++];
    attention_backward(queue, Q, K, V, O, log_sum, dO, dQ, dK, dV, options, gradients);
}

std::string call_of(const BackwardName& is) {
    std::string options, views;  // in the order of AttentionOptions
    if (is.is_causal) options += ", .causal = true";
    if (is.has_bias) options += ", .bias = bias";
    if (is.has_offsets) options += ", .query_offsets = query_offsets, .key_offsets = key_offsets";
    for (const std::string_view name : {"Q", "K", "V", "O", "log_sum", "dO", "dQ", "dK", "dV"}) {
        const bool is_turned = is.is_in_rows && name != "log_sum";
        views += fmt::format(", {}{}{}", is_turned ? "heads_in_rows(" : "", name, is_turned ? ")" : "");
    }
    if (!options.empty()) views += ", {" + options.substr(2) + "}";
    if (is.has_bias) views += ", {.dbias = dbias}";
    return "attention_backward(queue" + views + ")";
}

NamedFunction backward_function(const BackwardName& is) {
    NamedFunction out{.name = is.text(), .family = &backward_family};
    out.formula = fmt::format("dQ, dK, dV{} of O = softmax(scale Q K'{}) V{}", is.has_bias ? ", dbias" : "",
                              is.has_bias ? " + bias" : "", is.is_causal ? ", causal" : "");
    out.call = call_of(is);
    const HeadsShape of_q =
        is.has_offsets ? HeadsShape{"[heads] queries head_dim", "queries heads head_dim"}
                       : HeadsShape{"[sequences] [heads] queries head_dim", "[sequences] queries heads head_dim"};
    const HeadsShape of_k =
        is.has_offsets ? HeadsShape{"[kv_heads] keys head_dim", "keys kv_heads head_dim"}
                       : HeadsShape{"[sequences] [kv_heads] keys head_dim", "[sequences] keys kv_heads head_dim"};
    const OperandShape of_bias = is.has_offsets ? OperandShape("[bias_heads] queries bias_keys")
                                                : OperandShape("[bias_sequences] [bias_heads] queries keys");
    const auto add = [&](const HeadsShape& shape, std::string_view name, Access access) {
        out.arrays.push_back(shape.decoded(name, is.are, is.is_in_rows, access));
    };
    add(of_q, "Q", Access::In), add(of_k, "K", Access::In), add(of_k, "V", Access::In), add(of_q, "O", Access::In);
    out.arrays.push_back(
        input("log_sum", is.has_offsets ? OperandShape("[heads] queries") : OperandShape("[sequences] [heads] queries"),
              ir::Type::F32));
    add(of_q, "dO", Access::In);
    if (is.has_bias) out.arrays.push_back(input("bias", of_bias, is.are.decoded()));
    if (is.has_offsets)
        for (const std::string_view name : {"query_offsets", "key_offsets"})
            out.arrays.push_back(input(name, "offsets", ir::Type::U32));
    add(of_q, "dQ", Access::Out), add(of_k, "dK", Access::Out), add(of_k, "dV", Access::Out);
    if (is.has_bias) out.arrays.push_back(output("dbias", of_bias, is.are.decoded()));
    out.run = [is](const Queue& queue, NamedArrays arrays, const FunctionSettings& settings) {
        run_backward(is, queue, arrays, settings);
    };
    return out;
}

}  // namespace

std::vector<NamedFunction> attention_backward_functions() {
    std::vector<NamedFunction> out;
    for (const ir::Type type : {ir::Type::F16, ir::Type::BF16})
        for (const bool is_in_rows : {false, true})
            for (const bool is_causal : {false, true})
                for (const bool has_bias : {false, true})
                    for (const bool has_offsets : {false, true})
                        out.push_back(backward_function({{type}, is_in_rows, is_causal, has_bias, has_offsets}));
    return out;
}

}  // namespace ikat::stdlib
