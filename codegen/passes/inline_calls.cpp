// SPDX-License-Identifier: Apache-2.0
// Inlining of calls.
//
//     function @twice(%x: f32) -> f32 {
//     ^0:
//       %0 = param.f32 %x
//       %1 = add.f32 %0, %0
//       return %1
//     }
//     ^0:                                   ^0:
//       %1: f32 = call @twice, %0              jump ^1
//       store.f32 global [%2], %1     ==>    ^1:
//       return                                 %5 = add.f32 %0, %0
//                                              jump ^2(%5)
//                                            ^2(%6: f32):
//                                              store.f32 global [%2], %6
//                                              return
//
// Local arrays are copied, too. Only functions without calls are inlined, and callees come before their callers; so a
// recursive function stays a function, and so do functions that call it.
//
// Needs: the module's functions. Keeps: what each function does. Leaves: blocks that only jump on, for
// clean_up_control_flow, and uncalled functions.
#include <algorithm>

#include "codegen/ir/edit/clone.hpp"
#include "codegen/ir/edit/replacement.hpp"
#include "codegen/ir/edit/split.hpp"
#include "codegen/passes/passes.hpp"

namespace ikat::passes {
namespace {

using namespace ir;

bool is_call(const Function& fn, Inst inst) { return fn[inst].op == Op::Call || fn[inst].op == Op::PureCall; }

bool calls_nothing(const Function& fn) {
    return std::ranges::all_of(fn.blocks(), [&](Block block) {
        return std::ranges::none_of(fn[block].instructions, [&](Inst inst) { return is_call(fn, inst); });
    });
}

class Inlining {
public:
    Inlining(Function& fn, std::span<const Function> module) : fn_(fn), module_(module) {}

    Changed run(Context& context) {
        for (std::size_t block = 0; block < fn_.block_count(); ++block) visit(Block(block));
        if (!changed_) return Changed::Nothing;
        replacement_.apply(fn_);
        context.changed(Changed::ControlFlow);
        const auto order = context.dominators().reverse_postorder();
        fn_.order_blocks(std::vector<Block>(order.begin(), order.end()));
        return Changed::ControlFlow;
    }

private:
    /// Handles a block up to its first inlined call: the rest becomes a new block, which is visited later.
    void visit(Block block) {
        const auto& list = fn_[block].instructions;
        for (std::size_t place = 0; place < list.size(); ++place) {
            const Inst inst = list[place];
            if (!is_call(fn_, inst)) continue;
            const auto callee = std::ranges::find(module_, fn_.texts[fn_[inst].attribute], &Function::name);
            if (callee == module_.end() || !calls_nothing(*callee)) continue;
            return inline_call(block, place, *callee);
        }
    }

    void inline_call(Block block, std::size_t place, const Function& callee) {
        changed_ = true;
        const Inst call = fn_[block].instructions[place];
        const std::vector<Value> operands(fn_.operands(call).begin(), fn_.operands(call).end());
        const Block after = split_block(fn_, block, place + 1);
        fn_[block].instructions.pop_back();
        if (!fn_.results(call).empty()) replacement_.replace(fn_.result(call), fn_.add_parameter(after, callee.gives));
        const std::uint32_t first_symbol = add_symbols(callee);
        const auto argument = [&](Inst inst) {
            return callee[inst].op == Op::Param ? operands[callee[inst].attribute] : no_value;
        };
        const Block first = clone_blocks(fn_, callee, first_symbol, argument);
        fn_[block].terminator = {.kind = Terminator::Kind::Jump, .targets = {{first}}, .where = fn_[call].where};
        for (auto made = index(first); made < fn_.block_count(); ++made) {
            Terminator& end = fn_[Block(made)].terminator;
            if (end.kind != Terminator::Kind::Return) continue;
            Jump jump{after};
            if (!fn_[after].parameters.empty()) jump.arguments.push_back(end.given);
            end = {.kind = Terminator::Kind::Jump, .targets = {std::move(jump)}, .where = end.where};
        }
    }

    /// Adds the callee's symbols under new names.
    std::uint32_t add_symbols(const Function& callee) {
        const auto first = std::uint32_t(fn_.symbols.size());
        for (Symbol symbol : callee.symbols) {
            while (std::ranges::find(fn_.symbols, symbol.name, &Symbol::name) != fn_.symbols.end()) symbol.name += '_';
            fn_.symbols.push_back(std::move(symbol));
        }
        return first;
    }

    Function& fn_;
    std::span<const Function> module_;
    Replacement replacement_;
    bool changed_ = false;
};

}  // namespace

Changed inline_calls(Function& fn, Context& context) { return Inlining(fn, context.module()).run(context); }

}  // namespace ikat::passes
