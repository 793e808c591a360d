// SPDX-License-Identifier: Apache-2.0
#include "dsl/threads/grids.hpp"
#include "stdlib/quantised/product_kernels.hpp"
#include "stdlib/tile/rows.hpp"

namespace ikat::stdlib {

using blocks::F, blocks::U;

void record_rows(const ProductArguments& of, std::uint32_t rows_of_warp, const ProductMemory& memory,
                 const std::function<U()>& first_row) {
    BlockProduct product(of.x, std::vector(rows_of_warp, &of.w), memory);
    const U first = first_row();
    // Beyond the last row, the last one again.
    product.run(first, [&](std::uint32_t r) { return r == 0 ? first : U(value(min(first + r, of.w.rows - 1u))); });
    const F sum = product.sum();
    const std::uint32_t padded = product.padded_tokens(), lanes = product.lanes_of_sum();
    const U lane = value(lane_id()), number = value(lane / lanes), token = value(number % padded);
    const U row = value(first + number / padded);
    of.store(value((lane % lanes == 0u) & (token < of.x.count) & (row < of.w.rows)), token, row, sum);
}

void record_product(const ProductKernel& is, const ProductArguments& of) {
    require_linear_grid();
    require_threads(WarpGroup::block);
    if (is.is_packed()) grid_wait();  // for the kernel that has quantised the activations
    const std::uint32_t rows = is.rows_of_warp();
    const ProductMemory memory(of.x, rows, {&is.format, 1});
    record_rows(of, rows, memory, [&] { return U(value(WarpGroup::row() * rows)); });
}

}  // namespace ikat::stdlib
