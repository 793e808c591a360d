// SPDX-License-Identifier: Apache-2.0
// What is said about a race.
#include <fmt/format.h>

#include <bit>

#include "codegen/ptx/text/words.hpp"
#include "runtime/emulator/core/checks/wording.hpp"
#include "runtime/emulator/machine/messages.hpp"
#include "runtime/emulator/tools/races/races.hpp"

namespace ikat::emulator::races {

namespace {

std::string kind_of(const Context& access, bool is_async) {
    if (is_async) return access.writes ? "a write by an operation in flight" : "a read by an operation in flight";
    if (!access.is_strong) return access.writes ? "a store" : "a load";
    return access.writes ? "an atomic" : "a volatile or relaxed load";
}

const ptx::Instruction* instruction_of(const LaunchState& state, std::uint32_t op) {
    return op < state.kernel.instructions.size() ? state.kernel.instructions[op] : nullptr;
}

std::string values_text(std::uint64_t bytes, std::uint64_t value, std::optional<std::uint64_t> stored) {
    const std::string is = fmt::format("the {} 0x{:0{}x}", bytes == 1 ? "byte is" : "bytes are", value, 2 * bytes);
    return stored
               ? fmt::format("{}; the store makes 0x{:0{}x} of {}", is, *stored, 2 * bytes, bytes == 1 ? "it" : "them")
               : is;
}

/// Whether the text between two instructions has a barrier of the block.
bool have_barrier_between(const LaunchState& state, std::uint32_t a, std::uint32_t b) {
    for (std::uint32_t op = std::min(a, b) + 1; op < std::max(a, b); ++op) {
        const ptx::Instruction* const each = instruction_of(state, op);
        const bool is_barrier = each && (each->opcode == ptx::Opcode::Bar || each->opcode == ptx::Opcode::Barrier);
        if (is_barrier && ptx::has(state.module, *each, ptx::Modifier::Sync) &&
            !ptx::has(state.module, *each, ptx::Modifier::Warp))
            return true;
    }
    return false;
}

/// Whether a load and a store are of one line of a kernel's source: y[0] += x.
bool is_update(const LaunchState& state, const Context& before, const Context& now) {
    const ptx::Instruction* const first = instruction_of(state, before.op);
    const ptx::Instruction* const second = instruction_of(state, now.op);
    if (!first || !second || before.writes == now.writes) return false;
    const Location a = location(state, *first), b = location(state, *second);
    return a.line == b.line && a.file == b.file && !std::string_view(a.file).ends_with(".ptx");
}

/// What would order two accesses of threads of a block.
std::string hint_inside(const LaunchState& state, const Context& earlier, const Context& later, bool is_same_warp,
                        bool is_async, bool was_async) {
    const ptx::Instruction &before = *instruction_of(state, earlier.op), &now = *instruction_of(state, later.op);
    const Location first = location(state, before), second = location(state, now);
    const auto line = [&](const Location& at) {
        const std::string_view file = at.file;
        return fmt::format("{}:{}{}", file.substr(file.find_last_of('/') + 1), at.line,
                           first.line == second.line ? fmt::format(":{}", at.column) : "");
    };
    const std::string_view meeting = is_same_warp && !is_async && !was_async ? "`bar.warp.sync`" : "`bar.sync`",
                           who = is_same_warp ? "lanes of a warp" : "threads of a block";
    if (was_async)
        return fmt::format("wait for what {} has started, then let the threads meet at {}, before {}", line(first),
                           meeting, line(second));
    if (&before == &now)
        return fmt::format("let one thread do it, use an atomic, or meet at {} between one time and the next", meeting);
    if (have_barrier_between(state, earlier.op, later.op))
        return fmt::format(
            "`bar.sync` between {} and {} does not order them, since a thread may be an iteration of a loop ahead: "
            "add a barrier at the end of the loop's body",
            line(first), line(second));
    return fmt::format("{} are ordered by {} between {} and {}{}", who, meeting, line(first), line(second),
                       is_same_warp && !is_async ? "; shuffles and votes order no memory" : "");
}

}  // namespace

std::string BlockRaces::block_text(std::uint64_t block) const {
    const auto& grid = block_.launch_state().launch.grid;
    return "block " + tuple({std::uint32_t(block % grid[0]), std::uint32_t(block / grid[0] % grid[1]),
                             std::uint32_t(block / grid[0] / grid[1])});
}

bool BlockRaces::describe(Diagnostic& diagnostic, const Fault& fault, std::string_view by) const {
    if (unfenced_ && (fault.code == FaultCode::BulkNotVisible || fault.code == FaultCode::ProductNotVisible))
        return describe_unfenced(diagnostic, fault, by), true;
    constexpr FaultCode codes[] = {FaultCode::SharedRace, FaultCode::Race, FaultCode::BenignRace,
                                   FaultCode::ShuffleRace};
    if (!found_ || std::ranges::find(codes, fault.code) == std::end(codes)) return false;
    const auto& [now, before, before_lanes, is_async, was_async, is_refused, value, stored] = *found_;
    const LaunchState& state = block_.launch_state();
    const bool is_same_block = before.block == now.block, is_same_warp = is_same_block && before.agent == now.agent;
    std::string whose = "another thread";
    if (!was_async) {
        const std::uint32_t lanes = is_same_warp ? before_lanes & ~now.lanes : before_lanes;
        whose = thread_text(block_, before.agent * warp_size + unsigned(std::countr_zero(lanes)) % warp_size);
    }
    if (!is_same_block) whose = was_async ? block_text(before.block) : block_text(before.block) + " " + whose;
    const std::string where =
        bytes_text({.space = fault.space, .address = fault.address, .bytes = fault.bytes}, block_);
    diagnostic.message = fmt::format(
        "a race{}: {} and {} of {} {} are {}, by {} and {}",
        fault.code == FaultCode::BenignRace ? " that writes the same value twice" : "", kind_of(before, was_async),
        kind_of(now, is_async), plural(fault.bytes, "byte"), where,
        fault.code == FaultCode::ShuffleRace ? "ordered by nothing but a shuffle or a vote" : "not ordered", whose, by);
    const ptx::Instruction* const other = instruction_of(state, before.op);
    if (other)
        diagnostic.notes.push_back(
            {location(state, *other), fmt::format("the one before, by {}: {}", whose, text_of(state.module, *other))});
    if (value) diagnostic.notes.push_back({{}, values_text(fault.bytes, *value, stored)});
    if (fault.code == FaultCode::BenignRace || fault.code == FaultCode::ShuffleRace) return true;
    if (now.is_strong && before.is_strong)
        diagnostic.hint =
            "both are atomic, volatile or relaxed, but in scopes that do not reach the other thread: use "
            "`.gpu`, or `.cluster` inside a cluster";
    else if (is_refused)
        diagnostic.hint =
            "the two are ordered in a scope that does not reach both threads: fence, release and acquire "
            "with `.gpu`, or `.cluster` inside a cluster";
    else if (is_update(state, before, now) && !is_async && !was_async)
        diagnostic.hint =
            "both belong to one line: if threads update a value together, use an atomic, such as `atom.add`";
    else if (!is_same_block)
        diagnostic.hint =
            "blocks are ordered by launches; or one stores, releases a flag (`fence.acq_rel.gpu` and a "
            "relaxed store or atomic), and the other acquires it before it loads";
    else if (other)
        diagnostic.hint = hint_inside(state, before, now, is_same_warp, is_async, was_async);
    return true;
}

}  // namespace ikat::emulator::races
