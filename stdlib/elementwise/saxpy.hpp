// SPDX-License-Identifier: Apache-2.0
// saxpy: y ← a x + y, the first routine of the BLAS.
#pragma once
#include "dsl/kernel/kernel.hpp"
#include "dsl/threads/simt.hpp"
#include "runtime/device.hpp"

namespace ikat::stdlib {

/// y[i] = fma(a, x[i], y[i]) for i < n: one rounding. x and y have at least n elements. A thread per element; any grid
/// that covers n.
const Kernel<f32, In<float>, InOut<float>, u32>& saxpy();

/// The launch for n elements.
runtime::Grid saxpy_grid(std::uint64_t n, std::uint32_t threads = 256);

/// All elements of x and y, which are equally many. Throws Error otherwise.
void saxpy(const runtime::Queue& queue, float a, const runtime::Buffer<float>& x, runtime::Buffer<float>& y);

}  // namespace ikat::stdlib
