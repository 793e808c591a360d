// SPDX-License-Identifier: Apache-2.0
#include "stdlib/gemm/tensor_kernels_of.hpp"

namespace ikat::stdlib {

KernelHandle made_of_i8(const TensorKernel& is) { return of_types<std::int8_t, std::int32_t>(is); }

}  // namespace ikat::stdlib
