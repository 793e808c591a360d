// SPDX-License-Identifier: Apache-2.0
// Marks branches on which all threads of a warp agree, so that the target can emit bra.uni and need not prepare for
// divergence.
//
//     %0 = special.u32 ctaid.x
//     %1 = lt.u32 %0, %n
//     branch %1, ^1, ^2             ==>      branch.uniform %1, ^1, ^2
//
// Needs: nothing; the marks are valid until conditions change, so it runs last. Keeps everything else.
#include "codegen/passes/passes.hpp"

namespace ikat::passes {

Changed uniform_branches(ir::Function& fn, Context& context) {
    const analysis::Uniformity& uniformity = context.uniformity();
    bool changed = false;
    for (ir::Block block : fn.blocks()) {
        ir::Terminator& terminator = fn[block].terminator;
        if (terminator.condition == ir::no_value || terminator.uniform) continue;
        if (uniformity.extent(terminator.condition) > ir::Extent::Warp) continue;
        terminator.uniform = changed = true;
    }
    return analysis::instructions_if(changed);
}

}  // namespace ikat::passes
