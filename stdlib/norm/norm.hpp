// SPDX-License-Identifier: Apache-2.0
// Normalisation of the rows of a matrix.
//
//     stdlib::layernorm(device, x.view(rows, columns), gamma, beta, y.view(rows, columns), 1e-5f);
//     stdlib::rmsnorm(device, x.view(rows, columns), gamma, y.view(rows, columns), 1e-6f);
//
// x and y have the same shape, of one to five dimensions; rows are the last of these and may begin anywhere. gamma and
// beta have an element for each column. All are of the same type, f32, f16 or bf16. Computed in f32 and rounded once.
// What is written must not overlap what is read.
#pragma once
#include "dsl/kernel/kernel.hpp"
#include "dsl/kernel/optional.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

// Kernels of row-major matrices, rows * columns < 2^32, that begin at multiples of 16 bytes.
/// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, with the mean and the variance of the row; the variance is
/// the sum of squares divided by the number of columns. A block per row. The arguments are x, gamma, beta, y, rows,
/// columns, epsilon.
template <class T>
using LayernormKernel = Kernel<In<T>, In<T>, In<T>, Out<T>, u32, u32, f32>;
template <class T>
const LayernormKernel<T>& layernorm();
/// The same with a warp per row, of which up to 1024 columns are kept in registers.
template <class T>
const LayernormKernel<T>& layernorm_warp();
/// The same without gamma and beta: x, y, rows, columns, epsilon.
template <class T>
using PlainNormKernel = Kernel<In<T>, Out<T>, u32, u32, f32>;
template <class T>
const PlainNormKernel<T>& layernorm_plain();
/// A warp per row.
template <class T>
const PlainNormKernel<T>& layernorm_plain_warp();

/// y = x / sqrt(mean of x^2 + epsilon) * gamma. A block per row. The arguments are x, gamma, y, rows, columns, epsilon.
template <class T>
using RmsnormKernel = Kernel<In<T>, In<T>, Out<T>, u32, u32, f32>;
template <class T>
const RmsnormKernel<T>& rmsnorm();
/// The same with a warp per row, of which up to 1024 columns are kept in registers: for the heads of attention, which
/// are tokens * heads rows of head_dim columns, and for other short rows.
template <class T>
const RmsnormKernel<T>& rmsnorm_per_head();

/// residual += x, rounded; y = rmsnorm(residual). The arguments are x, residual, gamma, y, rows, columns, epsilon.
template <class T>
using ResidualRmsnormKernel = Kernel<In<T>, InOut<T>, In<T>, Out<T>, u32, u32, f32>;
template <class T>
const ResidualRmsnormKernel<T>& fused_residual_rmsnorm();
/// A warp per row.
template <class T>
const ResidualRmsnormKernel<T>& fused_residual_rmsnorm_warp();

/// layernorm and rmsnorm that store two numbers of each row, too: the mean, of rmsnorm 0, and 1 / sqrt(variance +
/// epsilon). The arguments are x, gamma, beta, of rmsnorm std::nullopt, statistics, y, rows, columns, epsilon.
template <class T>
using SavingNormKernel = Kernel<In<T>, In<T>, Optional<In<T>>, Out<float>, Out<T>, u32, u32, f32>;
template <class T>
const SavingNormKernel<T>& layernorm_saving();
template <class T>
const SavingNormKernel<T>& rmsnorm_saving();
/// A warp per row.
template <class T>
const SavingNormKernel<T>& layernorm_saving_warp();
template <class T>
const SavingNormKernel<T>& rmsnorm_saving_warp();

// Functions on views. Rows of up to 1024 columns have a warp each, longer ones a block, or a cluster of blocks. Rows
// that fit registers or shared memory are read once. They throw Error for shapes and types that do not fit.
extern const Recipe layernorm_recipe, layernorm_plain_recipe, rmsnorm_recipe, fused_residual_rmsnorm_recipe,
    layernorm_saving_recipe, rmsnorm_saving_recipe;
void layernorm(const Queue& queue, const TensorView& x, const TensorView& gamma, const TensorView& beta,
               const MutableTensorView& y, float epsilon);
/// Without gamma and beta.
void layernorm(const Queue& queue, const TensorView& x, const MutableTensorView& y, float epsilon);
void rmsnorm(const Queue& queue, const TensorView& x, const TensorView& gamma, const MutableTensorView& y,
             float epsilon);
/// The same with the statistics of each row, ... x 2 of float, for the gradients: the mean, which of rmsnorm is 0, and
/// 1 / sqrt(variance + epsilon).
void layernorm(const Queue& queue, const TensorView& x, const TensorView& gamma, const TensorView& beta,
               const MutableTensorView& y, float epsilon, const MutableTensorView& statistics);
void rmsnorm(const Queue& queue, const TensorView& x, const TensorView& gamma, const MutableTensorView& y,
             float epsilon, const MutableTensorView& statistics);
/// residual has the shape of x.
void fused_residual_rmsnorm(const Queue& queue, const TensorView& x, const MutableTensorView& residual,
                            const TensorView& gamma, const MutableTensorView& y, float epsilon);

}  // namespace ikat::stdlib
