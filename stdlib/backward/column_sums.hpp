// SPDX-License-Identifier: Apache-2.0
// The sums of the columns of a matrix: the gradient of a bias, which is added to each row.
//
//     stdlib::column_sums(device, dy.view(rows, columns), db);
//
// Each block adds a share of the rows of some columns; where there are several shares, a second launch adds these. The
// order of the additions depends on the extents and the pitches alone: the result is the same in every run, and no
// atomics are used. Sums are in f32, for 16-bit types too.
#pragma once
#include "dsl/kernel/kernel.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

/// sums[share * columns + c] = the sum of column c over a share of the rows, in f32. x is rows x columns, row-major,
/// with fewer than 2^32 elements, and begins at a multiple of 16 bytes. A block of 256 threads adds 512 bytes of
/// columns; with as many blocks as these are, there is one share, and sums has an element for each column. A multiple
/// of these blocks makes that many shares.
template <class T>
using ColumnSumsKernel = Kernel<In<T>, Out<float>, u32, u32>;
/// T is float, half or bfloat16.
template <class T>
const ColumnSumsKernel<T>& column_sums_kernel();
/// The launch for one share of rows with elements of `bytes` bytes.
runtime::Grid column_sums_grid(std::uint32_t columns, std::uint64_t bytes);

/// The bytes of workspace that column_sums of x needs.
std::uint64_t column_sums_workspace(const TensorView& x);
/// For the catalogue: names, launches, checks and references.
extern const Recipe column_sums_recipe;
/// sums[c] = the sum of x[..., c] over all rows, in f32. x is f32, f16 or bf16, of one to five dimensions, with any
/// pitches; sums is of float, with an element for each column. Without rows the sums are 0. Throws Error for shapes and
/// types that do not fit.
void column_sums(const Queue& queue, const TensorView& x, const MutableTensorView& sums,
                 const WorkspaceSlice& workspace = {});

}  // namespace ikat::stdlib
