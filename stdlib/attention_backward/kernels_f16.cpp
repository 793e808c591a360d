// SPDX-License-Identifier: Apache-2.0
#include "stdlib/attention_backward/block_kernels.hpp"
#include "stdlib/attention_backward/made.hpp"

namespace ikat::stdlib::gradient {

KernelHandle of_f16(const GradientKernel& is) { return of_type<half>(is); }

}  // namespace ikat::stdlib::gradient
