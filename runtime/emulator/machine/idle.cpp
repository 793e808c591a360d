// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/machine/idle.hpp"

#include <algorithm>
#include <cstring>

#include "codegen/ptx/table/modifier.hpp"
#include "runtime/emulator/ops/control.hpp"

namespace ikat::emulator {

namespace {

bool is_branch(Handler run) {
    static constexpr std::array branches = {
        jump, branch_if, branch_unless, branch_if_uniform, branch_unless_uniform, branch_table, end_lanes, trap};
    return std::ranges::find(branches, run) != branches.end();
}

/// Stacks, the heap, output and clocks are not part of the compared state.
bool changes_more(Handler run) {
    static constexpr std::array others = {
        push_frame,  call_lanes,      call_lanes_checked,   restore_lanes,     restore_lanes_checked, pop_frame,
        enter_frame, return_lanes,    return_lanes_checked, allocate_on_stack, restore_stack,         heap_allocate,
        heap_free,   print_formatted, print_assertion,      read_clock};
    return std::ranges::find(others, run) != others.end();
}

/// The effects of an instruction.
std::uint8_t effect_of(const nvptx::Instruction& instruction, const nvptx::Module& module) {
    const auto is_in = [&](std::initializer_list<nvptx::Modifier> spaces) {
        return std::ranges::any_of(module.modifiers(instruction.modifiers), [&](nvptx::Name spelling) {
            return std::ranges::find(spaces, nvptx::spelled_modifier(module.text(spelling))) != spaces.end();
        });
    };
    using enum nvptx::Modifier;
    const bool own = is_in({Local, Param, ParamEntry, ParamFunc});
    if (instruction.opcode == nvptx::Opcode::Activemask) return Changes;  // depends on how lanes were scheduled
    if (instruction.opcode == nvptx::Opcode::Wmma)
        return is_in({Store})               ? Changes
               : !is_in({Load})             ? NoEffect
               : is_in({Shared, SharedCta}) ? ReadsBlock
                                            : ReadsOthers;
    if (instruction.opcode == nvptx::Opcode::Mbarrier)
        return is_in({TestWait, TryWait}) ? ReadsBlock : is_in({PendingCount}) ? NoEffect : Changes;
    switch (nvptx::info(instruction.opcode).kind) {
        case nvptx::OpcodeKind::SharedStore: return Changes;
        case nvptx::OpcodeKind::AsyncCopy: return is_in({WaitGroup, WaitAll, CommitGroup}) ? NoEffect : Changes;
        case nvptx::OpcodeKind::SharedLoad: return ReadsBlock;
        case nvptx::OpcodeKind::Store: return own ? NoEffect : Changes;
        case nvptx::OpcodeKind::Load:
        case nvptx::OpcodeKind::Atomic:
            return own || is_in({Const}) ? NoEffect : is_in({Shared, SharedCta}) ? ReadsBlock : ReadsOthers;
        default: return NoEffect;
    }
}

std::vector<Split> places(const ScheduledWarp& warp) {
    std::vector<Split> splits = warp.splits();
    std::ranges::sort(splits, {}, &Split::pc);  // no two are at the same op
    return splits;
}

bool same_places(const std::vector<Split>& a, const std::vector<Split>& b) {
    return std::ranges::equal(
        a, b, [](const Split& x, const Split& y) { return x.pc == y.pc && x.mask == y.mask && x.wait == y.wait; });
}

}  // namespace

std::vector<std::uint8_t> effects_of(const DecodedKernel& kernel, const nvptx::Module& module) {
    std::vector<std::uint8_t> effects(kernel.code.size());
    for (std::size_t i = effects.size(); i-- > 0;) {
        if (kernel.instructions[i]) effects[i] = effect_of(*kernel.instructions[i], module);
        if (changes_more(kernel.code[i].run)) effects[i] |= Changes;
        if (!is_branch(kernel.code[i].run) && i + 1 < effects.size()) effects[i] |= effects[i + 1];
    }
    return effects;
}

Watch::Watch(const DecodedKernel& kernel, const std::vector<std::uint8_t>& effects, ScheduledWarp& warp)
    : kernel_(kernel), effects_(effects), warp_(warp), changes_(warp.changes) {
    remember();
}

std::span<const std::byte> Watch::local_memory() const {
    if (kernel_.local.host_bytes == 0) return {};
    return {warp_.windows[int(Space::Local)].views[0].host, kernel_.local.host_bytes * warp_size};
}

void Watch::remember() {
    const std::span<const std::byte> local = local_memory();
    splits_ = places(warp_);
    bytes_.assign(warp_.frame(), warp_.frame() + kernel_.register_bytes);
    bytes_.insert(bytes_.end(), local.begin(), local.end());
    ran_ = 0;
    reads_ = 0;
}

void Watch::before() {
    if (const auto next = warp_.next()) {
        ran_ |= next->mask;
        reads_ |= effects_[next->pc];
    }
}

bool Watch::is_as_before(const std::vector<Split>& now) const {
    const std::span<const std::byte> local = local_memory();
    const auto same = [&](const std::byte* bytes, std::size_t count, std::size_t at) {
        return count == 0 || std::memcmp(bytes, bytes_.data() + at, count) == 0;
    };
    return same_places(now, splits_) && same(warp_.frame(), kernel_.register_bytes, 0) &&
           same(local.data(), local.size(), kernel_.register_bytes);
}

bool Watch::is_back() {
    if (warp_.changes != changes_) reads_ |= Changes;
    return !is_alive() && is_as_before(places(warp_));
}

bool Watch::after() {
    if (warp_.changes != changes_) reads_ |= Changes;
    if (is_alive()) return false;
    const std::vector<Split> now = places(warp_);
    std::uint32_t ready = 0;
    for (const Split& split : now)
        if (split.wait == Split::Wait::None) ready |= split.mask;
    if (!(ready & ~ran_) && is_as_before(now)) return true;
    // States before the cycle do not recur: from time to time, compare with a later state.
    if (++turns_; (turns_ & (turns_ - 1)) == 0) remember();
    return false;
}

}  // namespace ikat::emulator
