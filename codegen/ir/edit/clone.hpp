// SPDX-License-Identifier: Apache-2.0
// Copies of blocks, in their own function or in another.
#pragma once
#include <functional>

#include "codegen/ir/function.hpp"

namespace ikat::ir {

/// Appends copies of all blocks of `from`, in their order; gives the first. Symbols of `from` are in `to` from
/// `first_symbol` on; texts are added. `stands_for(inst)` may give a value of `to` for the only result of an
/// instruction of `from`, which then is not copied; no_value for the others. Parameters are named as in `from`.
Block clone_blocks(Function& to, const Function& from, std::uint32_t first_symbol,
                   const std::function<Value(Inst)>& stands_for);

/// Maps each block and value to its copy; what was not copied maps to itself.
struct Copy {
    std::vector<Block> blocks;
    std::vector<Value> values;
    Block operator()(Block block) const { return blocks[index(block)]; }
    Value operator()(Value value) const { return values[index(value)]; }
    Jump operator()(Jump jump) const;
};

/// Appends copies of some of a function's blocks, in their order. Jumps between them lead to the copies; jumps out of
/// the region keep their targets.
Copy clone_region(Function& fn, std::span<const Block> region);

}  // namespace ikat::ir
