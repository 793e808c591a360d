// SPDX-License-Identifier: Apache-2.0
// Marks branches that all threads take the same way, so that the target may say so (bra.uni) and need not be ready to
// split a warp.
//
//     %0 = special.u32 ctaid.x
//     %1 = lt.u32 %0, %n
//     branch %1, ^1, ^2             ==>      branch.uniform %1, ^1, ^2
//
// Needs: nothing; what it says holds until conditions change, so it comes last. Keeps everything else.
#include "codegen/passes/passes.hpp"

namespace ikat::passes {

Changed uniform_branches(ir::Function& fn, Context& context) {
    const analysis::Uniformity& uniformity = context.uniformity();
    bool changed = false;
    for (ir::Block block : fn.blocks()) {
        ir::Terminator& terminator = fn[block].terminator;
        if (terminator.condition == ir::no_value || terminator.uniform) continue;
        if (!uniformity.is_uniform(terminator.condition)) continue;
        terminator.uniform = changed = true;
    }
    return analysis::instructions_if(changed);
}

}  // namespace ikat::passes
