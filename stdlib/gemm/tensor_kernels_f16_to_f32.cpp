// SPDX-License-Identifier: Apache-2.0
#include "stdlib/gemm/tensor_kernels_of.hpp"

namespace ikat::stdlib {

KernelHandle made_of_f16_to_f32(const TensorKernel& is) { return of_types<half, float>(is); }

}  // namespace ikat::stdlib
