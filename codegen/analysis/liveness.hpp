// SPDX-License-Identifier: Apache-2.0
// Which values are live where control enters and leaves each block.
//
// A value is live where some path leads to a use before anything else. A block's parameters are defined by the block:
// they are not live into it. An argument of a jump is used by the jump: it is live up to the end of the block, but not
// out of it, unless the successor uses the value itself, too.
//
// Found by the usual backward iteration over bit sets, in postorder, so that a function without loops takes one round.
#pragma once
#include <vector>

#include "codegen/analysis/dominators.hpp"
#include "codegen/support/bitset.hpp"

namespace ikat::analysis {

class Liveness {
public:
    Liveness(const ir::Function& fn, const Dominators& dominators);

    /// Values, by index. Unreachable blocks have none.
    const Bitset& live_in(ir::Block block) const { return live_in_[index(block)]; }
    const Bitset& live_out(ir::Block block) const { return live_out_[index(block)]; }

private:
    std::vector<Bitset> live_in_, live_out_;
};

/// Walks a block backwards: f(inst, live) for each instruction, where live holds the values live just behind it
/// (its results among them if anything uses them). Afterwards the same for the point behind the parameters, with
/// no_inst.
void each_point(const ir::Function& fn, const Liveness& liveness, ir::Block block, auto&& f) {
    Bitset live = liveness.live_out(block);
    ir::Function::each_use(fn[block].terminator, [&](ir::Value value) { live.set(index(value)); });
    const auto& instructions = fn[block].instructions;
    for (auto inst = instructions.rbegin(); inst != instructions.rend(); ++inst) {
        f(*inst, std::as_const(live));
        for (ir::Value result : fn.results(*inst)) live.reset(index(result));
        fn.each_use(*inst, [&](ir::Value value) { live.set(index(value)); });
    }
    f(ir::no_inst, std::as_const(live));
}

}  // namespace ikat::analysis
