// SPDX-License-Identifier: Apache-2.0
// Compiled by themselves, as those in kernels.cpp are.
#include "stdlib/attention/incremental/encoded.hpp"

#include "stdlib/attention/incremental/block.hpp"

namespace ikat::stdlib::decode {

KernelHandle attending_encoded(const DecodeKernel& is) {
    switch (is.type) {
        case ir::Type::F16: return attending<half, std::uint8_t>(is);
        case ir::Type::BF16: return attending<bfloat16, std::uint8_t>(is);
        default: return attending<float, std::uint8_t>(is);
    }
}

}  // namespace ikat::stdlib::decode
