// SPDX-License-Identifier: Apache-2.0
// The kernels of flash_attention() by their keys, see attention_block.hpp.
#include "stdlib/attention/attention_kernels.hpp"

#include "stdlib/attention/attention_block.hpp"
#include "stdlib/attention/encoded_kernels.hpp"
#include "stdlib/spec/kernels.hpp"

namespace ikat::stdlib {

std::string AttentionKernel::name() const {
    std::string out = "flash_attention_";
    out += type == ir::Type::F16 ? "f16" : type == ir::Type::BF16 ? "bf16" : "f32";
    out += suffix_of(encoding);
    out += "_d" + std::to_string(head_dim);
    if (has_offsets) out += "_offsets";
    if (has_pages) out += "_paged";
    if (has_before) out += "_before";
    if (has_after) out += "_after";
    if (has_cap) out += has_wide_cap ? "_wide_cap" : "_cap";
    if (has_bias) out += "_bias";
    if (has_sinks) out += "_sinks";
    if (has_log_sum) out += "_log_sum";
    return out + own.suffix();
}

KernelHandle AttentionKernel::make() const {
    if (encoding != CacheEncoding::none || has_pages) return flash::of_encoded(*this);
    switch (type) {
        case ir::Type::F16: return flash::of_type<half, half>(*this);
        case ir::Type::BF16: return flash::of_type<bfloat16, bfloat16>(*this);
        default: return flash::of_type<float, float>(*this);
    }
}

const KernelHandle& AttentionKernel::handle() const { return Kernels<AttentionKernel>::of(*this); }

}  // namespace ikat::stdlib
