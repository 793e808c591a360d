// SPDX-License-Identifier: Apache-2.0
// Fences of proxies between blocks. A copy or a product is ordered after what another block has written by ordinary
// instructions, but nobody on the way from one to the other has executed a fence.proxy.async after it. Of what the
// block itself has written in its own and in global memory, proxies.hpp finds that.
#include <fmt/format.h>

#include <bit>

#include "runtime/emulator/core/checks/wording.hpp"
#include "runtime/emulator/machine/messages.hpp"
#include "runtime/emulator/tools/races/races.hpp"

namespace ikat::emulator::races {

// ---- what warps know to be shown

void Order::show(const Warp& warp, std::uint32_t lanes, unsigned by) {
    OfWarp& of = warps_[warp.index];
    OfAgent& agent = agents_[warp.index];
    const auto show = [&](Clock& clock, std::uint32_t own) {
        clock.show(block_.index(), by, warp.index, own, agent.stamp);
    };
    if (is_all(warp, lanes)) {
        show(of.common, all_lanes);
        for (auto& more : of.more)
            if (more) show(*more, all_lanes);
    } else {
        each_lane(lanes, [&](unsigned lane) { show(clock_of(warp.index, lane), 1u << lane); });
    }
    // A release fence whose store is still to come releases what this one shows of it.
    for (Fence& fence : of.fences) {
        if (fence.lanes & ~lanes) continue;
        Clock base = *fence.base;
        base.show(block_.index(), by, warp.index, fence.lanes, fence.stamp);
        fence.base = std::make_shared<const Clock>(std::move(base));
    }
    agent.stamp = tick();
}

std::uint32_t Order::not_shown(unsigned warp, std::uint32_t to, unsigned by, std::uint64_t block, unsigned agent,
                               std::uint32_t lanes, Stamp stamp) const {
    const OfWarp& of = warps_[warp];
    each_lane(to, [&](unsigned lane) {
        const auto& more = of.more[lane];
        lanes = (more ? *more : of.common).unknown_of(shown(block, by), agent, lanes, stamp);
    });
    return lanes;
}

void BlockRaces::show(const Warp& warp, std::uint32_t lanes, bool of_global, bool of_shared, bool of_peers) {
    if (!launch_.facts.has_proxies || is_over()) return;
    if (of_global) order_.show(warp, lanes, shows_global);
    if (of_shared && wide_) order_.show(warp, lanes, of_peers ? shows_shared : shows_shared_of + warp.rank);
}

// ---- what needs it

/// Whether nothing that other blocks have written before the access lacks a fence. False after a finding that stops the
/// warp.
bool BlockRaces::is_after_fences(const AgentAccess& access, WideShadow& wide, const Knower& by) {
    const Contexts& contexts = launch_.contexts;
    Contexts::Id fine = 0;  // whatever lanes of it have written
    const auto has_fences = [&](Contexts::Id writes) {
        return !(writes & Contexts::is_set) && !contexts.unknown(contexts[writes], contexts[writes].lanes, by) &&
               !unfenced(access, by, writes, contexts[writes].lanes);
    };
    for (const AgentAccess::Range& range : access.ranges) {
        std::optional<Unfenced> found;
        std::uint64_t at = 0, bytes = 0;
        const std::uint64_t first = access.owner ? range.place : range.address;
        wide.each_write(first, range.bytes,
                        [&](Contexts::Id writes, std::uint32_t lanes, std::uint64_t address, std::uint64_t count) {
                            if (writes == fine) return true;
                            if (has_fences(writes)) return fine = writes, true;
                            found = unfenced(access, by, writes, lanes);
                            at = address - first, bytes = count;
                            return !found;
                        });
        if (found) return report_unfenced(access, range.address + at, std::min(bytes, range.bytes - at), *found);
    }
    return true;
}

/// One of these writes, by lanes if it is a single one. Of several, all lanes must lack a fence, as with races.
std::optional<BlockRaces::Unfenced> BlockRaces::unfenced(const AgentAccess& access, const Knower& by,
                                                         Contexts::Id writes, std::uint32_t lanes) const {
    const ThreadBlock& issuer = block_of(access.w);
    const Order& order = races_of(issuer).order_;
    std::optional<Unfenced> found;
    launch_.contexts.each(writes, [&](const Context& write) {
        const bool is_thread = write.agent < issuer.warps().size(),
                   is_own = write.block == (access.owner ? access.owner : &issuer)->index();
        const std::uint32_t who = writes & Contexts::is_set ? write.lanes : lanes;
        if (!is_thread || is_own || launch_.contexts.unknown(write, who, by)) return true;
        const auto not_shown = [&](unsigned kind, std::uint32_t rest) {
            return order.not_shown(access.w->index, access.lanes, kind, write.block, write.agent, rest, write.stamp);
        };
        std::uint32_t rest = not_shown(access.owner ? shows_shared : shows_global, who);
        if (access.owner) rest = not_shown(shows_shared_of + access.owner->warps().front().rank, rest);
        if (writes & Contexts::is_set ? rest == who : rest != 0) found = Unfenced{write, rest};
        return !found;
    });
    return found;
}

bool BlockRaces::report_unfenced(const AgentAccess& access, std::uint64_t address, std::uint64_t bytes,
                                 const Unfenced& unfenced) {
    ThreadBlock& issuer = block_of(access.w);
    races_of(issuer).unfenced_ = unfenced;
    const bool is_product = access.of == AgentAccess::Of::Product;
    issuer.finding = is_product                            ? "a product reads"
                     : access.direction == Direction::Read ? "a bulk copy reads"
                                                           : "a bulk copy overwrites";
    return passes(access.w, access.op,
                  {.code = is_product ? FaultCode::ProductNotVisible : FaultCode::BulkNotVisible,
                   .space = access.space,
                   .store = access.direction != Direction::Read,
                   .lane = unsigned(std::countr_zero(access.lanes)),
                   .bytes = std::uint32_t(bytes),
                   .address = address});
}

void BlockRaces::describe_unfenced(Diagnostic& diagnostic, const Fault& fault, std::string_view by) const {
    const auto& [write, lanes] = *unfenced_;
    const LaunchState& state = block_.launch_state();
    const std::string whose =
        fmt::format("{} {}", block_text(write.block),
                    thread_text(block_, write.agent * warp_size + unsigned(std::countr_zero(lanes))));
    diagnostic.message = fmt::format(
        "{} {} {}, which {} has written without `fence.proxy.async` before it, by {}", block_.finding,
        plural(fault.bytes, "byte"),
        bytes_text({.space = fault.space, .address = fault.address, .bytes = fault.bytes}, block_), whose, by);
    if (write.op < state.kernel.instructions.size()) {
        const ptx::Instruction& instruction = *state.kernel.instructions[write.op];
        diagnostic.notes.push_back({location(state, instruction),
                                    fmt::format("the write, by {}: {}", whose, text_of(state.module, instruction))});
    }
}

}  // namespace ikat::emulator::races
