// SPDX-License-Identifier: Apache-2.0
// The two launches of a reduction: the shares of the blocks, and of those one result. For the families that reduce.
#pragma once
#include "stdlib/reduce/reduction.hpp"
#include "stdlib/size.hpp"

namespace ikat::stdlib::detail {

/// shares(grid, partial) is the first launch, with an element of partial for each block; where there is one block, that
/// is the result already, else rest(grid, partial, total, blocks) is the second.
void launch_shares(const runtime::Queue& queue, std::string_view function, std::uint64_t n,
                   const runtime::BufferSlice<float>& total, const WorkspaceSlice& workspace, auto&& shares,
                   auto&& rest) {
    require_size(function, "total", total.size(), 1);
    const runtime::Grid grid = reduction_grid(n);
    const std::uint32_t blocks = grid.blocks.x;
    if (blocks == 1) return shares(grid, total);
    Workspace space(queue, function, workspace, reduction_workspace(n));
    const auto partial = space.take<float>(blocks);
    shares(grid, partial);
    queue.launch(rest, runtime::grid(1, grid.threads.x), partial, total, blocks);
}

}  // namespace ikat::stdlib::detail
