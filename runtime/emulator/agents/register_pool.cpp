// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/agents/register_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "runtime/emulator/agents/agents.hpp"
#include "runtime/emulator/machine/messages.hpp"
#include "runtime/emulator/ops/matrix/warpgroup.hpp"

namespace ikat::emulator {

void RegisterPool::start() {
    const std::size_t warps = block_.warps().size();
    const std::uint32_t registers = block_.launch_state().kernel.registers;
    free_ = 0;
    warps_.assign(warps, {.owns = registers});
    changes_.assign((warps + warps_of_group - 1) / warps_of_group, {});
}

/// All warps of a warpgroup execute the same ones, and come to each before any of them comes to the next.
bool RegisterPool::agrees(const MicroOp* op, Warp* w, const ptx::Instruction* instruction) {
    const auto find = [&](FaultCode code, std::string what) {
        block_.finding = std::move(what);
        fail(w, op, {.code = code});
        return false;
    };
    const unsigned first = w->index / warps_of_group * warps_of_group;
    auto& changes = changes_[w->index / warps_of_group];
    const std::size_t number = warps_[w->index].changes;
    if (first + warps_of_group > warps_.size())
        return find(FaultCode::PartialWarpgroup,
                    fmt::format("`setmaxnreg` in a warpgroup of {} warps", warps_.size() - first));
    for (unsigned i = first; i < first + warps_of_group; ++i) {
        if (warps_[i].changes <= number && block_.has_ended(block_.warps()[i]))
            return find(FaultCode::PartialWarpgroup,
                        fmt::format("`setmaxnreg` in a warpgroup of which warp {} has exited", i));
        if (warps_[i].changes < number)
            return find(
                FaultCode::RegistersNotMet,
                fmt::format("a second `setmaxnreg`, of warp {}, when warp {} has not executed the first", w->index, i));
    }
    if (number == changes.size()) changes.push_back(instruction);
    if (changes[number] == instruction) return true;
    return find(FaultCode::DivergentWarpgroup,
                fmt::format("warp {} comes to another `setmaxnreg` than the others of its warpgroup", w->index));
}

RegisterPool::Change RegisterPool::change(const MicroOp* op, Warp* w) {
    OfWarp& mine = warps_[w->index];
    const bool is_more = op->d != 0;
    if (mine.wants == 0) {
        if (!agrees(op, w, w->kernel->instructions[w->index_of(op)])) return Change::Finding;
        if (is_more ? op->y < mine.owns : op->y > mine.owns) {
            block_.finding = fmt::format("{} to {} registers of a thread that has {}",
                                         is_more ? "`setmaxnreg.inc`" : "`setmaxnreg.dec`", op->y, mine.owns);
            fail(w, op, {.code = FaultCode::RegisterCount});
            return Change::Finding;
        }
        mine.wants = op->y;
    }
    if (!is_met(*w)) return Change::Waits;
    free_ = free_ + mine.owns - mine.wants;
    mine.owns = std::exchange(mine.wants, 0);
    ++mine.changes;
    return Change::Done;
}

std::string RegisterPool::awaited_by(const Warp& warp) const {
    const OfWarp& its = warps_[warp.index];
    return fmt::format("wait for {} more registers, of which {} are free", its.wants - its.owns, free_);
}

void RegisterPool::end_warp(const Warp& warp) {
    const auto& changes = changes_[warp.index / warps_of_group];
    const std::size_t number = warps_[warp.index].changes;
    if (number < changes.size())
        throw product_error(
            block_, warp, FaultCode::PartialWarpgroup,
            fmt::format("warp {} has exited and does not come to a `setmaxnreg` of its warpgroup", warp.index),
            changes[number]);
}

namespace {

/// False if the warp leaves.
[[gnu::noinline]] bool change(const MicroOp* op, Warp* w, std::uint32_t mask) {
    if (mask != all_lanes && !(w->live & ~mask)) return whole_warp(op, w, mask);
    if (mask == all_lanes) {
        const auto changed = agent<RegisterPool>(w).change(op, w);
        if (changed == RegisterPool::Change::Finding) return false;
        if (changed == RegisterPool::Change::Done) return block_of(w).wake_for(std::size_t(RegisterPool::slot)), true;
    }
    w->leave = Leave::Barrier;
    w->pc = w->index_of(op);
    w->mask = mask;
    return false;
}

}  // namespace

const MicroOp* change_registers(const MicroOp* op, Warp* w, [[maybe_unused]] std::byte* frame, std::uint32_t mask) {
    if (!change(op, w, mask)) return nullptr;
    IKAT_NEXT;
}

const MicroOp* ignore_registers(const MicroOp* op, Warp* w, [[maybe_unused]] std::byte* frame, std::uint32_t mask) {
    if (!passes(w, op, {.code = FaultCode::UnknownRegisters, .lane = unsigned(std::countr_zero(mask))})) return nullptr;
    IKAT_NEXT;
}

}  // namespace ikat::emulator
