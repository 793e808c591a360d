// SPDX-License-Identifier: Apache-2.0
// Normalisation of the rows of a matrix.
//
//     stdlib::layernorm(device, x, gamma, beta, y, rows, columns, 1e-5f);
//     stdlib::rmsnorm(device, x, gamma, y, rows, columns, 1e-6f);
//
// x and y are row-major, rows * columns < 2^32; gamma and beta have an element for each column; all are f32, or all
// f16 or all bf16, and begin at multiples of 16 bytes. Computed in f32 and rounded once. What is written does not
// overlap what is read.
#pragma once
#include "dsl/kernel/kernel.hpp"
#include "stdlib/recipe.hpp"

namespace ikat::stdlib {

/// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, mean and variance over the row, the variance's divisor the
/// number of columns. A block per row.
template <class T>
using LayernormKernel = Kernel<In<T>, In<T>, In<T>, Out<T>, u32, u32, f32>;
template <class T>
const LayernormKernel<T>& layernorm();
/// The same without gamma and beta.
template <class T>
using PlainNormKernel = Kernel<In<T>, Out<T>, u32, u32, f32>;
template <class T>
const PlainNormKernel<T>& layernorm_plain();

/// y = x / sqrt(mean of x^2 + epsilon) * gamma. A block per row.
template <class T>
using RmsnormKernel = Kernel<In<T>, In<T>, Out<T>, u32, u32, f32>;
template <class T>
const RmsnormKernel<T>& rmsnorm();
/// The same, a warp per row: for the heads of attention, tokens * heads rows of head_dim columns.
template <class T>
const RmsnormKernel<T>& rmsnorm_per_head();

/// residual += x, rounded; y = rmsnorm of that. x, residual, gamma, y.
template <class T>
using ResidualRmsnormKernel = Kernel<In<T>, InOut<T>, In<T>, Out<T>, u32, u32, f32>;
template <class T>
const ResidualRmsnormKernel<T>& fused_residual_rmsnorm();

// On buffers. Error where one is too small for rows and columns.
extern const Recipe layernorm_recipe, rmsnorm_recipe, fused_residual_rmsnorm_recipe;
template <Real T>
void layernorm(const Queue& queue, const Buffer<T>& x, const Buffer<T>& gamma, const Buffer<T>& beta, Buffer<T>& y,
               std::uint32_t rows, std::uint32_t columns, float epsilon) {
    run<T>(queue, layernorm_recipe, {x, gamma, beta, y, rows, columns, epsilon});
}
/// By rmsnorm_per_head for up to 256 columns.
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
