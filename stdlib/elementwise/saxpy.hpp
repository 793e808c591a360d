// SPDX-License-Identifier: Apache-2.0
// saxpy: y ← a x + y, the first routine of the BLAS.
#pragma once
#include "dsl/kernel/kernel.hpp"
#include "dsl/threads/simt.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

/// y[i] = fma(a, x[i], y[i]) for i < n, with a single rounding. x and y have at least n elements. One thread per
/// element; any grid that covers n.
const Kernel<f32, In<float>, InOut<float>, u32>& saxpy();

/// The launch for n elements.
Grid saxpy_grid(std::uint64_t n, std::uint32_t threads = 256);

/// For the catalogue: names, launches, checks and references.
extern const Recipe saxpy_recipe;
/// y = a x + y for all elements, of f32. Throws Error unless x and y have the same shape.
void saxpy(const Queue& queue, float a, const TensorView& x, const MutableTensorView& y);

}  // namespace ikat::stdlib
