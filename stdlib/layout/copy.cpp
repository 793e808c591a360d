// SPDX-License-Identifier: Apache-2.0
#include "stdlib/layout/copy.hpp"

#include <algorithm>

#include "dsl/threads/simt.hpp"
#include "stdlib/spec/families.hpp"
#include "stdlib/tile/vectors.hpp"

namespace ikat::stdlib {

template <class T>
const CopyMatrixKernel<T>& copy_matrix_kernel() {
    static const auto made = kernel(name_of<T>("copy_matrix"), params("from", "to"), [](In<T, 2> from, Out<T, 2> to) {
                                 check(to.extent(0) >= from.extent(0), "`to` has fewer rows than `from`");
                                 check(to.extent(1) >= from.extent(1), "`to` has fewer columns than `from`");
                                 require_linear_grid();
                                 for (auto i : range(block_id().x, from.extent(0), grid_dim().x)) {
                                     const auto source = from[i];
                                     const auto target = to[i];
                                     for (auto j : columns_of<1, T>(value(i * from.pitch()), from.extent(1),
                                                                    value(thread_id().x), value(block_dim().x)))
                                         target[j] = source[j];
                                 }
                             }).launch_bounds(1024);
    return made;
}
template const CopyMatrixKernel<float>& copy_matrix_kernel();
template const CopyMatrixKernel<half>& copy_matrix_kernel();

Grid copy_matrix_grid(std::uint64_t rows) {
    return {.blocks = {std::uint32_t(std::min<std::uint64_t>(rows, 0x7fffffff)), 1, 1}, .threads = {256, 1, 1}};
}

// ---- the recipe

constexpr Recipe copy_matrix_recipe{
    .call = "copy_matrix(queue, from, to)",
    .kernels = {{"copies a matrix into another", IKAT_TYPES(copy_matrix_kernel<T>(), float, half),
                 [](const Call& call) { return copy_matrix_grid(call["from_extent0"]); }}},
    .document =
        "to[i, j] = from[i, j] for all rows and columns of `from`; `to` has as many of both, or more. A block\n"
        "takes whole rows. In programs, both may have rows with gaps between them.",
    .reference = reference::copy_matrix,
    .traffic = "2 E s",
    .note = "views of the same shape, with any pitches: `x.view(300, 200).pitched(256)`"};

}  // namespace ikat::stdlib
