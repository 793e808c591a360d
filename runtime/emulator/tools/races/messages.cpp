// SPDX-License-Identifier: Apache-2.0
// What is said about a race.
#include <fmt/format.h>

#include <bit>

#include "runtime/emulator/core/wording.hpp"
#include "runtime/emulator/machine/messages.hpp"
#include "runtime/emulator/tools/races/races.hpp"

namespace ikat::emulator::races {

namespace {

std::string kind_of(const Context& access, bool is_behind) {
    if (is_behind)
        return access.writes ? "the write of what goes on behind an instruction"
                             : "the read of what goes on behind an instruction";
    if (!access.is_strong) return access.writes ? "a store" : "a load";
    return access.writes ? "an atomic" : "a volatile or relaxed load";
}

}  // namespace

bool BlockRaces::describe(Diagnostic& diagnostic, const Fault& fault, std::string_view by) const {
    constexpr FaultCode codes[] = {FaultCode::SharedRace, FaultCode::Race, FaultCode::BenignRace};
    if (!found_ || std::ranges::find(codes, fault.code) == std::end(codes)) return false;
    const auto& [now, before, before_lanes, is_behind, was_behind, is_refused] = *found_;
    const LaunchState& state = block_.launch_state();
    const bool is_same_block = before.block == now.block, is_same_warp = is_same_block && before.agent == now.agent;
    std::string whose = "another thread";
    if (!was_behind) {
        const std::uint32_t lanes = is_same_warp ? before_lanes & ~now.lanes : before_lanes;
        whose = thread_text(block_, before.agent * warp_size + unsigned(std::countr_zero(lanes)) % warp_size);
    }
    if (!is_same_block) {
        const auto& grid = state.launch.grid;
        whose =
            fmt::format("block {} {}",
                        tuple({std::uint32_t(before.block % grid[0]), std::uint32_t(before.block / grid[0] % grid[1]),
                               std::uint32_t(before.block / grid[0] / grid[1])}),
                        was_behind ? "" : whose);
        if (was_behind) whose.pop_back();
    }
    const std::string where =
        bytes_text({.space = fault.space, .address = fault.address, .bytes = fault.bytes}, block_);
    diagnostic.message = fmt::format("a race{}: {} and {} of {} {} are not ordered, by {} and {}",
                                     fault.code == FaultCode::BenignRace ? " that writes the same value twice" : "",
                                     kind_of(before, was_behind), kind_of(now, is_behind), plural(fault.bytes, "byte"),
                                     where, whose, by);
    const nvptx::Instruction* const other =
        before.op < state.kernel.instructions.size() ? state.kernel.instructions[before.op] : nullptr;
    if (other)
        diagnostic.notes.push_back(
            {location(state, *other), fmt::format("the one before, by {}: {}", whose, text_of(state.module, *other))});
    if (fault.code == FaultCode::BenignRace) return true;
    if (now.is_strong && before.is_strong)
        diagnostic.hint =
            "both are atomic, volatile or relaxed, but in scopes that do not reach the other thread: use "
            "`.gpu`, or `.cluster` inside a cluster";
    else if (is_refused)
        diagnostic.hint =
            "the two are ordered in a scope that does not reach both threads: fence, release and acquire "
            "with `.gpu`, or `.cluster` inside a cluster";
    else if (!is_same_block)
        diagnostic.hint =
            "blocks are ordered by launches; or one stores, releases a flag (`fence.acq_rel.gpu` and a "
            "relaxed store or atomic), and the other acquires it before it loads";
    else if (is_same_warp && !was_behind && !is_behind)
        diagnostic.hint =
            "lanes of a warp are ordered by `bar.warp.sync` between the two; shuffles and votes order no "
            "memory";
    return true;
}

}  // namespace ikat::emulator::races
