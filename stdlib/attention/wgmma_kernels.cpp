// SPDX-License-Identifier: Apache-2.0
#include "stdlib/attention/wgmma_kernels.hpp"

#include "stdlib/attention/wgmma_block.hpp"
#include "stdlib/spec/kernels.hpp"

namespace ikat::stdlib {

std::string WgmmaAttentionKernel::name() const {
    std::string out = type == ir::Type::F16 ? "flash_attention_f16_d" : "flash_attention_bf16_d";
    out += std::to_string(head_dim) + "_wgmma";
    if (has_offsets) out += "_offsets";
    if (has_before) out += "_before";
    if (has_after) out += "_after";
    if (has_cap) out += has_wide_cap ? "_wide_cap" : "_cap";
    if (has_bias) out += "_bias";
    if (has_sinks) out += "_sinks";
    if (has_log_sum) out += "_log_sum";
    return out + own.suffix();
}

KernelHandle WgmmaAttentionKernel::make() const {
    return type == ir::Type::F16 ? made_of_f16(*this) : made_of_type<bfloat16>(*this);
}

const KernelHandle& WgmmaAttentionKernel::handle() const { return Kernels<WgmmaAttentionKernel>::of(*this); }

}  // namespace ikat::stdlib
