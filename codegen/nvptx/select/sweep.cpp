// SPDX-License-Identifier: Apache-2.0
// What steps of selection leave behind: pure instructions that nothing uses.
#include <algorithm>

#include "codegen/nvptx/select/steps.hpp"

namespace ikat::nvptx {

/// From the last use backwards, so that a chain goes in one walk; definitions come before uses in the order of blocks.
void sweep(ir::Function& fn) {
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
        std::erase(list, ir::no_inst);
    }
}

}  // namespace ikat::nvptx
