// SPDX-License-Identifier: Apache-2.0
#include "codegen/ir/edit/clone.hpp"

#include <algorithm>
#include <utility>

namespace ikat::ir {
namespace {

/// Two walks, because a value may be used in the order of blocks before it is defined: the first makes instructions and
/// results, the second fills in operands.
class Cloning {
public:
    Cloning(Function& to, const Function& from, std::uint32_t first_symbol,
            const std::function<Value(Inst)>& stands_for)
        : to_(to),
          from_(from),
          first_symbol_(first_symbol),
          first_block_(std::uint32_t(to.block_count())),
          stands_for_(stands_for),
          values_(from.value_count(), no_value) {}

    Block run() {
        for (Block block : from_.blocks()) define(block, to_.add_block());
        for (const auto& [old, made] : copies_) connect(old, made);
        for (Block block : from_.blocks()) end(block);
        return Block(first_block_);
    }

private:
    void define(Block block, Block made) {
        for (Value parameter : from_[block].parameters)
            values_[index(parameter)] = to_.add_parameter(made, from_.type(parameter));
        for (Inst inst : from_[block].instructions) {
            const Value other = stands_for_(inst);
            if (other == no_value)
                copy(inst, made);
            else
                values_[index(from_.result(inst))] = other;
        }
    }
    void copy(Inst inst, Block block) {
        Instruction copy = from_[inst];
        const Attribute attribute = info(copy.op).attribute;
        if (attribute == Attribute::Text || attribute == Attribute::Callee)
            copy.attribute = to_.add_text(from_.texts[copy.attribute]);
        if (attribute == Attribute::Symbol) copy.attribute += first_symbol_;
        std::vector<Type> types;
        for (Value result : from_.results(inst)) types.push_back(from_.type(result));
        const Inst made = to_.append(block, copy, std::vector<Value>(copy.operands.count, no_value), types);
        for (std::size_t i = 0; i < types.size(); ++i)
            values_[index(from_.results(inst)[i])] = std::as_const(to_).results(made)[i];
        copies_.emplace_back(inst, made);
    }

    void connect(Inst old, Inst made) {
        std::ranges::copy(from_.operands(old), to_.operands(made).begin());
        to_.each_use(made, [&](Value& value) { rename(value); });
    }
    void end(Block block) {
        Terminator& terminator = to_[Block(first_block_ + index(block))].terminator;
        terminator = from_[block].terminator;
        for (Jump& jump : terminator.targets) jump.to = Block(first_block_ + index(jump.to));
        Function::each_use(terminator, [&](Value& value) { rename(value); });
    }
    void rename(Value& value) const { value = values_[index(value)]; }

    Function& to_;
    const Function& from_;
    const std::uint32_t first_symbol_, first_block_;
    const std::function<Value(Inst)>& stands_for_;
    std::vector<Value> values_;  // by value of `from`
    std::vector<std::pair<Inst, Inst>> copies_;
};

}  // namespace

Block clone_blocks(Function& to, const Function& from, std::uint32_t first_symbol,
                   const std::function<Value(Inst)>& stands_for) {
    return Cloning(to, from, first_symbol, stands_for).run();
}

}  // namespace ikat::ir
