// SPDX-License-Identifier: Apache-2.0
#include "stdlib/gemm/tensor_kernels_of.hpp"

namespace ikat::stdlib {

KernelHandle made_of_bf16(const TensorKernel& is) { return of_types<bfloat16, bfloat16>(is); }

}  // namespace ikat::stdlib
