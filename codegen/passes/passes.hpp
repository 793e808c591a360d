// SPDX-License-Identifier: Apache-2.0
// The passes. Each takes a well-formed function, leaves it well formed, and says what it changed; what it has to know
// of the function it asks the context. A file each, whose head shows what it does. codegen/pipeline/stages.hpp runs
// them.
#pragma once
#include "codegen/analysis/context.hpp"

namespace ikat::passes {

using analysis::Changed, analysis::Context;

Changed unroll(ir::Function& fn, Context& context);
Changed clean_up_control_flow(ir::Function& fn, Context& context);
Changed fold_constants(ir::Function& fn, Context& context);
Changed simplify(ir::Function& fn, Context& context);
Changed common_subexpressions(ir::Function& fn, Context& context);
Changed use_ranges(ir::Function& fn, Context& context);
Changed forward_stores(ir::Function& fn, Context& context);
Changed loop_invariants(ir::Function& fn, Context& context);
Changed dead_code(ir::Function& fn, Context& context);
Changed uniform_branches(ir::Function& fn, Context& context);
Changed inline_calls(ir::Function& fn, Context& context);

}  // namespace ikat::passes
