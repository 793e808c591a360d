// SPDX-License-Identifier: Apache-2.0
#include "stdlib/gemm/tensor_kernels_of.hpp"

namespace ikat::stdlib {

KernelHandle made_of_f16(const TensorKernel& is) { return of_types<half, half>(is); }

}  // namespace ikat::stdlib
