// SPDX-License-Identifier: Apache-2.0
// The passes. Each takes a well-formed function, leaves it well formed, and says whether it changed anything; a file
// each, whose head shows what it does. codegen/pipeline/stages.hpp runs them.
#pragma once
#include <span>

#include "codegen/ir/function.hpp"

namespace ikat::passes {

bool clean_up_control_flow(ir::Function& fn);
bool fold_constants(ir::Function& fn);
bool simplify(ir::Function& fn);
bool common_subexpressions(ir::Function& fn);
bool use_ranges(ir::Function& fn);
bool forward_stores(ir::Function& fn);
bool loop_invariants(ir::Function& fn);
bool dead_code(ir::Function& fn);
bool uniform_branches(ir::Function& fn);
bool inline_calls(ir::Function& fn, std::span<const ir::Function> module);

}  // namespace ikat::passes
