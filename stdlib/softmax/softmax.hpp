// SPDX-License-Identifier: Apache-2.0
// Softmax of the rows of a matrix: y = exp(x - m) / sum exp(x - m), where m is the row's largest element, so that
// nothing overflows.
//
//     stdlib::softmax(device, x.view(rows, columns), y.view(rows, columns));
//
// x and y have the same shape, of one to five dimensions; rows are the last of these and may begin anywhere. Both are
// f32, f16 or bf16; they must not overlap. Computed in f32 and rounded once; the relative error of an f32 result is at
// most (8 + |x - m| + columns / 32) 2^-23. A row that has a NaN or +infinity, or nothing but -infinity, gives NaN.
#pragma once
#include "dsl/kernel/kernel.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

/// The arguments are x, y, rows, columns: row-major, rows * columns < 2^32, from multiples of 16 bytes on.
template <class T>
using RowKernel = Kernel<In<T>, Out<T>, u32, u32>;

/// A warp per row, for short rows: up to 1024 columns are kept in registers.
template <class T>
const RowKernel<T>& softmax_warp();
/// A block per row: up to 8192 columns are kept in registers.
template <class T>
const RowKernel<T>& softmax_block();
/// A block of 1024 threads per row: up to 32768 columns are kept in registers, other rows are read twice.
template <class T>
const RowKernel<T>& softmax_wide();
/// A block per row, for long rows: two passes over memory, the first of which finds the maximum and the sum together.
template <class T>
const RowKernel<T>& softmax_online();
/// y = (x - m) - log sum exp(x - m); a block per row: up to 8192 columns are kept in registers.
template <class T>
const RowKernel<T>& log_softmax();
/// A warp per row: up to 1024 columns are kept in registers.
template <class T>
const RowKernel<T>& log_softmax_warp();
/// A block of 1024 threads per row: up to 32768 columns.
template <class T>
const RowKernel<T>& log_softmax_wide();

/// For the catalogue: names, launches, checks and references.
extern const Recipe softmax_recipe, log_softmax_recipe;
/// Softmax of each row of x, by the kernel for that many columns. Throws Error unless x and y have the same shape and
/// type.
void softmax(const Queue& queue, const TensorView& x, const MutableTensorView& y);
void log_softmax(const Queue& queue, const TensorView& x, const MutableTensorView& y);

}  // namespace ikat::stdlib
