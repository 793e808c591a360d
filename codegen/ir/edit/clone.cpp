// SPDX-License-Identifier: Apache-2.0
#include "codegen/ir/edit/clone.hpp"

#include <algorithm>
#include <utility>

namespace ikat::ir {
namespace {

/// Two walks, because a value may be used in the order of blocks before it is defined: the first makes instructions and
/// results, the second fills in operands. `to` and `from` may be one function.
class Cloning {
public:
    Cloning(Function& to, const Function& from, Copy copy) : to_(to), from_(from), copy_(std::move(copy)) {}

    /// `made` is called for each copied instruction, to change what else differs; `stands_for` as above.
    Copy run(std::span<const Block> region, auto&& stands_for, auto&& made) {
        for (Block block : region) {
            const Block copy = copy_.blocks[index(block)] = to_.add_block();
            for (Value parameter : from_[block].parameters)
                copy_.values[index(parameter)] = to_.add_parameter(copy, from_.type(parameter));
            for (Inst inst : from_[block].instructions) {
                const Value other = stands_for(inst);
                if (other == no_value)
                    made(append(inst, copy));
                else
                    copy_.values[index(from_.result(inst))] = other;
            }
        }
        for (const auto& [old, copy] : copies_) connect(old, copy);
        for (Block block : region) end(block);
        return std::move(copy_);
    }

private:
    Instruction& append(Inst inst, Block block) {
        const Instruction copy = from_[inst];
        std::vector<Type> types;
        for (Value result : from_.results(inst)) types.push_back(from_.type(result));
        const Inst made = to_.append(block, copy, std::vector<Value>(copy.operands.count, no_value), types);
        for (std::size_t i = 0; i < types.size(); ++i)
            copy_.values[index(from_.results(inst)[i])] = std::as_const(to_).results(made)[i];
        copies_.emplace_back(inst, made);
        return to_[made];
    }
    void connect(Inst old, Inst made) {
        std::ranges::copy(from_.operands(old), to_.operands(made).begin());
        to_.each_use(made, [&](Value& value) { value = copy_(value); });
    }
    void end(Block block) {
        Terminator& terminator = to_[copy_(block)].terminator;
        terminator = from_[block].terminator;
        for (Jump& jump : terminator.targets) jump.to = copy_(jump.to);
        Function::each_use(terminator, [&](Value& value) { value = copy_(value); });
    }

    Function& to_;
    const Function& from_;
    Copy copy_;
    std::vector<std::pair<Inst, Inst>> copies_;
};

}  // namespace

Jump Copy::operator()(Jump jump) const {
    jump.to = (*this)(jump.to);
    for (Value& argument : jump.arguments) argument = (*this)(argument);
    return jump;
}

Block clone_blocks(Function& to, const Function& from, std::uint32_t first_symbol,
                   const std::function<Value(Inst)>& stands_for) {
    const Block first{std::uint32_t(to.block_count())};
    const auto blocks = from.blocks();
    const auto move_attribute = [&](Instruction& copy) {
        const Attribute attribute = info(copy.op).attribute;
        if (attribute == Attribute::Text || attribute == Attribute::Callee)
            copy.attribute = to.add_text(from.texts[copy.attribute]);
        if (attribute == Attribute::Symbol) copy.attribute = copy.attribute + first_symbol;
    };
    Copy none{std::vector(from.block_count(), no_id<Block>), std::vector(from.value_count(), no_value)};
    Cloning(to, from, std::move(none))
        .run(std::vector<Block>(blocks.begin(), blocks.end()), stands_for, move_attribute);
    return first;
}

Copy clone_region(Function& fn, std::span<const Block> region) {
    Copy itself{std::vector<Block>(fn.block_count()), std::vector<Value>(fn.value_count())};
    for (std::uint32_t i = 0; i < itself.blocks.size(); ++i) itself.blocks[i] = Block{i};
    for (std::uint32_t i = 0; i < itself.values.size(); ++i) itself.values[i] = Value{i};
    return Cloning(fn, fn, std::move(itself))
        .run(
            region, [](Inst) { return no_value; }, [](Instruction&) {});
}

}  // namespace ikat::ir
