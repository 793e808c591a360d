// SPDX-License-Identifier: Apache-2.0
// Splitting blocks and edges.
#pragma once
#include "codegen/ir/function.hpp"

namespace ikat::ir {

/// Moves the instructions from position `from` on and the terminator to a new block, which is returned. The old one is
/// left without a terminator.
Block split_block(Function& fn, Block block, std::size_t from);

/// A new block on the edge from `from` to that target of its terminator; it passes the arguments on.
Block split_edge(Function& fn, Block from, std::size_t target);

/// A new block through which every edge into the loop leads, with the same parameters as the header. `inside`, by
/// block: the loop's blocks.
Block make_preheader(Function& fn, Block header, const std::vector<bool>& inside);

}  // namespace ikat::ir
