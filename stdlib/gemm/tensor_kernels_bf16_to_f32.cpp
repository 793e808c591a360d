// SPDX-License-Identifier: Apache-2.0
#include "stdlib/gemm/tensor_kernels_of.hpp"

namespace ikat::stdlib {

KernelHandle made_of_bf16_to_f32(const TensorKernel& is) { return of_types<bfloat16, float>(is); }

}  // namespace ikat::stdlib
