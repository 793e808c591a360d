// SPDX-License-Identifier: Apache-2.0
// The scheduler of a warp's splits; see warp.hpp.
#include "runtime/emulator/machine/warp.hpp"

#include <algorithm>
#include <bit>

#include "runtime/emulator/machine/block.hpp"
#include "runtime/emulator/ops/control.hpp"

namespace ikat::emulator {

namespace {
constexpr std::uint64_t patience = 16384;   // warp instructions that a ready split waits before it goes first
constexpr std::uint64_t stray_turn = 1024;  // and how many it then executes
constexpr std::size_t nobody = ~std::size_t{0};

/// Inline: std::popcount would be a call, because not every machine has an instruction for it.
unsigned count_of(std::uint32_t lanes) {
    lanes -= lanes >> 1 & 0x55555555;
    lanes = (lanes & 0x33333333) + (lanes >> 2 & 0x33333333);
    return ((lanes + (lanes >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24;
}
}  // namespace

void ScheduledWarp::start(std::uint32_t lanes, std::byte* frame, std::uint32_t entry) {
    splits_.assign(1, {entry, lanes, Split::Wait::None, instructions, false});
    stack_pointer.fill(0);
    stack_top.fill(stack_base);
    for (std::vector<std::uint64_t>& stack : call_stack) stack.clear();
    frame_ = frame;
    existing = live = lanes;
    passed_at_ = instructions;
    strayed = false;
}

void ScheduledWarp::load(const DecodedKernel& from) {
    kernel = &from;
    code = from.code.data();
    lists = from.lists.data();
    shuffles = from.shuffles.data();
    functions = from.functions.data();
    function_count = std::uint32_t(from.functions.size());
    definedness = nullptr;
}

void ScheduledWarp::start_checking(const DecodedKernel& checked, bool defined) {
    load(checked);
    checked_.start(checked, defined);
    definedness = &checked_;
    for (Split& split : splits_) {
        const bool waits = split.wait != Split::Wait::None;  // at the op itself, after its checks
        const bool last = split.pc + 1 == checked.checked_of.size();
        split.pc = !waits ? checked_.checked_of[split.pc]
                   : last ? std::uint32_t(checked.code.size() - 1)
                          : checked_.checked_of[split.pc + 1] - 1;
    }
}

void ScheduledWarp::put(std::uint32_t pc, std::uint32_t mask, Split::Wait wait, bool polls) {
    for (Split& split : splits_)
        if (split.pc == pc) {
            split.mask |= mask;
            split.polls = split.polls && polls;
            // Lanes that join others at a warp-wide instruction try it again together.
            split.wait = wait == Split::Wait::Barrier && split.wait == wait ? wait : Split::Wait::None;
            split.since = instructions;
            return;
        }
    splits_.push_back({pc, mask, wait, instructions, polls});
}

/// The ready split that is furthest behind, except for fairness.
ScheduledWarp::Choice ScheduledWarp::furthest_behind() const {
    Choice best{.split = nobody};
    std::size_t oldest = nobody;
    for (std::size_t i = 0; i < splits_.size(); ++i) {
        if (splits_[i].wait != Split::Wait::None) continue;
        ++best.ready;
        const auto rank = [](const Split& split) { return std::pair(split.polls, split.pc); };
        if (best.split == nobody || rank(splits_[i]) < rank(splits_[best.split])) best.split = i;
        if (oldest == nobody || splits_[i].since < splits_[oldest].since) oldest = i;
    }
    best.overtakes = std::ranges::any_of(splits_, [&](const Split& split) {
        return split.wait == Split::Wait::None && split.pc < splits_[best.split].pc;
    });
    best.waited = oldest != best.split && instructions - splits_[oldest].since >= patience;
    if (best.waited) best.split = oldest;
    return best;
}

std::optional<Split> ScheduledWarp::next() const {
    const std::size_t next = furthest_behind().split;
    return next == nobody ? std::nullopt : std::optional(splits_[next]);
}

bool ScheduledWarp::only_polls() const {
    return std::ranges::all_of(splits_,
                               [](const Split& split) { return split.polls || split.wait != Split::Wait::None; }) &&
           std::ranges::any_of(splits_, &Split::polls);
}

/// The split to run; in a seeded launch, occasionally any.
std::size_t ScheduledWarp::choose(std::minstd_rand* random, bool& strays) {
    const Choice best = furthest_behind();
    strays = best.waited;
    const bool any = random && best.ready > 1 && !best.waited && (*random)() % 4 == 0;
    if (best.waited || best.overtakes || any) strayed = true;
    if (!any) return best.split;
    std::size_t skip = (*random)() % best.ready;
    for (std::size_t i = 0;; ++i)
        if (splits_[i].wait == Split::Wait::None && skip-- == 0) return i;
}

void ScheduledWarp::end_lanes() {
    live &= ~mask;
    for (Split& split : splits_)  // fewer members to wait for
        if (split.wait == Split::Wait::Members) split.wait = Split::Wait::None;
}

void ScheduledWarp::set_running(std::uint32_t lanes) {
    mask = lanes;
    running = count_of(lanes);
}

void ScheduledWarp::part(std::uint32_t at, std::uint32_t others, std::uint32_t staying) {
    put(at, others, Split::Wait::None);
    set_running(staying);
    meet = std::min(meet, code + at);
    leave_at = std::min(leave_at, instructions + patience);
}

bool ScheduledWarp::join_others(std::uint32_t running_lanes) {
    if (splits_.size() != 1 || instructions >= slice_end) return false;
    set_running(running_lanes | splits_[0].mask);
    const std::uint32_t at = splits_[0].pc;
    splits_.clear();
    bound_turn(at, false);
    return true;
}

/// The running lanes continue up to where others could, or until those have waited too long; with a random order, only
/// up to the next branch. Straying lanes continue for a while, even if others are behind.
void ScheduledWarp::bound_turn(std::uint32_t from, bool strays) {
    meet = reinterpret_cast<const MicroOp*>(~std::uintptr_t{0});
    leave_at = by_chance && !splits_.empty() ? instructions : slice_end;
    if (strays) leave_at = std::min(leave_at, instructions + stray_turn);
    for (const Split& other : splits_) {
        if (other.wait != Split::Wait::None || (strays && other.pc <= from)) continue;
        meet = std::min(meet, code + other.pc);
        if (!strays) leave_at = std::min(leave_at, other.since + patience);
    }
}

void ScheduledWarp::execute(Split split, bool strays) {
    leave = Leave::None;
    polls = false;
    late = 0;
    set_running(split.mask);
    bound_turn(split.pc, strays);
    for (const MicroOp* op = code + split.pc; op;) {
        op = op->run(op, this, frame_, mask);
        if (op || leave != Leave::Recheck) continue;
        const std::uint32_t at = pc;  // possibly under a guard: the same lanes continue immediately
        block_of(this).start_checking(*this, true);
        bound_turn(checked_.checked_of[at], strays);
        leave = Leave::None;
        op = code + checked_.checked_of[at];
    }
    switch (leave) {
        case Leave::Reschedule: put(pc, mask, Split::Wait::None, polls); break;
        case Leave::Diverge:
            put(target, taken, Split::Wait::None, taken == late);
            put(pc, mask & ~taken, Split::Wait::None, (mask & ~taken) == late);
            break;
        case Leave::Scatter:
            for (std::uint32_t rest = mask; rest; rest &= rest - 1) {
                const int lane = std::countr_zero(rest);
                put(targets[lane], 1u << lane, Split::Wait::None);
            }
            break;
        case Leave::Exit: end_lanes(); break;
        case Leave::Rendezvous: put(pc, mask, Split::Wait::Members); break;
        case Leave::Barrier: put(pc, mask, Split::Wait::Barrier); break;
        case Leave::Fault:
        case Leave::Recheck:
        case Leave::None: splits_.push_back({split.pc, mask, split.wait, split.since, split.polls}); break;
    }
}

/// Whether all living lanes wait at a barrier: at one instruction, or at several that need not be aligned.
bool ScheduledWarp::at_barrier() const {
    if (splits_.empty()) return false;
    for (const Split& split : splits_) {
        if (split.wait != Split::Wait::Barrier) return false;
        if (splits_.size() > 1 && (code[split.pc].x & BarrierAligned)) return false;
    }
    return true;
}

/// Lanes may execute bar.warp.sync at different instructions.
bool ScheduledWarp::release_met_members() {
    const auto waits = [&](const Split& split) {
        return split.wait == Split::Wait::Members && (kernel->effects[split.pc] & MeetsApart);
    };
    std::uint32_t here = 0;
    for (const Split& split : splits_)
        if (waits(split)) here |= split.mask;
    for (bool changed = true; changed && here;) {
        changed = false;
        for (const Split& split : splits_) {
            if (!waits(split) || !(split.mask & here)) continue;
            const auto* const members = reinterpret_cast<const std::uint32_t*>(frame_ + code[split.pc].x);
            std::uint32_t wanted = 0;
            for (std::uint32_t rest = split.mask; rest; rest &= rest - 1) wanted |= members[std::countr_zero(rest)];
            if (wanted & live & ~here) here &= ~split.mask, changed = true;
        }
    }
    if (!here) return false;
    for (Split& split : splits_)
        if (waits(split) && (split.mask & here)) ++split.pc, split.wait = Split::Wait::None;
    return true;
}

ScheduledWarp::Stop ScheduledWarp::run(std::uint64_t slice, std::minstd_rand* random) {
    slice_end = instructions + slice;
    for (;;) {
        bool strays = false;
        const std::size_t next = choose(random, strays);
        if (next == nobody) {
            if (splits_.empty()) return Stop::Done;
            if (at_barrier()) return Stop::AtBarrier;
            if (release_met_members()) continue;
            return Stop::Stuck;
        }
        const Split split = splits_[next];
        splits_.erase(splits_.begin() + std::ptrdiff_t(next));
        by_chance = random != nullptr;
        execute(split, strays);
        if (leave == Leave::Fault) return Stop::Fault;
        if (instructions >= slice_end) return splits_.empty() ? Stop::Done : Stop::SliceOver;
    }
}

void ScheduledWarp::pass_barrier() {
    passed_at_ = instructions;
    for (Split& split : splits_)
        if (split.wait == Split::Wait::Barrier) ++split.pc, split.wait = Split::Wait::None;
}

void ScheduledWarp::try_again() {
    for (Split& split : splits_)
        if (split.wait == Split::Wait::Barrier) split.wait = Split::Wait::None;
}

}  // namespace ikat::emulator
