// SPDX-License-Identifier: Apache-2.0
#include "codegen/analysis/liveness.hpp"

#include <ranges>

namespace ikat::analysis {

using namespace ir;

Liveness::Liveness(const Function& fn, const Dominators& dominators)
    : live_in_(fn.block_count(), Bitset(fn.value_count())), live_out_(live_in_) {
    const auto order = dominators.reverse_postorder();
    for (bool changed = true; changed;) {
        changed = false;
        for (std::size_t i = order.size(); i-- > 0;) {
            const Block block = order[std::ptrdiff_t(i)];
            Bitset& out = live_out_[index(block)];
            for (const Jump& jump : fn[block].terminator.targets) out.merge(live_in_[index(jump.to)]);
            Bitset live = out;
            Function::each_use(fn[block].terminator, [&](Value value) { live.set(index(value)); });
            for (Inst inst : fn[block].instructions | std::views::reverse) {
                for (Value result : fn.results(inst)) live.reset(index(result));
                fn.each_use(inst, [&](Value value) { live.set(index(value)); });
            }
            for (Value parameter : fn[block].parameters) live.reset(index(parameter));
            changed |= live_in_[index(block)].merge(live);
        }
    }
}

}  // namespace ikat::analysis
