// SPDX-License-Identifier: Apache-2.0
// What a block does about a finding: it ends the launch, or is noted for its end.
#include <algorithm>
#include <tuple>

#include "runtime/emulator/core/checks/suppressions.hpp"
#include "runtime/emulator/machine/block.hpp"
#include "runtime/emulator/machine/messages.hpp"

namespace ikat::emulator {

namespace {

void note(ThreadBlock& block, Diagnostic diagnostic, Action action) {
    diagnostic.severity = severity_of(action);
    block.launch_state().findings.add(block.place(), std::move(diagnostic));
}

/// An undefined value that no load has given is that of a register.
Action action_of(const Checks& checks, FaultCode code, const Warp& w) {
    const Check check = check_of(code);
    const bool is_register = check == Check::Undefined && code >= FaultCode::UndefinedAddress &&
                             (!w.definedness || w.definedness->unwritten.op == ~0u);
    return checks.of(is_register && checks.of(Check::Registers) != Action::Off ? Check::Registers : check);
}

bool is_suppressed(const Options& options, Action action, FaultCode code, const Location& where) {
    return options.suppressions && action != Action::Off && options.suppressions->has(check_of(code), where);
}

}  // namespace

void ThreadBlock::report(const Error& error) {
    const Diagnostic& diagnostic = error.diagnostics().front();
    const auto row = std::ranges::find(fault_rows, std::string_view(diagnostic.code), &FaultInfo::name);
    IKAT_ASSERT(row != std::end(fault_rows), diagnostic.code);
    const auto code = FaultCode(row - fault_rows);
    Action action = state_.options.checks.of(code);
    if (is_suppressed(state_.options, action, code, diagnostic.where)) action = Action::Off;
    if (action == Action::Error) throw error;
    if (action != Action::Off) note(*this, diagnostic, action);
    forget_finding();
}

void ThreadBlock::forget_finding() {
    for (const auto& each : agents_) each->forget_finding();
    each_tool([](BlockTool& tool) { tool.forget_finding(); });
}

bool ThreadBlock::passes(Warp& w, const MicroOp* op, const Fault& fault) {
    Fault refined = fault;
    refined.code = refined_code(fault, *this);
    Action action = action_of(state_.options.checks, refined.code, w);
    const ptx::Instruction* const instruction = w.kernel->instructions[w.index_of(op)];
    const Location where = instruction ? location(state_, *instruction) : Location{};
    const std::uint32_t line = where.line;
    if (is_suppressed(state_.options, action, refined.code, where)) action = Action::Off;
    if (action == Action::Error) return fail(&w, op, refined) != nullptr;
    if (action != Action::Off && !state_.findings.has(info(refined.code).name, line, place_)) {
        const auto before = std::tuple(w.leave, w.pc);
        fail(&w, op, refined);
        note(*this, fault_error(*this, warps_[w.index]).diagnostics().front(), action);
        std::tie(w.leave, w.pc) = before;
    }
    forget_finding();
    return true;
}

bool ThreadBlock::is_stopped_by_agent(Warp& w, const MicroOp* op, const Fault& access) {
    const auto code = claim_of_agents(access, *this, access.store);
    if (!code) return false;
    Fault fault = access;
    fault.code = *code;
    return !passes(w, op, fault);
}

}  // namespace ikat::emulator
