// SPDX-License-Identifier: Apache-2.0
// Blocks taken apart.
#pragma once
#include "codegen/ir/function.hpp"

namespace ikat::ir {

/// Moves the instructions from position `from` on and the terminator to a new block, which is returned. The old one is
/// left without a terminator.
Block split_block(Function& fn, Block block, std::size_t from);

}  // namespace ikat::ir
