// SPDX-License-Identifier: Apache-2.0
// Copies of one function's blocks in another.
#pragma once
#include <functional>

#include "codegen/ir/function.hpp"

namespace ikat::ir {

/// Appends copies of all blocks of `from`, in their order; gives the first. Symbols of `from` stand in `to` from
/// `first_symbol` on; texts are added. `stands_for(inst)` may give a value of `to` for the only result of an
/// instruction of `from`, which then is not copied; no_value for the others. Parameters are named as in `from`.
Block clone_blocks(Function& to, const Function& from, std::uint32_t first_symbol,
                   const std::function<Value(Inst)>& stands_for);

}  // namespace ikat::ir
