// SPDX-License-Identifier: Apache-2.0
#include "codegen/ir/verify_calls.hpp"

#include <algorithm>

#include "codegen/ir/cfg.hpp"
#include "codegen/ir/text/print.hpp"
#include "codegen/support/dominator_tree.hpp"

namespace ikat::ir {
namespace {

class CallCheck {
public:
    CallCheck(std::span<const Function> functions, Level level) : functions_(functions), level_(level) {}

    std::vector<Diagnostic> run() {
        for (const Function& fn : functions_) {
            if (&named(fn.name)[0] != &fn)
                findings_.push_back({.message = "two functions are called @" + fn.name, .hint = {}});
            for (Block block : fn.blocks())
                for (Inst inst : fn[block].instructions)
                    if (fn[inst].op == Op::Call || fn[inst].op == Op::PureCall) call(fn, inst);
        }
        return std::move(findings_);
    }

private:
    /// The functions of that name.
    std::span<const Function> named(std::string_view name) const {
        const auto found = std::ranges::find(functions_, name, &Function::name);
        return functions_.subspan(std::size_t(found - functions_.begin())).first(found != functions_.end());
    }

    void call(const Function& fn, Inst inst) {
        const std::string& name = fn.texts[fn[inst].attribute];
        const auto complain = [&](const std::string& what) {
            findings_.push_back(
                {.where = fn[inst].where, .message = "@" + fn.name + ": " + what, .excerpt = "    " + print(fn, inst)});
        };
        const auto found = named(name);
        if (found.empty()) return complain("there is no function @" + name);
        const Function& callee = found[0];
        if (callee.is_entry) return complain("@" + name + " is a kernel, which cannot be called");
        if (&callee > &fn) return complain("@" + name + " must come before the functions that call it");
        const auto operands = fn.operands(inst);
        if (operands.size() != callee.parameters.size())
            return complain("@" + name + " takes " + std::to_string(callee.parameters.size()) + " operands, not " +
                            std::to_string(operands.size()));
        for (std::size_t i = 0; i < operands.size(); ++i)
            if (const Parameter& parameter = callee.parameters[i]; !agree(parameter.type, fn.type(operands[i]), level_))
                complain("operand " + print(fn, operands[i]) + " must be " + std::string(info(parameter.type).name));
        const auto results = fn.results(inst);
        if (results.size() > 1 || (!results.empty() && callee.gives == Type::Void))
            return complain(
                "@" + name + " gives " +
                (callee.gives == Type::Void ? "nothing" : "one value, not " + std::to_string(results.size())));
        if (!results.empty() && !agree(callee.gives, fn.type(results[0]), level_))
            complain(print(fn, results[0]) + " is " + std::string(info(fn.type(results[0])).name) + ", and @" + name +
                     " gives " + std::string(info(callee.gives).name));
        if (fn[inst].op == Op::PureCall && !is_pure(callee))
            complain("@" + name + " does more than compute from its operands: use call");
        if (!is_callable(callee))
            complain("@" + name + " prints, checks, or has memory that is not local: only kernels may");
    }

    static bool all_instructions(const Function& fn, auto&& test) {
        return std::ranges::all_of(fn.blocks(), [&](Block block) {
            return std::ranges::all_of(fn[block].instructions, [&](Inst inst) { return test(fn[inst]); });
        });
    }

    /// Whether all threads get the same result from the same operands. Unreachable blocks may trap.
    static bool is_pure(const Function& fn) {
        const DominatorTree reached(control_flow(fn));
        const bool traps = std::ranges::any_of(fn.blocks(), [&](Block block) {
            return fn[block].terminator.kind == Terminator::Kind::Trap && reached.reachable(index(block));
        });
        return !traps && all_instructions(fn, [](const Instruction& inst) {
            return effects(inst).none() && inst.op != Op::Special;
        });
    }

    /// What is declared once per file belongs to the kernel.
    static bool is_callable(const Function& fn) {
        const auto is_local = [](const Symbol& symbol) { return symbol.space == Space::Local; };
        return std::ranges::all_of(fn.symbols, is_local) && all_instructions(fn, [](const Instruction& inst) {
                   return inst.op != Op::Print && inst.op != Op::Check;
               });
    }

    std::span<const Function> functions_;
    Level level_;
    std::vector<Diagnostic> findings_;
};

}  // namespace

std::vector<Diagnostic> call_problems(std::span<const Function> functions, Level level) {
    return CallCheck(functions, level).run();
}

}  // namespace ikat::ir
