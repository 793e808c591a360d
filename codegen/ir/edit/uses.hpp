// SPDX-License-Identifier: Apache-2.0
// The uses of a value.
#pragma once
#include "codegen/ir/function.hpp"
#include "codegen/support/grouped.hpp"

namespace ikat::ir {

/// An instruction (including its guard) or, if that is no_inst, the terminator of the block (including the arguments of
/// its jumps).
struct Use {
    Inst inst = no_inst;
    Block block{};
};

/// Calls f(value, use) for every use in the function's blocks.
void each_use(const Function& fn, auto&& f) {
    for (Block block : fn.blocks()) {
        for (Inst inst : fn[block].instructions) fn.each_use(inst, [&](Value value) { f(value, Use{inst, block}); });
        Function::each_use(fn[block].terminator, [&](Value value) { f(value, Use{no_inst, block}); });
    }
}

/// The uses of each value, in the order of the blocks. Valid until operands change.
class Uses {
public:
    explicit Uses(const Function& fn)
        : uses_(fn.value_count(),
                [&](auto&& add) { each_use(fn, [&](Value value, const Use& use) { add(index(value), use); }); }) {}
    std::span<const Use> of(Value value) const { return uses_[index(value)]; }

private:
    Grouped<Use> uses_;
};

/// By value: how often it is used.
inline std::vector<std::uint32_t> count_uses(const Function& fn) {
    std::vector<std::uint32_t> out(fn.value_count());
    each_use(fn, [&](Value value, const Use&) { ++out[index(value)]; });
    return out;
}

}  // namespace ikat::ir
