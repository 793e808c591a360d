// SPDX-License-Identifier: Apache-2.0
// Rebuilds a function in the order of its text.
#include <algorithm>

#include "codegen/ir/text/parse.hpp"

namespace ikat::ir {
namespace {

class Renumbering {
public:
    explicit Renumbering(const Function& from) : from_(from), values_(from.value_count(), no_value) {}

    Function run() {
        to_.name = from_.name;
        to_.is_entry = from_.is_entry;
        to_.parameters = from_.parameters;
        to_.gives = from_.gives;
        to_.symbols = from_.symbols;
        to_.bounds = from_.bounds;
        for (Block block : from_.blocks()) define(block);
        for (Block block : from_.blocks()) connect(block);
        return std::move(to_);
    }

private:
    void define(Block block) {
        to_.add_block();
        for (Value parameter : from_[block].parameters)
            values_[index(parameter)] = to_.add_parameter(block, from_.type(parameter));
        for (Inst inst : from_[block].instructions) {
            Instruction copy = from_[inst];
            const Attribute attribute = info(copy.op).attribute;
            if (attribute == Attribute::Text || attribute == Attribute::Callee)
                copy.attribute = to_.add_text(from_.texts[copy.attribute]);
            std::vector<Type> types;
            for (Value result : from_.results(inst)) types.push_back(from_.type(result));
            const std::vector<Value> later(copy.operands.count, no_value);
            const Inst made = to_.append(block, copy, later, types);
            for (std::size_t i = 0; i < types.size(); ++i)
                values_[index(from_.results(inst)[i])] = std::as_const(to_).results(made)[i];
        }
    }
    void connect(Block block) {
        const auto rename = [&](Value& value) { value = values_[index(value)]; };
        for (std::size_t i = 0; i < from_[block].instructions.size(); ++i) {
            const Inst inst = to_[block].instructions[i];
            std::ranges::copy(from_.operands(from_[block].instructions[i]), to_.operands(inst).begin());
            to_.each_use(inst, rename);
        }
        to_[block].terminator = from_[block].terminator;
        Function::each_use(to_[block].terminator, rename);
    }

    const Function& from_;
    Function to_;
    std::vector<Value> values_;  // by old value: the new one
};

}  // namespace

Function renumbered(const Function& fn) { return Renumbering(fn).run(); }

}  // namespace ikat::ir
