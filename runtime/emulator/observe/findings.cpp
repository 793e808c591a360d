// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/observe/findings.hpp"

#include <algorithm>
#include <tuple>

#include "runtime/emulator/machine/block.hpp"
#include "runtime/emulator/observe/messages.hpp"

namespace ikat::emulator {

bool Findings::has(std::string_view code, std::uint32_t line, std::uint64_t block) const {
    const std::lock_guard lock(mutex_);
    const auto found = found_.find({line, code});
    return found != found_.end() && found->second.block <= block;
}

void Findings::add(std::uint64_t block, Diagnostic diagnostic) {
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] = found_.try_emplace({diagnostic.where.line, diagnostic.code}, Found{block, diagnostic});
    if (!is_new && block < at->second.block) at->second = {block, std::move(diagnostic)};
}

void Findings::each(std::uint64_t last, const std::function<void(const Diagnostic&)>& f) const {
    for (const auto& [key, found] : found_)
        if (found.block <= last) f(found.diagnostic);
}

namespace {

void note(ThreadBlock& block, Diagnostic diagnostic, Action action) {
    diagnostic.severity = severity_of(action);
    block.launch_state().findings.add(block.index(), std::move(diagnostic));
}

/// An undefined value that no load has given is that of a register.
Action action_of(const Checks& checks, FaultCode code, const Warp& w) {
    const Check check = check_of(code);
    const bool is_register = check == Check::Undefined && code >= FaultCode::UndefinedAddress && w.unwritten.op == ~0u;
    return checks.of(is_register && checks.of(Check::Registers) != Action::Off ? Check::Registers : check);
}

}  // namespace

void ThreadBlock::report(const Error& error) {
    const Diagnostic& diagnostic = error.diagnostics().front();
    const auto row = std::ranges::find(fault_rows, std::string_view(diagnostic.code), &FaultInfo::name);
    IKAT_ASSERT(row != std::end(fault_rows), diagnostic.code);
    const Action action = state_.options.checks.of(FaultCode(row - fault_rows));
    if (action == Action::Error) throw error;
    if (action != Action::Off) note(*this, diagnostic, action);
    forget_finding();
}

void ThreadBlock::forget_finding() {
    in_flight.found = nullptr;
    products.found = nullptr;
    generic_writes.found = {};
}

bool passes(Warp* w, const MicroOp* op, const Fault& fault) {
    ThreadBlock& block = *w->block;
    Fault refined = fault;
    refined.code = refined_code(fault, block);
    const Action action = action_of(block.launch_state().options.checks, refined.code, *w);
    if (action == Action::Error) return fail(w, op, refined) != nullptr;
    const nvptx::Instruction* const instruction = w->kernel->instructions[w->index_of(op)];
    const std::uint32_t line = instruction ? location(block.launch_state(), *instruction).line : 0;
    if (action != Action::Off && !block.launch_state().findings.has(info(refined.code).name, line, block.index())) {
        const auto before = std::tuple(w->leave, w->pc);
        fail(w, op, refined);
        note(block, fault_error(block, block.warp(w->index)).diagnostics().front(), action);
        std::tie(w->leave, w->pc) = before;
    }
    block.forget_finding();
    return true;
}

}  // namespace ikat::emulator
