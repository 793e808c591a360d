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
// The functions on buffers. They throw Error if a buffer is too small for rows and columns.
/// y = A x.
template <Real T>
void gemv(const Queue& queue, const Buffer<T>& A, const Buffer<T>& x, Buffer<T>& y, std::uint32_t rows,
          std::uint32_t columns) {
    run<T>(queue, gemv_recipe, {A, x, y, rows, columns});
}
/// y = A' x.
template <Real T>
void gemv_transposed(const Queue& queue, const Buffer<T>& A, const Buffer<T>& x, Buffer<T>& y, std::uint32_t rows,
                     std::uint32_t columns) {
    run<T>(queue, gemv_transposed_recipe, {A, x, y, rows, columns});
}

}  // namespace ikat::stdlib
