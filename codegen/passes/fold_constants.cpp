// SPDX-License-Identifier: Apache-2.0
// Constants through the whole graph (sparse conditional constant propagation, Wegman and Zadeck).
//
//     ^0:                                   ^0:
//       %0 = const.u32 4                      %0 = const.u32 4
//       jump ^1(%0)                           jump ^1(%0)
//     ^1(%1: u32):                          ^1(%1: u32):
//       %2 = const.u32 2             ==>      %6 = const.u32 4           (stands for %1)
//       %3 = mul.u32 %1, %2                   %3 = const.u32 8
//       %4 = lt.u32 %3, %2                    %4 = const.pred false
//       branch %4, ^2, ^3                     branch %4, ^2, ^3
//     ^2:                                   ^2:
//       jump ^1(%3)                           jump ^1(%3)
//
// Every value is assumed to be constant and every edge dead until shown otherwise, so constants that a loop only passes
// on are found, too. Only operations whose device result is known bit for bit are folded (ir::folds).
//
// Needs: nothing. Keeps: the control flow. Leaves branches on constants and unused parameters: run
// clean_up_control_flow and dead_code after.
#include "codegen/ir/edit/replacement.hpp"
#include "codegen/ir/edit/uses.hpp"
#include "codegen/passes/fold.hpp"
#include "codegen/passes/passes.hpp"

namespace ikat::passes {
namespace {

using namespace ir;

class Propagation {
public:
    explicit Propagation(Function& fn)
        : fn_(fn), uses_(fn), state_(fn.value_count()), reached_(fn.block_count()), is_left_(fn.block_count()) {}

    void run() {
        reach(fn_.entry());
        while (!blocks_.empty() || !left_.empty() || !values_.empty()) {
            if (!values_.empty()) {
                const Value value = values_.back();
                values_.pop_back();
                for (const Use& use : uses_.of(value)) visit(use);
            } else if (!left_.empty()) {
                const Block block = left_.back();
                left_.pop_back();
                is_left_[index(block)] = false;
                leave(block);
            } else {
                const Block block = blocks_.back();
                blocks_.pop_back();
                for (Inst inst : fn_[block].instructions) evaluate(inst);
                leave(block);
            }
        }
    }

    bool rewrite() {
        bool changed = false;
        Replacement replacement;
        for (Block block : fn_.blocks()) {
            if (!reached_[index(block)]) continue;
            std::vector<Inst> constants;
            const auto replace = [&](Value value) {
                const auto bits = known(value);
                if (!bits || uses_.of(value).empty()) return;
                const Type type = fn_.type(value);
                constants.push_back(fn_.create({.op = Op::Const, .type = type, .attribute = *bits}, {}, {&type, 1}));
                replacement.replace(value, fn_.result(constants.back()));
            };
            for (Value parameter : fn_[block].parameters) replace(parameter);
            for (Inst inst : fn_[block].instructions) {
                if (fn_[inst].op == Op::Const) continue;
                if (fn_[inst].results.count != 1)
                    for (std::uint32_t i = 0; i < fn_[inst].results.count; ++i)
                        replace(std::as_const(fn_).results(inst)[i]);
                else if (const auto bits = known(fn_.result(inst)))
                    make_constant(fn_, inst, *bits), changed = true;
            }
            changed |= !constants.empty();
            std::vector<Inst>& list = fn_[block].instructions;
            list.insert(list.begin(), constants.begin(), constants.end());
        }
        replacement.apply(fn_);
        return changed;
    }

private:
    struct State {
        enum Kind : std::uint8_t { Unseen, Constant, Varying } kind = Unseen;
        Word bits = 0;
        bool operator==(const State&) const = default;
    };
    std::optional<Word> known(Value value) const {
        const State& state = state_[index(value)];
        return state.kind == State::Constant ? std::optional(state.bits) : std::nullopt;
    }

    void reach(Block block) {
        if (reached_[index(block)]) return;
        reached_[index(block)] = true;
        blocks_.push_back(block);
    }
    void visit(const Use& use) {
        if (!reached_[index(use.block)]) return;
        if (use.inst != no_inst) return evaluate(use.inst);
        if (is_left_[index(use.block)]) return;
        is_left_[index(use.block)] = true;
        left_.push_back(use.block);
    }

    /// Values only ever go from unseen to constant to varying.
    void meet(Value value, State with) {
        State& state = state_[index(value)];
        if (with.kind == State::Unseen || state.kind == State::Varying || state == with) return;
        state = state.kind == State::Unseen ? with : State{State::Varying};
        values_.push_back(value);
    }

    void evaluate(Inst inst) {
        const Instruction& instruction = fn_[inst];
        if (instruction.op == Op::Const) return meet(fn_.result(inst), {State::Constant, instruction.attribute});
        if (!is_pure(fn_, inst) || instruction.operands.count == 0) {
            for (Value result : fn_.results(inst)) {
                if (state_[index(result)].kind == State::Varying) return;  // all of them, from an earlier visit
                meet(result, {State::Varying});
            }
            return;
        }
        for (Value operand : fn_.operands(inst))
            if (state_[index(operand)].kind == State::Unseen) return;
        const auto operand_bits = [&](Value operand) { return known(operand); };
        for (std::uint32_t i = 0; i < instruction.results.count; ++i) {
            const auto bits = fold(fn_, inst, operand_bits, i);
            meet(std::as_const(fn_).results(inst)[i], bits ? State{State::Constant, *bits} : State{State::Varying});
        }
    }

    /// Follows the edges that the block's terminator may take.
    void leave(Block block) {
        const Terminator& terminator = fn_[block].terminator;
        if (terminator.condition == no_value || state_[index(terminator.condition)].kind == State::Varying) {
            for (const Jump& jump : terminator.targets) follow(jump);
        } else if (const auto bits = known(terminator.condition)) {
            const std::size_t last = terminator.targets.size() - 1;
            const bool branch = terminator.kind == Terminator::Kind::Branch;
            follow(terminator.targets[branch ? (*bits ? 0 : 1) : std::min<std::size_t>(*bits, last)]);
        }
    }
    void follow(const Jump& jump) {
        reach(jump.to);
        for (std::size_t i = 0; i < jump.arguments.size(); ++i)
            meet(fn_[jump.to].parameters[i], state_[index(jump.arguments[i])]);
    }

    Function& fn_;
    const Uses uses_;
    std::vector<State> state_;   // by value
    std::vector<bool> reached_;  // by block
    std::vector<bool> is_left_;  // by block: in the second of these lists
    std::vector<Value> values_;  // whose users are to be visited
    std::vector<Block> left_;    // whose edges are to be followed again, once for all that their jumps pass on
    std::vector<Block> blocks_;  // to be visited
};

}  // namespace

Changed fold_constants(Function& fn, Context&) {
    Propagation propagation(fn);
    propagation.run();
    return analysis::instructions_if(propagation.rewrite());
}

}  // namespace ikat::passes
