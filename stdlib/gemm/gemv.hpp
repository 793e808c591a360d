// SPDX-License-Identifier: Apache-2.0
// Matrix times vector, and the plainest matrix product. f32, f16 or bf16, sums in f32, rounded once. All matrices are
// row-major with fewer than 2^32 elements; dimensions may be 0.
#pragma once
#include "dsl/kernel/kernel.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

/// Parameters A, x, y, rows, columns; the numbers are those of A.
template <class T>
using GemvKernel = Kernel<In<T>, In<T>, Out<T>, u32, u32>;
/// y = A x: x has an element for each column of A, y for each row. A warp computes a row. It loads vectors if a row is
/// a whole number of them.
template <class T>
const GemvKernel<T>& gemv_warp_reduce();
/// y = x A, which is A' x: x has an element for each row of A, y for each column. A block computes 32 columns;
/// neighbouring threads have neighbouring columns.
template <class T>
const GemvKernel<T>& gemv_coalesced();

/// Parameters A, B, C, m, n, k: C[m×n] = A[m×k] B[k×n], a thread for each element.
template <class T>
using GemmNaiveKernel = Kernel<In<T>, In<T>, Out<T>, u32, u32, u32>;
template <class T>
const GemmNaiveKernel<T>& gemm_naive();

/// For the catalogue: names, launches, checks and references.
extern const Recipe gemv_recipe, gemv_transposed_recipe, gemm_naive_recipe;
// The functions. They throw Error for shapes and types that do not fit.
/// y = A x: A is rows×columns, with any pitch, of f32, f16 or bf16, as are x and y; or of quantised weights, see
/// quantised_gemv().
void gemv(const Queue& queue, const TensorView& A, const TensorView& x, const MutableTensorView& y);
/// y = A' x.
void gemv_transposed(const Queue& queue, const TensorView& A, const TensorView& x, const MutableTensorView& y);

}  // namespace ikat::stdlib
