// SPDX-License-Identifier: Apache-2.0
// Values that stand for others: a pass notes "%5 is %3" while it walks and rewrites the uses once, at the end or as it
// meets them. Chains (%7 is %5, %5 is %3) are followed and shortened.
#pragma once
#include "codegen/ir/function.hpp"

namespace ikat::passes {

class Replacement {
public:
    bool empty() const { return leader_.empty(); }

    void replace(ir::Value value, ir::Value by) {
        for (auto next = ir::Value(leader_.size()); index(next) <= index(value); next = ir::Value(leader_.size()))
            leader_.push_back(next);
        leader_[index(value)] = by;
    }

    ir::Value operator()(ir::Value value) {
        if (index(value) >= leader_.size()) return value;
        ir::Value& leader = leader_[index(value)];
        if (leader != value) leader = (*this)(leader);
        return leader;
    }

    /// Rewrites every use in the function's blocks.
    void apply(ir::Function& fn) {
        if (empty()) return;
        const auto rewrite = [&](ir::Value& use) { use = (*this)(use); };
        for (ir::Block block : fn.blocks()) {
            for (ir::Inst inst : fn[block].instructions) fn.each_use(inst, rewrite);
            ir::Function::each_use(fn[block].terminator, rewrite);
        }
    }

private:
    std::vector<ir::Value> leader_;  // of the values up to the last one replaced; the others stand for themselves
};

}  // namespace ikat::passes
