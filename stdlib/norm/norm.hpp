// SPDX-License-Identifier: Apache-2.0
// Normalisation of the rows of a matrix.
//
//     stdlib::layernorm(device, x, gamma, beta, y, rows, columns, 1e-5f);
//     stdlib::rmsnorm(device, x, gamma, y, rows, columns, 1e-6f);
//
// x and y are row-major, rows * columns < 2^32; gamma and beta have one element per column. All are of the same type,
// f32, f16 or bf16, and begin at multiples of 16 bytes. Computed in f32 and rounded once. What is written must not
// overlap what is read.
#pragma once
#include "dsl/kernel/kernel.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

/// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, with the mean and the variance of the row; the variance is
/// the sum of squares divided by the number of columns. A block per row. The arguments are x, gamma, beta, y, rows,
/// columns, epsilon.
template <class T>
using LayernormKernel = Kernel<In<T>, In<T>, In<T>, Out<T>, u32, u32, f32>;
template <class T>
const LayernormKernel<T>& layernorm();
/// The same without gamma and beta: x, y, rows, columns, epsilon.
template <class T>
using PlainNormKernel = Kernel<In<T>, Out<T>, u32, u32, f32>;
template <class T>
const PlainNormKernel<T>& layernorm_plain();

/// y = x / sqrt(mean of x^2 + epsilon) * gamma. A block per row. The arguments are x, gamma, y, rows, columns, epsilon.
template <class T>
using RmsnormKernel = Kernel<In<T>, In<T>, Out<T>, u32, u32, f32>;
template <class T>
const RmsnormKernel<T>& rmsnorm();
/// The same with a warp per row: for the heads of attention, which are tokens * heads rows of head_dim columns.
template <class T>
const RmsnormKernel<T>& rmsnorm_per_head();

/// residual += x, rounded; y = rmsnorm(residual). The arguments are x, residual, gamma, y, rows, columns, epsilon.
template <class T>
using ResidualRmsnormKernel = Kernel<In<T>, InOut<T>, In<T>, Out<T>, u32, u32, f32>;
template <class T>
const ResidualRmsnormKernel<T>& fused_residual_rmsnorm();

// Functions on buffers. They throw Error where one is too small for rows and columns.
extern const Recipe layernorm_recipe, rmsnorm_recipe, fused_residual_rmsnorm_recipe;
template <Real T>
void layernorm(const Queue& queue, const Buffer<T>& x, const Buffer<T>& gamma, const Buffer<T>& beta, Buffer<T>& y,
               std::uint32_t rows, std::uint32_t columns, float epsilon) {
    run<T>(queue, layernorm_recipe, {x, gamma, beta, y, rows, columns, epsilon});
}
/// Up to 256 columns by rmsnorm_per_head, more by rmsnorm.
template <Real T>
void rmsnorm(const Queue& queue, const Buffer<T>& x, const Buffer<T>& gamma, Buffer<T>& y, std::uint32_t rows,
             std::uint32_t columns, float epsilon) {
    run<T>(queue, rmsnorm_recipe, {x, gamma, y, rows, columns, epsilon}, {.columns = columns});
}
template <Real T>
void fused_residual_rmsnorm(const Queue& queue, const Buffer<T>& x, Buffer<T>& residual, const Buffer<T>& gamma,
                            Buffer<T>& y, std::uint32_t rows, std::uint32_t columns, float epsilon) {
    run<T>(queue, fused_residual_rmsnorm_recipe, {x, residual, gamma, y, rows, columns, epsilon});
}

}  // namespace ikat::stdlib
