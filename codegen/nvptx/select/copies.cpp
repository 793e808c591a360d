// SPDX-License-Identifier: Apache-2.0
// Copies that go on behind their instruction, cp.async, which targets have from sm_80 on; below, they become loads and
// stores (codegen/legalise/copies.cpp).
#include "codegen/legalise/legalise.hpp"
#include "codegen/nvptx/select/steps.hpp"

namespace ikat::nvptx {

Changed expand_copies(ir::Function& fn, analysis::Context& context, const Target& target) {
    return supports(target, Feature::AsyncCopy) ? Changed::Nothing : legalise::expand_copies(fn, context);
}

}  // namespace ikat::nvptx
