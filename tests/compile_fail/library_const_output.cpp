// SPDX-License-Identifier: Apache-2.0
// A const array that a function of the library writes.
// expect: the function writes this array, but it is const: pass a view of a Buffer that is not const
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>

using namespace ikat;

void run(const Device& device, const Buffer<half>& A, const Buffer<half>& C) {
    stdlib::gemm_tensor_core(device, A.view(4, 8), A.view(8, 5), C.view(4, 5));
}
