// SPDX-License-Identifier: Apache-2.0
// Softmax of the rows of a matrix: y = exp(x - m) / sum exp(x - m), where m is the row's largest element, so that
// nothing overflows.
//
//     stdlib::softmax(device, x, y, rows, columns);
//
// x and y are row-major, rows * columns < 2^32, both f32, f16 or bf16; they must not overlap. Computed in f32 and
// rounded once; the relative error of an f32 result is at most (8 + |x - m| + columns / 32) 2^-23. A row that has a NaN
// or +infinity, or nothing but -infinity, gives NaN.
#pragma once
#include "dsl/kernel/kernel.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

/// The arguments are x, y, rows, columns.
template <class T>
using RowKernel = Kernel<In<T>, Out<T>, u32, u32>;

/// A warp per row, for short rows: up to 1024 columns are kept in registers.
template <class T>
const RowKernel<T>& softmax_warp();
/// A block per row: up to 8192 columns are kept in registers.
template <class T>
const RowKernel<T>& softmax_block();
/// A block per row, for long rows: two passes over memory, the first of which finds the maximum and the sum together.
template <class T>
const RowKernel<T>& softmax_online();
/// y = (x - m) - log sum exp(x - m); a block per row.
template <class T>
const RowKernel<T>& log_softmax();

/// For the catalogue: names, launches, checks and references.
extern const Recipe softmax_recipe, log_softmax_recipe;
/// Softmax by the kernel for that many columns. Throws Error where a buffer is too small for rows and columns.
template <Real T>
void softmax(const Queue& queue, const Buffer<T>& x, Buffer<T>& y, std::uint32_t rows, std::uint32_t columns) {
    run<T>(queue, softmax_recipe, {x, y, rows, columns}, {.columns = columns});
}
template <Real T>
void log_softmax(const Queue& queue, const Buffer<T>& x, Buffer<T>& y, std::uint32_t rows, std::uint32_t columns) {
    run<T>(queue, log_softmax_recipe, {x, y, rows, columns});
}

}  // namespace ikat::stdlib
