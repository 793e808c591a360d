// SPDX-License-Identifier: Apache-2.0
// Softmax of the rows of a matrix: y = exp(x - m) / sum exp(x - m), m the row's largest element, so that nothing
// overflows.
//
//     stdlib::softmax(device, x, y, rows, columns);
//
// x and y are row-major, rows * columns < 2^32, f32, f16 or bf16; they do not overlap. Computed in f32, rounded once;
// an f32 result is within (8 + |x - m| + columns / 32) 2^-23 of the exact one, relatively. A row with a NaN, +infinity
// or nothing but -infinity gives NaN.
#pragma once
#include "dsl/kernel/kernel.hpp"
#include "stdlib/recipe.hpp"

namespace ikat::stdlib {

/// x, y, rows, columns.
template <class T>
using RowKernel = Kernel<In<T>, Out<T>, u32, u32>;

/// A warp per row: for short rows, kept in registers up to 1024 columns.
template <class T>
const RowKernel<T>& softmax_warp();
/// A block per row: kept in registers up to 8192 columns.
template <class T>
const RowKernel<T>& softmax_block();
/// A block per row in two passes, one that finds maximum and sum together: for long rows.
template <class T>
const RowKernel<T>& softmax_online();
/// y = (x - m) - log sum exp(x - m); a block to a row.
template <class T>
const RowKernel<T>& log_softmax();

extern const Recipe softmax_recipe, log_softmax_recipe;
/// Softmax by the kernel that suits the columns. Error where a buffer is too small.
template <Real T>
void softmax(const Queue& queue, const Buffer<T>& x, Buffer<T>& y, std::uint32_t rows, std::uint32_t columns) {
    run<T>(queue, softmax_recipe, {x, y, rows, columns}, {.columns = columns});
}
template <Real T>
void log_softmax(const Queue& queue, const Buffer<T>& x, Buffer<T>& y, std::uint32_t rows, std::uint32_t columns) {
    run<T>(queue, log_softmax_recipe, {x, y, rows, columns});
}

}  // namespace ikat::stdlib
