// SPDX-License-Identifier: Apache-2.0
// Copies that go on behind their instruction, cp.async, which targets have from sm_80 on, and stores of matrices,
// stmatrix, from sm_90 on; below, they become loads and stores (codegen/legalise).
#include "codegen/legalise/legalise.hpp"
#include "codegen/nvptx/select/steps.hpp"

namespace ikat::nvptx {

Changed expand_copies(ir::Function& fn, analysis::Context& context, const ptx::Target& target) {
    Changed changed = Changed::Nothing;
    if (!supports(target, ptx::Feature::AsyncCopy)) changed |= legalise::expand_copies(fn, context);
    if (!supports(target, ptx::Feature::MatrixStore)) changed |= legalise::expand_stores_of_matrices(fn);
    return changed;
}

}  // namespace ikat::nvptx
