// SPDX-License-Identifier: Apache-2.0
// Rows of a table by their numbers, and sums of rows in a table by their numbers: embeddings and their gradient.
//
//     embedding(device, ids, table.view(rows, columns), y.view(tokens, columns));                y[t] = table[ids[t]]
//     embedding_backward(device, ids, dy.view(tokens, columns), dtable.view(rows, columns));     dtable[ids[t]] +=
//     dy[t]
//
// Ids are std::uint32_t. Those that are not below the number of rows are padding: they give zeros, and add nothing.
#pragma once
#include "dsl/kernel/kernel.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

/// y[t, column] = table[ids[t], column] for t < tokens, or 0 where ids[t] is not below table_rows. Rows have `width`
/// elements. The arguments are ids, table, y, tokens, width, table_rows.
template <class T>
using GatherKernel = Kernel<In<std::uint32_t>, In<T>, Out<T>, u32, u32, u32>;
template <class T>
const GatherKernel<T>& gather_rows_kernel();

/// For the catalogue.
extern const Recipe gather_rows_recipe;

/// y[t] = table[ids[t]], or zeros where there is no such row: ids is tokens, table is rows x columns, y tokens x
/// columns, of the same type, f32, f16 or bf16, with any pitches. Bits stay as they are. Throws Error for shapes and
/// types that do not fit.
void gather_rows(const Queue& queue, const TensorView& ids, const TensorView& table, const MutableTensorView& y);
/// The same, by the name of the layer.
inline void embedding(const Queue& queue, const TensorView& ids, const TensorView& table, const MutableTensorView& y) {
    gather_rows(queue, ids, table, y);
}

/// y[ids[t]] += x[t] for all t, where there is such a row: ids is tokens, x is tokens x columns of f32, f16 or bf16, y
/// is rows x columns of f32, with any pitches. The rows of x for one row of y are added in f32, in an order that
/// depends on the ids alone, and then to that row: the bits are the same in every run. Two launches, three from 1025
/// tokens on: ids are sorted, and each row of y that has some is one block's. Throws Error for shapes and types that do
/// not fit.
void scatter_add_rows(const Queue& queue, const TensorView& ids, const TensorView& x, const MutableTensorView& y,
                      const WorkspaceSlice& workspace = {});
/// The bytes of workspace for so many ids: 8 for each, or, from 1025 on, 16. Without one, the functions allocate
/// theirs.
std::uint64_t scatter_add_rows_workspace(std::uint64_t tokens);

/// How embedding_backward() works.
struct EmbeddingBackwardOptions {
    /// Whether the gradient is added to what dtable holds, instead of replacing it.
    bool accumulate = false;
    /// scatter_add_rows_workspace() bytes.
    WorkspaceSlice workspace{};
};
/// The gradient of the table of embedding(): as scatter_add_rows() of dy to dtable, whose rows are zeros before, if the
/// gradient is not added. That is one more launch.
void embedding_backward(const Queue& queue, const TensorView& ids, const TensorView& dy,
                        const MutableTensorView& dtable, const EmbeddingBackwardOptions& options = {});

}  // namespace ikat::stdlib
