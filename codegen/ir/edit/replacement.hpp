// SPDX-License-Identifier: Apache-2.0
// Replacement of values by others: a walk notes "%5 is %3" and rewrites the uses once, at its end or as it meets them.
// Chains (%7 is %5, %5 is %3) are followed and shortened.
#pragma once
#include "codegen/ir/function.hpp"

namespace ikat::ir {

class Replacement {
public:
    bool empty() const { return leader_.empty(); }

    void replace(Value value, Value by) {
        for (auto next = Value(leader_.size()); index(next) <= index(value); next = Value(leader_.size()))
            leader_.push_back(next);
        leader_[index(value)] = by;
    }

    Value operator()(Value value) const {
        if (index(value) >= leader_.size()) return value;
        Value& leader = leader_[index(value)];
        if (leader != value) leader = (*this)(leader);
        return leader;
    }

    /// Rewrites the uses in an instruction or a terminator.
    void apply(Function& fn, Inst inst) const {
        fn.each_use(inst, [this](Value& use) { use = (*this)(use); });
    }
    void apply(Terminator& terminator) const {
        Function::each_use(terminator, [this](Value& use) { use = (*this)(use); });
    }
    /// ... in all of the function's blocks.
    void apply(Function& fn) const {
        if (empty()) return;
        for (Block block : fn.blocks()) {
            for (Inst inst : fn[block].instructions) apply(fn, inst);
            apply(fn[block].terminator);
        }
    }

private:
    mutable std::vector<Value> leader_;  // for values up to the last one replaced; the others are not replaced
};

}  // namespace ikat::ir
