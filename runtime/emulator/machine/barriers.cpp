// SPDX-License-Identifier: Apache-2.0
// The barriers of a block, bar.sync and its kin. A barrier counts warps, as the hardware does: a warp arrives when all
// its lanes that have not exited have. A barrier without a number of threads waits for the warps that have not exited,
// as from sm_70 on; one with a number waits for that many.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/emulator/machine/block.hpp"
#include "runtime/emulator/machine/messages.hpp"
#include "runtime/emulator/ops/control.hpp"

namespace ikat::emulator {
namespace {

std::uint32_t* words(std::byte* frame, std::uint32_t offset) {
    return reinterpret_cast<std::uint32_t*>(frame + offset);
}

}  // namespace

void ThreadBlock::end(const ScheduledWarp& warp) {
    for (const auto& each : agents_) each->end_warp(warp);
    each_tool([&](BlockTool& tool) { tool.end_warp(warp); });
    --running_;
    waiting_[warp.index] = ended;
    ended_ |= 1u << warp.index;
    for (Barrier& barrier : barriers_)
        if (!barrier.waiting.empty() && is_met(barrier)) complete(barrier);
    if (has_ended()) {
        for (const auto& each : agents_) each->finish();
        leave_cluster();
    }
    pass_cluster();
}

bool ThreadBlock::is_met(const Barrier& barrier) const {
    if (barrier.counted) return barrier.arrived == barrier.expected;
    return unsigned(std::popcount(barrier.came | ended_)) == warps_.size();
}

void ThreadBlock::arrive(ScheduledWarp& warp) {
    const auto reject = [&](FaultCode code, std::string message, const char* hint = "") {
        throw barrier_error(*this, warp, code, std::move(message), hint);
    };
    const MicroOp& op = warp.code[warp.splits().front().pc];
    for (const Split& split : warp.splits())
        if ((warp.code[split.pc].x ^ op.x) & (BarrierCluster | BarrierArrive))
            reject(FaultCode::DifferentBarriers, info(FaultCode::DifferentBarriers).message);
    if (op.x & BarrierAgent) {
        const std::size_t agent = op.x >> barrier_agent_at;
        waiting_[warp.index] = int(agent_barrier + agent);
        return wake_for(agent);
    }
    if (op.x & BarrierCluster) return meet_cluster(warp, op.x & BarrierArrive, op.x & BarrierReleases);
    const std::uint32_t first_lane = std::uint32_t(std::countr_zero(warp.splits().front().mask));
    const std::uint32_t id = words(warp.frame(), op.a)[first_lane];
    const std::uint32_t threads = op.x & BarrierCounted ? words(warp.frame(), op.b)[first_lane] : 0;
    std::uint32_t lanes = 0, yes = 0;
    for (const Split& split : warp.splits()) {
        const MicroOp& at = warp.code[split.pc];
        for (std::uint32_t rest = split.mask; rest; rest &= rest - 1)
            if (words(warp.frame(), at.a)[std::countr_zero(rest)] != id)
                reject(FaultCode::DifferentBarriers, info(FaultCode::DifferentBarriers).message,
                       "the barrier number must be the same in a warp");
        lanes |= split.mask;
        if (at.x & BarrierReduce) yes += unsigned(std::popcount(words(warp.frame(), at.c)[0] & split.mask));
    }
    if (id >= barriers_.size()) reject(FaultCode::BarrierNumber, fmt::format("barrier {} does not exist", id));
    if (op.x & BarrierCounted && (threads % warp_size || threads == 0 || threads > warps_.size() * warp_size))
        reject(FaultCode::BarrierThreads,
               fmt::format("barrier {} is given {} threads in a block of {}", id, threads, threads_));

    Barrier& barrier = barriers_[id];
    const std::uint32_t expected = op.x & BarrierCounted ? threads / warp_size : std::uint32_t(warps_.size());
    if (barrier.arrived && barrier.expected != expected)
        reject(FaultCode::BarrierDisagrees,
               fmt::format("barrier {} expects {} threads here, but a waiting warp gave {}", id, expected * warp_size,
                           barrier.expected * warp_size));
    barrier.expected = expected;
    barrier.counted |= (op.x & BarrierCounted) != 0;
    barrier.arrived += 1;
    barrier.came |= 1u << warp.index;
    each_tool([&](BlockTool& tool) {
        tool.arrive(warp, lanes, {Meeting::Kind::Barrier, id}, !(op.x & BarrierArrive));
    });
    barrier.yes += yes;
    barrier.threads += unsigned(std::popcount(lanes));
    if (op.x & BarrierArrive) {
        warp.pass_barrier();
    } else {
        waiting_[warp.index] = int(id);
        barrier.waiting.push_back(warp.index);
    }
    if (is_met(barrier)) complete(barrier);
}

void ThreadBlock::wake_for(std::size_t agent) {
    for (ScheduledWarp& warp : warps_) {
        if (waiting_[warp.index] != int(agent_barrier + agent) || !agents_[agent]->is_met(warp)) continue;
        warp.try_again();
        waiting_[warp.index] = runs;
    }
}

void ThreadBlock::complete(Barrier& barrier) {
    close_written();
    if (barrier.waiting.size() == running_) ++meetings_;
    const auto id = std::uint64_t(&barrier - barriers_.data());
    const Meeting meeting{Meeting::Kind::Barrier, id};
    each_tool([&](BlockTool& tool) { tool.complete(meeting, !barrier.counted); });
    for (const unsigned index : barrier.waiting) {
        ScheduledWarp& warp = warps_[index];
        each_tool([&](BlockTool& tool) { tool.leave(warp, warp.live, meeting); });
        for (const Split& split : warp.splits()) {
            const MicroOp& op = warp.code[split.pc];
            if (!(op.x & BarrierReduce)) continue;
            std::uint32_t* const d = words(warp.frame(), op.d);
            const bool holds = op.x & BarrierAnd ? barrier.yes == barrier.threads : barrier.yes != 0;
            if (op.x & BarrierPopc)
                for (std::uint32_t rest = split.mask; rest; rest &= rest - 1) d[std::countr_zero(rest)] = barrier.yes;
            else
                *d = (*d & ~split.mask) | (holds ? split.mask : 0);
        }
        warp.pass_barrier();
        waiting_[index] = runs;
    }
    each_tool([&](BlockTool& tool) { tool.forget(meeting); });
    barrier = {};
}

std::optional<unsigned> ThreadBlock::barrier_of(const ScheduledWarp& warp) const {
    if (waiting_[warp.index] < 0) return {};
    return unsigned(waiting_[warp.index]);
}

std::pair<std::uint32_t, std::uint32_t> ThreadBlock::barrier_threads(unsigned id) const {
    return {barriers_[id].arrived * warp_size, barriers_[id].expected * warp_size};
}

}  // namespace ikat::emulator
