// SPDX-License-Identifier: Apache-2.0
// The passes. Each takes a well-formed function, leaves it well formed, and says what it changed; what it has to know
// of the function it asks the context. Each is a row of passes.def and a file, whose head shows what it does.
// codegen/pipeline/stages.hpp runs them.
#pragma once
#include "codegen/analysis/context.hpp"

namespace ikat::passes {

using analysis::Changed, analysis::Context;

#define PASS(function, name, does) Changed function(ir::Function& fn, Context& context);
#include "codegen/passes/passes.def"

}  // namespace ikat::passes
