// SPDX-License-Identifier: Apache-2.0
// Compiled by themselves, as those in attention_kernels.cpp are.
#include "stdlib/attention/encoded_kernels.hpp"

#include "stdlib/attention/attention_block.hpp"

namespace ikat::stdlib::flash {

KernelHandle of_encoded(const AttentionKernel& is) {
    switch (is.type) {
        case ir::Type::F16: return of_type<half, std::uint8_t>(is);
        case ir::Type::BF16: return of_type<bfloat16, std::uint8_t>(is);
        default: return of_type<float, std::uint8_t>(is);
    }
}

}  // namespace ikat::stdlib::flash
