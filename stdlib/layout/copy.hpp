// SPDX-License-Identifier: Apache-2.0
// Copies between matrices of different pitches: a part of a matrix, a matrix with padded rows.
#pragma once
#include "dsl/kernel/kernel.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

/// to[i, j] = from[i, j] for all rows and columns of `from`; `to` has at least as many of both. A block copies whole
/// rows; any grid, blocks of one dimension. T is float or half.
template <class T>
using CopyMatrixKernel = Kernel<In<T, 2>, Out<T, 2>>;
template <class T>
const CopyMatrixKernel<T>& copy_matrix_kernel();

/// The launch for `rows` rows.
Grid copy_matrix_grid(std::uint64_t rows);

/// For the catalogue: names, launches, checks and references.
extern const Recipe copy_matrix_recipe;
/// to = from, as in copy_matrix(device, x.view(300, 200).pitched(256), y.view(300, 200)). Throws Error unless both have
/// the same rows and columns.
template <class T, class From>
void copy_matrix(const Queue& queue, const runtime::BufferView<From, 2>& from, const runtime::BufferView<T, 2>& to) {
    if (from.extents() != to.extents())
        throw Error(Diagnostic{.where = queue.where(),
                               .message = "copy_matrix: 'from' and 'to' have different shapes",
                               .hint = "give both the same rows and columns"});
    if (from.part().bytes == 0) return;
    queue.launch(copy_matrix_kernel<T>(), {copy_matrix_grid(from.extents()[0]), queue.where()}, from, to);
}

}  // namespace ikat::stdlib
