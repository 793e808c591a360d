// SPDX-License-Identifier: Apache-2.0
// The kernels of attention_backward() by their keys.
#include "stdlib/attention_backward/kernels.hpp"

#include "stdlib/attention_backward/block_kernels.hpp"
#include "stdlib/spec/kernels.hpp"

namespace ikat::stdlib {

std::string GradientKernel::name() const {
    constexpr const char* names[] = {"rows", "queries", "keys", "values", "keys_and_values", "bias"};
    std::string out = std::string("attention_backward_") + names[std::size_t(of)];
    out += type == ir::Type::F16 ? "_f16" : "_bf16";
    out += "_d" + std::to_string(head_dim);
    if (by_wgmma) out += "_wgmma";
    if (has_offsets) out += "_offsets";
    if (has_before) out += "_before";
    if (has_after) out += "_after";
    if (has_cap) out += has_wide_cap ? "_wide_cap" : "_cap";
    if (has_bias) out += "_bias";
    return out + own.suffix();
}

KernelHandle GradientKernel::make() const {
    if (by_wgmma) return gradient::of_wgmma(*this);
    return type == ir::Type::F16 ? gradient::of_f16(*this) : gradient::of_bf16(*this);
}

const KernelHandle& GradientKernel::handle() const { return Kernels<GradientKernel>::of(*this); }

}  // namespace ikat::stdlib
