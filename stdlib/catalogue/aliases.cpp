// SPDX-License-Identifier: Apache-2.0
#include "stdlib/catalogue/aliases.hpp"

#include <algorithm>
#include <string>

namespace ikat::stdlib {
namespace {

std::vector<Alias> make_aliases() {
    std::vector<Alias> out{
        {"add_rms_norm", {"fused_residual_rmsnorm"}},
        {"axpy", {"saxpy"}},
        {"bias_backward", {"column_sums"}},
        {"cast", {"cast_f16_f32", "cast_f32_f16", "cast_bf16_f32", "cast_f32_bf16"}},
        {"clamp", {"clip"}},
        {"conv", {"conv2d"}},
        {"dequantize",
         {
#define IKAT_ROW(format, name, weights, bytes) "dequantise_" #name,
             IKAT_QUANTISED_FORMATS(IKAT_ROW)
#undef IKAT_ROW
         },
         false},
        {"dropout_backward", {"dropout"}},
        {"embedding", {"gather_rows"}},
        {"gelu_new", {"gelu_tanh"}},
        {"gemm", {"gemm_tiled", "gemm_tiled_large", "gemm_naive"}},
        {"gemv", {"gemv_warp_reduce"}},
        {"gemv_transposed", {"gemv_coalesced"}},
        {"gradient_clip", {"clip_by_norm"}},
        {"kv_cache_copy", {"copy_matrix"}},
        {"kv_cache_scatter", {"kv_scatter"}},
        {"layer_norm", {"layernorm", "layernorm_plain"}},
        {"layer_norm_backward", {"layernorm_backward_warp", "layernorm_backward_block", "layernorm_backward"}},
        {"logsoftmax", {"log_softmax"}},
        {"matmul", {"gemm_tiled", "gemm_tiled_large", "gemm_naive"}},
        {"matvec", {"gemv_warp_reduce"}},
        {"max", {"max_f32", "max_f16", "max_bf16"}},
        {"quantize_q8_1", {"quantise_q8_1"}},
        {"reshape_and_cache", {"kv_scatter"}},
        {"rms_norm", {"rmsnorm_per_head", "rmsnorm"}},
        {"rms_norm_backward", {"rmsnorm_backward_warp", "rmsnorm_backward_block", "rmsnorm_backward"}},
        {"rope", {"rope_interleaved", "rope_neox"}, false},
        {"sgemm", {"gemm_tiled", "gemm_tiled_large"}},
        {"softmax", {"softmax_warp", "softmax_block", "softmax_wide", "softmax_online"}},
        {"squared_sum", {"norm2"}},
        {"sum", {"sum_f32", "sum_f16", "sum_bf16"}},
        {"swiglu", {"fused_swiglu"}},
        {"swish", {"silu"}},
    };
    std::ranges::sort(out, {}, &Alias::name);
    return out;
}

}  // namespace

std::span<const Alias> aliases() {
    static const std::vector<Alias> all = make_aliases();
    return all;
}

const Alias* find_alias(std::string_view name) {
    const std::span<const Alias> all = aliases();
    const auto found = std::ranges::lower_bound(all, name, {}, &Alias::name);
    return found == all.end() || found->name != name ? nullptr : &*found;
}

std::vector<const Entry*> entries_of(std::string_view kernel) {
    std::vector<const Entry*> out;
    for (const char* suffix : {"", "_f16", "_bf16"})
        if (const Entry* entry = find(std::string(kernel) + suffix)) out.push_back(entry);
    return out;
}

}  // namespace ikat::stdlib
