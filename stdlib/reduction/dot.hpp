// SPDX-License-Identifier: Apache-2.0
// More reductions of arrays of any length: dot product, sum of squares, position of the maximum. Like sum and max they
// are two launches: each block reduces its share, then one block reduces the results. No atomics are used, so results
// are the same in every run.
#pragma once
#include "dsl/kernel/kernel.hpp"
#include "stdlib/reduction/reduction.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

/// partial[b] = the sum of x[i] y[i] over the elements that block b visits, f32. x and y have at least n elements,
/// partial one for each block. T is float, half or bfloat16.
template <class T>
using DotKernel = Kernel<In<T>, In<T>, Out<float>, u32>;
template <class T>
const DotKernel<T>& dot_kernel();
/// partial[b] = the sum of x[i]^2.
template <class T>
using SquaresKernel = Kernel<In<T>, Out<float>, u32>;
template <class T>
const SquaresKernel<T>& norm2_kernel();

/// value[b], index[b] = the largest element that block b visits, and where it is; of equal ones the first. A NaN is no
/// largest element. Without any, -infinity and 2^32 - 1.
template <class T>
using ArgmaxKernel = Kernel<In<T>, Out<float>, Out<std::uint32_t>, u32>;
template <class T>
const ArgmaxKernel<T>& argmax_kernel();
/// Parameters values, indices, value, index, n: the same of the n results of another launch.
using ArgmaxFinalKernel = Kernel<In<float>, In<std::uint32_t>, Out<float>, Out<std::uint32_t>, u32>;
const ArgmaxFinalKernel& argmax_final_kernel();

/// For the catalogue: names, launches, checks and references.
extern const Recipe dot_recipe, norm2_recipe, argmax_recipe, argmax_final_recipe;
/// total[0], of float, = the sum of x[i] y[i]. Arrays are as those of sum(). Throws Error if x and y differ in shape or
/// type. On a stream, give a workspace of reduction_workspace(x, y) bytes, to functions of one array of
/// reduction_workspace(x); on a device, the functions allocate it.
void dot(const Queue& queue, const TensorView& x, const TensorView& y, const MutableTensorView& total,
         const WorkspaceSlice& workspace = {});
/// The sum of squares, which is the square of the Euclidean norm.
void norm2(const Queue& queue, const TensorView& x, const MutableTensorView& total,
           const WorkspaceSlice& workspace = {});
/// The largest element, of float, and its index, of std::uint32_t: the first of equal ones, counted row by row;
/// -infinity and 2^32 - 1 where there is none. Throws Error for 2^32 elements or more, which the index does not reach.
void argmax(const Queue& queue, const TensorView& x, const MutableTensorView& value, const MutableTensorView& index,
            const WorkspaceSlice& workspace = {});

// The same as numbers on the host. They wait for the device, so they take no stream.
float dot(const DeviceQueue& device, const TensorView& x, const TensorView& y);
float norm2(const DeviceQueue& device, const TensorView& x);
/// The index.
std::uint32_t argmax(const DeviceQueue& device, const TensorView& x);

}  // namespace ikat::stdlib
