// SPDX-License-Identifier: Apache-2.0
// The gradients of rmsnorm and layernorm, from what these were given: with n = (x - mean) / sqrt(variance + epsilon),
// of which rmsnorm has no mean, and g = dy gamma,
//
//     dx = (g - mean of g - n * mean of g n) / sqrt(variance + epsilon)      rmsnorm: without the mean of g
//     dgamma = sum of dy n over all rows,  dbeta = sum of dy over all rows
//
//     stdlib::rmsnorm_backward(device, x.view(rows, columns), dy.view(rows, columns), gamma, dx.view(rows, columns),
//                              dgamma, 1e-6f);
//
// The mean and the variance are computed again: x has to be read for the gradient anyway, and a row that is in
// registers costs no more traffic; the forward functions need no more outputs. x, dy and dx have the same shape, of one
// to five dimensions; rows are the last of these and may begin anywhere. gamma has an element for each column. All of
// these are of one type, f32, f16 or bf16; dgamma and dbeta are of float, with an element for each column. Computed in
// f32. Each block adds what its rows give, and a second launch adds these: in one order, so the results are the same in
// every run.
#pragma once
#include "dsl/kernel/kernel.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

// Kernels of row-major matrices, rows * columns < 2^32, that begin at multiples of 16 bytes. Block b takes share b of
// the rows, and stores what they give at dgamma[b * columns + c] and dbeta[b * columns + c]: with one block, sums over
// all rows. Each has three sizes: a warp per row, for up to 512 columns, which are kept in registers; 128 threads, for
// 2048; 512 threads, for 8192. Longer rows are read several times.
/// The arguments are x, dy, gamma, dx, dgamma, rows, columns, epsilon.
template <class T>
using RmsnormBackwardKernel = Kernel<In<T>, In<T>, In<T>, Out<T>, InOut<float>, u32, u32, f32>;
template <class T>
const RmsnormBackwardKernel<T>& rmsnorm_backward_warp();
template <class T>
const RmsnormBackwardKernel<T>& rmsnorm_backward_block();
template <class T>
const RmsnormBackwardKernel<T>& rmsnorm_backward();
/// The arguments are x, dy, gamma, dx, dgamma, dbeta, rows, columns, epsilon.
template <class T>
using LayernormBackwardKernel = Kernel<In<T>, In<T>, In<T>, Out<T>, InOut<float>, InOut<float>, u32, u32, f32>;
template <class T>
const LayernormBackwardKernel<T>& layernorm_backward_warp();
template <class T>
const LayernormBackwardKernel<T>& layernorm_backward_block();
template <class T>
const LayernormBackwardKernel<T>& layernorm_backward();

/// The bytes of workspace that either function needs for x, dy and dx, which have one shape.
std::uint64_t norm_backward_workspace(const TensorView& x, const TensorView& dy, const TensorView& dx);
/// For the catalogue: names, launches, checks and references.
extern const Recipe rmsnorm_backward_recipe, layernorm_backward_recipe;
/// dx of each row, and the sums over all rows, which are 0 without rows. They throw Error for shapes and types that do
/// not fit, and where an output overlaps another array.
void rmsnorm_backward(const Queue& queue, const TensorView& x, const TensorView& dy, const TensorView& gamma,
                      const MutableTensorView& dx, const MutableTensorView& dgamma, float epsilon,
                      const WorkspaceSlice& workspace = {});
void layernorm_backward(const Queue& queue, const TensorView& x, const TensorView& dy, const TensorView& gamma,
                        const MutableTensorView& dx, const MutableTensorView& dgamma, const MutableTensorView& dbeta,
                        float epsilon, const WorkspaceSlice& workspace = {});

}  // namespace ikat::stdlib
