// SPDX-License-Identifier: Apache-2.0
// The gradients of softmax and log_softmax, from what these have computed: with y = softmax(x) and the gradient dy of
// y, that of x is dx = y (dy - sum of y dy over the row); with y = log_softmax(x) it is dx = dy - exp(y) sum of dy.
//
//     stdlib::softmax_backward(device, y.view(rows, columns), dy.view(rows, columns), dx.view(rows, columns));
//
// softmax_causal_backward is that of rows of scores of which each ends at the diagonal, by which the last row of a
// matrix belongs to its last column: row i has columns up to i + columns - rows. Beyond that dx is 0, and nothing is
// read.
//
// y, dy and dx have the same shape, of one to five dimensions; rows are the last of these and may begin anywhere. All
// are f32, f16 or bf16; dx must not overlap the others. Computed in f32 and rounded once. Sums have one order, so the
// results are the same in every run. y is rounded to its type: for f16 and bf16 the gradient is that of the rounded y.
#pragma once
#include "dsl/kernel/kernel.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

/// The arguments are y, dy, dx, rows, columns: row-major, rows * columns < 2^32, from multiples of 16 bytes on.
template <class T>
using RowGradientKernel = Kernel<In<T>, In<T>, Out<T>, u32, u32>;

/// A warp per row, for short rows: up to 512 columns are kept in registers.
template <class T>
const RowGradientKernel<T>& softmax_backward_warp();
template <class T>
const RowGradientKernel<T>& log_softmax_backward_warp();
/// A block of 256 threads per row: up to 4096 columns are kept in registers.
template <class T>
const RowGradientKernel<T>& softmax_backward_block();
template <class T>
const RowGradientKernel<T>& log_softmax_backward_block();
/// A block of 512 threads per row: up to 16384 columns are kept in registers, longer rows are read twice.
template <class T>
const RowGradientKernel<T>& softmax_backward();
template <class T>
const RowGradientKernel<T>& log_softmax_backward();

/// Of rows that end at the diagonals of their matrices, which have `queries` rows each; row r of the launch is number
/// first_row + r of all. The arguments are y, dy, dx, rows, columns, queries, first_row.
template <class T>
using CausalGradientKernel = Kernel<In<T>, In<T>, Out<T>, u32, u32, u32, u32>;
template <class T>
const CausalGradientKernel<T>& softmax_causal_backward_warp();
template <class T>
const CausalGradientKernel<T>& softmax_causal_backward_block();
template <class T>
const CausalGradientKernel<T>& softmax_causal_backward();

/// For the catalogue: names, launches, checks and references.
extern const Recipe softmax_backward_recipe, log_softmax_backward_recipe, softmax_causal_backward_recipe;
/// dx of each row, by the kernel for that many columns. A row of y or dy with a NaN or an infinity gives NaN where the
/// formula does. Throws Error unless y, dy and dx have the same shape and type.
void softmax_backward(const Queue& queue, const TensorView& y, const TensorView& dy, const MutableTensorView& dx);
void log_softmax_backward(const Queue& queue, const TensorView& y, const TensorView& dy, const MutableTensorView& dx);
/// Of matrices, ... x rows x columns, with fewer than 2^32 rows in all.
void softmax_causal_backward(const Queue& queue, const TensorView& y, const TensorView& dy,
                             const MutableTensorView& dx);

}  // namespace ikat::stdlib
