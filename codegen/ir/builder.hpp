// SPDX-License-Identifier: Apache-2.0
// Appends instructions at the end of a block, with the shapes of the op table: the caller gives op, type and operands;
// the result types follow from them.
#pragma once
#include "codegen/ir/function.hpp"

namespace ikat::ir {

class Builder {
public:
    Builder(Function& fn, Block block) : fn_(fn), block_(block) {}

    Function& function() { return fn_; }
    Block block() const { return block_; }
    void set_block(Block block) { block_ = block; }
    void set_location(Location where) { where_ = where; }

    /// Any instruction of a fixed shape; its first result, or no_value.
    Value make(Instruction base, std::span<const Value> operands);
    Value make(Op op, Type type, std::initializer_list<Value> operands, FloatInfo fp = {}) {
        return make({.op = op, .type = type, .fp = fp}, std::span(operands.begin(), operands.size()));
    }
    Value constant(Type type, Word bits) { return leaf(Op::Const, type, bits); }
    Value leaf(Op op, Type type, Form attribute) { return make({.op = op, .type = type, .attribute = attribute}, {}); }
    Value convert(Type to, Value value, FloatInfo fp = {}) {
        return make({.op = Op::Convert, .type = to, .from = fn_.type(value), .fp = fp}, {&value, 1});
    }
    /// An instruction with explicit result types: variadic ops, guarded loads, shuffles with a predicate.
    Inst append(Instruction base, std::span<const Value> operands, std::span<const Type> results);

    void jump(Block to, std::vector<Value> arguments = {});
    void branch(Value condition, Block then, Block otherwise);
    void terminate(Terminator::Kind kind);

private:
    Function& fn_;
    Block block_;
    Location where_{};
};

}  // namespace ikat::ir
