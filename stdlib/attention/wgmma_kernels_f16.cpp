// SPDX-License-Identifier: Apache-2.0
#include "stdlib/attention/wgmma_block.hpp"

namespace ikat::stdlib {

KernelHandle made_of_f16(const WgmmaAttentionKernel& is) { return made_of_type<half>(is); }

}  // namespace ikat::stdlib
