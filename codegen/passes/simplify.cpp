// SPDX-License-Identifier: Apache-2.0
// Algebra on single instructions, by the rules of simplify_rules.hpp and conversions.cpp.
//
//     %2 = const.u32 0
//     %3 = add.u32 %2, %1                %3 = add.u32 %1, %2      (unused)
//     %4 = mul.u32 %3, %0       ==>      %4 = mul.u32 %1, %0
//     %5 = not.pred %6
//     branch %5, ^1, ^2                  branch %6, ^2, ^1
// One walk in reverse postorder: operands that have been replaced are renamed, constants go to the right, then the
// instruction is folded or replaced by the first rule that matches; what the rule makes is simplified in turn.
//
// Needs: nothing. Keeps: blocks and edges; the targets of a branch may be swapped. Leaves unused operands of what it
// replaced: run dead_code after.
#include "codegen/ir/edit/rewriter.hpp"
#include "codegen/passes/conversions.hpp"
#include "codegen/passes/fold.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/passes/simplify_rules.hpp"

namespace ikat::passes {
namespace {

using namespace ir;

constexpr auto rewrites = rules::table<rules::sums, rules::products, rules::quotients, rules::bit_operations,
                                       rules::shifts, rules::comparisons, rules::choices>();

class Simplifier {
public:
    explicit Simplifier(Function& fn) : fn_(fn), walk_(fn) {}

    Changed run(const analysis::Dominators& dominators) {
        walk_.run(dominators.reverse_postorder(), [this](Inst inst) { visit(inst); });
        bool turned = false;
        for (Block block : dominators.reverse_postorder()) turned |= turn(fn_[block].terminator);
        return analysis::instructions_if(changed_) | analysis::control_flow_if(turned);
    }

private:
    void visit(Inst inst) {
        if (const auto sum = without_carry(inst)) return replace_step(inst, *sum);
        if (!is_plain(fn_, inst) || fn_[inst].operands.count == 0) return walk_.keep(inst);
        if (const auto bits = fold(fn_, inst)) {
            make_constant(fn_, inst, *bits);
            changed_ = true;
            return walk_.keep(inst);
        }
        constants_to_the_right(inst);
        std::vector<Inst> made;
        const std::optional<Value> found = rewritten(inst, made);
        if (!found) return walk_.keep(inst);
        changed_ = true;
        for (Inst part : made) {
            walk_.rename(part);
            visit(part);
        }
        walk_.replace(fn_.result(inst), *found);
    }

    /// The result of a step of a long sum that adds zero without a carry in: it does not carry.
    std::optional<Value> without_carry(Inst inst) {
        const Op op = fn_[inst].op;
        if ((op != Op::AddCarry && op != Op::SubBorrow) || !is_pure(fn_, inst)) return {};
        constants_to_the_right(inst);
        const auto operands = fn_.operands(inst);
        const auto is_zero = [&](Value value) { return constant(fn_, value) == Word{0}; };
        return is_zero(operands[1]) && is_zero(operands[2]) ? std::optional(operands[0]) : std::nullopt;
    }
    void replace_step(Inst inst, Value sum) {
        const Value none = walk_.constant(Type::Pred, 0, fn_[inst].where);
        const auto results = std::as_const(fn_).results(inst);
        walk_.replace(results[0], sum), walk_.replace(results[1], none);
        changed_ = true;
    }

    /// The value that replaces the result, by the first rule that matches.
    std::optional<Value> rewritten(Inst inst, std::vector<Inst>& made) {
        const Op op = fn_[inst].op;
        if (op == Op::Convert || op == Op::Bitcast) return simplify_conversion(fn_, inst, made);
        return rewrites.rewrite(fn_, inst, made);
    }

    void constants_to_the_right(Inst inst) {
        if (!has(fn_[inst].op, Commutes)) return;
        const auto operands = fn_.operands(inst);
        if (constant(fn_, operands[0]) && !constant(fn_, operands[1])) {
            std::swap(operands[0], operands[1]);
            changed_ = true;
        }
    }

    /// Replaces a branch on a negation by a branch with swapped targets.
    bool turn(Terminator& terminator) {
        if (terminator.kind != Terminator::Kind::Branch) return false;
        const Inst inst = fn_[terminator.condition].instruction;
        if (inst == no_inst || fn_[inst].op != Op::Not || !is_plain(fn_, inst)) return false;
        terminator.condition = fn_.operands(inst)[0];
        std::swap(terminator.targets[0], terminator.targets[1]);
        return true;
    }

    Function& fn_;
    Rewriter walk_;
    bool changed_ = false;
};

}  // namespace

Changed simplify(Function& fn, Context& context) { return Simplifier(fn).run(context.dominators()); }

}  // namespace ikat::passes
