// SPDX-License-Identifier: Apache-2.0
// The kernels of each type of elements, compiled side by side.
#pragma once
#include "stdlib/attention_backward/kernels.hpp"

namespace ikat::stdlib::gradient {

KernelHandle of_f16(const GradientKernel& is);
KernelHandle of_bf16(const GradientKernel& is);
/// Of both.
KernelHandle of_wgmma(const GradientKernel& is);

}  // namespace ikat::stdlib::gradient
