// SPDX-License-Identifier: Apache-2.0
// The names that kernels have in a family of libraries for language models: each is one of the catalogue, as a name or
// as an alias, so that who comes from there finds them.
#include <algorithm>
#include <string_view>
#include <vector>

#include "stdlib/catalogue/aliases.hpp"
#include "stdlib/catalogue/registry.hpp"
#include "stdlib/spec/functions.hpp"
#include "tests/catch.hpp"

namespace ikat::tests {
namespace {

constexpr std::string_view peer_names[] = {
    // products
    "gemm_naive", "gemm_tiled", "gemm_tensor_core", "gemv_warp_reduce", "gemv_coalesced", "ffn_gemm",
    // rows
    "softmax_warp", "softmax_block", "log_softmax", "layernorm", "rmsnorm", "fused_residual_rmsnorm",
    "rmsnorm_per_head",
    // attention
    "flash_attention", "flash_attention_causal", "incremental_attention", "llama_attention",
    // elements
    "bias_activation", "relu", "leaky_relu", "elu", "sigmoid", "tanh", "swish", "silu", "gelu", "clip", "scale", "add",
    "mul", "vec_add", "residual_add", "fused_swiglu", "cast",
    // reductions
    "dot", "sum", "max", "argmax", "norm2",
    // positions, the cache, layout
    "rope", "rope_interleaved", "rope_neox", "kv_scatter", "kv_cache_scatter", "kv_cache_copy", "transpose",
    "interleave_heads", "deinterleave_heads",
    // quantised weights
    "q4k_gemm_fused", "q5k_gemm", "q6k_gemm", "gemm_q8_0", "gemm_q4_0", "gemv_q4_k", "gemv_q5_k", "gemv_q6_k",
    "gemv_q8_0", "gemv_q4_0", "gemv_q4_k_q8_1", "quantise_q8_1", "quantize_q8_1", "dequantise_q4_k", "dequantize",
    "gate_up_swiglu_q4_k", "q4k_ffn_swiglu", "rmsnorm_gemv_q4_k", "q4k_inference",
    // training
    "relu_backward", "gelu_backward", "silu_backward", "softmax_backward", "layernorm_backward", "rmsnorm_backward",
    "gemm_backward_a", "gemm_backward_b", "embedding", "embedding_backward", "gather_rows", "scatter_add_rows",
    "dropout", "dropout_backward", "fill_uniform", "fill_normal", "adam", "adamw", "gradient_clip", "squared_sum"};

TEST_CASE("the catalogue has the names of a family of libraries") {
    for (const std::string_view name : peer_names) {
        INFO(name);
        CHECK((stdlib::find(name) || stdlib::find_alias(name) || stdlib::find_function(name)));
    }
}

TEST_CASE("a name of functions for several types is all of them") {
    using ir::Type;
    const auto types_of = [](std::string_view name) {
        std::vector<Type> out;
        for (const stdlib::NamedFunction* each : stdlib::functions_called(name)) out.push_back(each->arrays[0].type);
        std::ranges::sort(out);
        return out;
    };
    CHECK(types_of("gemm_tensor_core").size() == 4);
    CHECK(types_of("flash_attention").size() == 3);
    CHECK(types_of("flash_attention_causal") == types_of("llama_attention"));
    CHECK(types_of("incremental_attention").size() == 3);
    CHECK(types_of("gemm_tensor_core_f16") == std::vector<Type>{Type::F16});
    CHECK(types_of("no_such_name").empty());
}

}  // namespace
}  // namespace ikat::tests
