// SPDX-License-Identifier: Apache-2.0
// Removes unused pure instructions that steps of selection leave behind.
#include <algorithm>

#include "codegen/nvptx/select/steps.hpp"

namespace ikat::nvptx {

/// Walks backwards, so that a chain of unused instructions is removed in one walk; definitions come before uses in
/// block order.
Changed sweep(ir::Function& fn) {
    bool any = false;
    std::vector<std::uint32_t> uses = count_uses(fn);
    for (std::size_t at = fn.block_count(); at-- > 0;) {
        auto& list = fn[ir::Block(at)].instructions;
        const auto unused = [&](ir::Inst inst) {
            return effects(fn[inst]).none() &&
                   std::ranges::all_of(fn.results(inst), [&](ir::Value value) { return uses[index(value)] == 0; });
        };
        for (auto inst = list.rbegin(); inst != list.rend(); ++inst) {
            if (!unused(*inst)) continue;
            fn.each_use(*inst, [&](ir::Value value) { --uses[index(value)]; });
            *inst = ir::no_inst;
        }
        any |= std::erase(list, ir::no_inst) != 0;
    }
    return analysis::instructions_if(any);
}

}  // namespace ikat::nvptx
