// SPDX-License-Identifier: Apache-2.0
// The launches of kernels that decode and make blocks.
#pragma once
#include "stdlib/spec/recipe.hpp"
#include "stdlib/tile/rows.hpp"

namespace ikat::stdlib {

/// A warp for each `share` elements: of n blocks of this many, or, where the kernel has rows, of each row.
inline Grid warps_grid(const Call& call, std::uint64_t of_block, std::uint64_t share) {
    const bool are_rows = call.has("rows");
    const std::uint64_t length = are_rows ? call["columns"] : call["n"] * of_block, rows = are_rows ? call["rows"] : 1;
    return row_grid<WarpGroup>(rows * ((length + share - 1) / share));
}

}  // namespace ikat::stdlib
