// SPDX-License-Identifier: Apache-2.0
// The messages about warps that cannot continue, or do not end.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "runtime/emulator/core/checks/wording.hpp"
#include "runtime/emulator/machine/messages.hpp"

namespace ikat::emulator {

namespace {

std::string place_text(const ThreadBlock& block, const Warp& warp, std::uint32_t pc) {
    const ptx::Instruction* const instruction = instruction_at(warp, pc);
    if (!instruction) return "the end of the kernel";
    return fmt::format("line {}: {}", instruction->where.line, text_of(block.launch_state().module, *instruction));
}

/// What a warp waits for that has asked in vain.
std::string polled_by(const ThreadBlock& block, const Warp& warp) {
    for (const auto& agent : block.agents())
        if (std::string text = agent->polled_by(warp); !text.empty()) return text;
    return "asks again and again";
}

std::string waits_for(const ThreadBlock& block, const ScheduledWarp& warp, const Split& split,
                      std::string_view ready = "can run") {
    const MicroOp& op = warp.code[split.pc];
    switch (split.wait) {
        case Split::Wait::None: return split.polls ? polled_by(block, warp) : std::string(ready);
        case Split::Wait::Members: {
            std::uint32_t members = 0;
            const auto* const named = reinterpret_cast<const std::uint32_t*>(warp.frame() + op.x);
            for (std::uint32_t rest = split.mask; rest; rest &= rest - 1) members |= named[std::countr_zero(rest)];
            return "wait for " + lane_list(members & warp.live & ~split.mask);
        }
        case Split::Wait::Barrier: break;
    }
    const std::uint32_t others = warp.live & ~split.mask;
    if (const auto id = block.barrier_of(warp)) {
        if (*id == ThreadBlock::cluster_barrier) return "wait at the cluster's barrier";
        if (*id >= ThreadBlock::agent_barrier) return block.agent(*id - ThreadBlock::agent_barrier).awaited_by(warp);
        const auto [arrived, expected] = block.barrier_threads(*id);
        return fmt::format("wait at barrier {}, which {} of {} threads have reached", *id, arrived, expected);
    }
    return others ? "wait at a barrier for " + lane_list(others) : "wait at a barrier";
}

/// Where the lanes of warps are, and what they wait for; what is the same of several warps is one note.
void note_splits(Diagnostic& diagnostic, const ThreadBlock& block, std::span<const ScheduledWarp* const> warps,
                 std::string_view ready = "can run") {
    struct Same {
        Location where;
        std::string text;
        std::uint32_t warps = 0;  // as a set
    };
    std::vector<Same> all;
    for (const ScheduledWarp* const warp : warps)
        for (const Split& split : warp->splits()) {
            const ptx::Instruction* const instruction = instruction_at(*warp, split.pc);
            std::string text = fmt::format("{} {} ({})", lane_list(split.mask), waits_for(block, *warp, split, ready),
                                           place_text(block, *warp, split.pc));
            auto found = std::ranges::find(all, text, &Same::text);
            if (found == all.end())
                found = all.insert(
                    found, {instruction ? location(block.launch_state(), *instruction) : Location{}, std::move(text)});
            found->warps |= 1u << warp->index;
        }
    for (const Same& each : all)
        diagnostic.notes.push_back({each.where, fmt::format("{} {}", number_list("warp", each.warps), each.text)});
}

void note_splits(Diagnostic& diagnostic, const ThreadBlock& block, const ScheduledWarp& warp,
                 std::string_view ready = "can run") {
    const ScheduledWarp* const one[] = {&warp};
    note_splits(diagnostic, block, one, ready);
}

/// The warps of a block that have not ended.
std::vector<const ScheduledWarp*> running_warps(const ThreadBlock& block) {
    std::vector<const ScheduledWarp*> all;
    for (const ScheduledWarp& warp : block.warps())
        if (!block.has_ended(warp)) all.push_back(&warp);
    return all;
}

}  // namespace

Error stuck_error(const ThreadBlock& block, const ScheduledWarp& warp) {
    const auto at_barrier = [](const Split& split) { return split.wait == Split::Wait::Barrier; };
    const auto found = std::find_if(warp.splits().begin(), warp.splits().end(), at_barrier);
    const bool barrier = found != warp.splits().end();
    const Split& split = barrier ? *found : warp.splits().front();
    Diagnostic diagnostic = diagnostic_of(barrier ? FaultCode::DivergentBarrier : FaultCode::DivergentWarp);
    place(diagnostic, block, warp, split.pc);
    diagnostic.message = fmt::format("{} in divergent code: {} of warp {} in block {} {}, by {}",
                                     barrier ? "barrier" : "warp-wide instruction", lane_list(split.mask), warp.index,
                                     tuple(block.coordinates()), waits_for(block, warp, split),
                                     who(block, warp, unsigned(std::countr_zero(split.mask))));
    note_splits(diagnostic, block, warp);
    return Error(std::move(diagnostic));
}

Error deadlock_error(const ThreadBlock& block) {
    FaultCode code = FaultCode::Deadlock;
    for (std::size_t slot = 0; slot < block.agents().size() && code == FaultCode::Deadlock; ++slot)
        for (const ScheduledWarp& warp : block.warps())
            if (block.barrier_of(warp) == ThreadBlock::agent_barrier + slot) code = block.agent(slot).deadlock();
    Diagnostic diagnostic = diagnostic_of(code);
    std::uint32_t exited = 0;
    const ScheduledWarp* first = nullptr;
    for (const ScheduledWarp& warp : block.warps())
        if (block.has_ended(warp))
            exited += std::uint32_t(std::popcount(warp.existing));
        else if (!first)
            first = &warp;
    place(diagnostic, block, *first, first->splits().front().pc);
    diagnostic.message = fmt::format("deadlock in block {}: no warp can continue{}", tuple(block.coordinates()),
                                     exited ? fmt::format("; {} have exited", plural(exited, "thread")) : "");
    if (exited && code == FaultCode::Deadlock)
        diagnostic.hint = "threads that return early never reach the barrier: guard the work, not the barrier";
    note_splits(diagnostic, block, running_warps(block));
    return Error(std::move(diagnostic));
}

Error budget_error(const ThreadBlock& block, const ScheduledWarp& warp) {
    Diagnostic diagnostic = diagnostic_of(FaultCode::StepBudget);
    const Split& split = warp.splits().front();
    place(diagnostic, block, warp, split.pc);
    note_splits(diagnostic, block, warp);
    diagnostic.message =
        fmt::format("warp {} has executed {} instructions since it began or passed its last barrier, in {}", warp.index,
                    warp.spent(), who(block, warp, unsigned(std::countr_zero(split.mask))));
    return Error(std::move(diagnostic));
}

Error budget_error(const ThreadBlock& block) {
    Diagnostic diagnostic = diagnostic_of(FaultCode::LaunchBudget);
    diagnostic.message = fmt::format("the launch has not ended after {} warp instructions; block {} was running",
                                     block.launch_state().options.launch_budget, tuple(block.coordinates()));
    return Error(std::move(diagnostic));
}

Error endless_error(const ThreadBlock& block, const ScheduledWarp& warp) {
    Diagnostic diagnostic = diagnostic_of(FaultCode::EndlessLoop);
    const Split& split = warp.splits().front();
    place(diagnostic, block, warp, split.pc);
    note_splits(diagnostic, block, warp, "go round");
    diagnostic.message += fmt::format(", in {}", who(block, warp, unsigned(std::countr_zero(split.mask))));
    return Error(std::move(diagnostic));
}

Error waiting_error(const ThreadBlock& block) {
    Diagnostic diagnostic = diagnostic_of(FaultCode::EndlessWait);
    const ScheduledWarp* first = nullptr;
    bool reads = false;
    for (const ScheduledWarp& warp : block.warps()) {
        if (block.has_ended(warp)) continue;
        const bool is_free = !block.barrier_of(warp);
        if (!first && is_free) first = &warp;
        reads |= is_free && !warp.only_polls();
    }
    note_splits(diagnostic, block, running_warps(block), "read the same memory again and again");
    const ScheduledWarp& shown = first ? *first : block.warps().front();
    place(diagnostic, block, shown, shown.splits().front().pc);
    if (!reads) {
        diagnostic.code = info(FaultCode::Deadlock).name;
        diagnostic.message = fmt::format("deadlock in block {}: no warp can continue; warp {} {}",
                                         tuple(block.coordinates()), shown.index, polled_by(block, shown));
        diagnostic.hint =
            "a phase ends with as many arrivals as `mbarrier.init` says and as many bytes as are expected; "
            "is the parity that is asked for the phase's?";
        return Error(std::move(diagnostic));
    }
    diagnostic.message = fmt::format("block {} waits for memory to change, and no thread is left that could change it",
                                     tuple(block.coordinates()));
    return Error(std::move(diagnostic));
}

}  // namespace ikat::emulator
