// SPDX-License-Identifier: Apache-2.0
// Control flow, guards, predicates, barriers.
// Branches jump directly as long as the lanes stay before the first op where others could continue (Warp::meet) and
// their turn is not over. There they return to the warp's scheduler (warp.cpp), so that lanes that meet continue
// together. If the lanes of a branch diverge, those that are ahead are suspended and the others continue.
#include "runtime/emulator/ops/control.hpp"

#include <atomic>
#include <bit>

#include "runtime/emulator/machine/warp.hpp"

namespace ikat::emulator {

namespace {

using u32 = std::uint32_t;

u32& word(std::byte* frame, u32 offset) { return *reinterpret_cast<u32*>(frame + offset); }
void assign(std::byte* frame, u32 offset, u32 lanes, u32 mask) {
    u32& d = word(frame, offset);
    d = (d & ~mask) | (lanes & mask);
}

#define IKAT_CONTROL_HANDLER(name)                                                    \
    const MicroOp* name([[maybe_unused]] const MicroOp* op, [[maybe_unused]] Warp* w, \
                        [[maybe_unused]] std::byte* frame, u32 mask)

bool must_leave(const Warp* w, const MicroOp* next) { return next >= w->meet || w->instructions >= w->leave_at; }

/// The running lanes have reached `op`, where others may be; or it is the turn of others.
[[gnu::noinline]] IKAT_CONTROL_HANDLER(reschedule) {
    if (op == w->meet && static_cast<ScheduledWarp*>(w)->join_others(mask)) {
        mask = w->mask;
        IKAT_CONTINUE(0);
    }
    w->leave = Leave::Reschedule;
    w->pc = w->index_of(op);
    w->mask = mask;
    return nullptr;
}

/// At a branch whose lanes diverge; w->taken are those that jump.
[[gnu::noinline]] IKAT_CONTROL_HANDLER(diverge) {
    const u32 taken = w->taken;
    const auto jump = std::int32_t(op->x);
    const bool jump_is_behind = jump < 1;
    const std::int32_t behind = jump_is_behind ? jump : 1, ahead = jump_is_behind ? 1 : jump;
    if (!w->by_chance && !must_leave(w, op + behind)) {
        const u32 staying = jump_is_behind ? taken : mask & ~taken;
        static_cast<ScheduledWarp*>(w)->part(w->index_of(op + ahead), mask & ~staying, staying);
        mask = staying;
        IKAT_CONTINUE(behind);
    }
    w->leave = Leave::Diverge;
    w->mask = mask;
    w->target = w->index_of(op + jump);
    w->pc = w->index_of(op + 1);
    return nullptr;
}

/// At a bra.uni. Lanes that have strayed may be here in different iterations of a loop; that is due to the scheduler.
[[gnu::noinline]] IKAT_CONTROL_HANDLER(part_at_uniform) {
    if (w->strayed) return diverge(op, w, frame, mask);
    return fail(w, op, {.code = FaultCode::UniformBranch, .lane = unsigned(std::countr_zero(w->taken))});
}

}  // namespace

IKAT_CONTROL_HANDLER(jump) {
    w->count(op->y);
    if (must_leave(w, op + std::int32_t(op->x))) [[unlikely]]
        return reschedule(op + std::int32_t(op->x), w, frame, mask);
    IKAT_CONTINUE(std::int32_t(op->x));
}

// Rare cases are separate functions, reached by tail calls, so that these handlers have no registers to save.
#define IKAT_BRANCH(name, lanes, part)                                 \
    IKAT_CONTROL_HANDLER(name) {                                       \
        w->count(op->y);                                               \
        const u32 taken = (lanes)&mask;                                \
        if (taken != 0 && taken != mask) {                             \
            w->taken = taken;                                          \
            return part(op, w, frame, mask);                           \
        }                                                              \
        const std::int32_t distance = taken ? std::int32_t(op->x) : 1; \
        if (must_leave(w, op + distance)) [[unlikely]]                 \
            return reschedule(op + distance, w, frame, mask);          \
        IKAT_CONTINUE(distance);                                       \
    }
IKAT_BRANCH(branch_if, word(frame, op->a), diverge)
IKAT_BRANCH(branch_unless, ~word(frame, op->a), diverge)
IKAT_BRANCH(branch_if_uniform, word(frame, op->a), part_at_uniform)
IKAT_BRANCH(branch_unless_uniform, ~word(frame, op->a), part_at_uniform)
#undef IKAT_BRANCH

IKAT_CONTROL_HANDLER(branch_table) {
    w->count(op->y);
    const u32* const table = w->lists + op->x;
    const u32* const index = &word(frame, op->a);
    for (u32 rest = mask; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        if (index[lane] >= table[0]) return fail(w, op, {.code = FaultCode::BranchIndex, .lane = lane});
        w->targets[lane] = table[1 + index[lane]];
    }
    w->leave = Leave::Scatter;
    w->mask = mask;
    return nullptr;
}

IKAT_CONTROL_HANDLER(join) {
    w->count(op->y);
    if (op + 1 >= w->meet) [[unlikely]]
        return reschedule(op + 1, w, frame, mask);
    IKAT_NEXT;
}

IKAT_CONTROL_HANDLER(count_run) {
    w->count(op->y);
    IKAT_NEXT;
}

IKAT_CONTROL_HANDLER(end_lanes) {
    w->count(op->y);
    w->leave = Leave::Exit;
    w->mask = mask;
    return nullptr;
}

IKAT_CONTROL_HANDLER(trap) { return fail(w, op, {.code = FaultCode::Trap, .lane = unsigned(std::countr_zero(mask))}); }

IKAT_CONTROL_HANDLER(guard_if) {
    w->saved_mask = mask;
    const u32 active = mask & word(frame, op->a);
    if (!active) IKAT_CONTINUE(std::int32_t(op->x));
    mask = active;
    IKAT_NEXT;
}

IKAT_CONTROL_HANDLER(guard_unless) {
    w->saved_mask = mask;
    const u32 active = mask & ~word(frame, op->a);
    if (!active) IKAT_CONTINUE(std::int32_t(op->x));
    mask = active;
    IKAT_NEXT;
}

IKAT_CONTROL_HANDLER(unguard) {
    mask = w->saved_mask;
    IKAT_NEXT;
}

IKAT_CONTROL_HANDLER(predicate_and) {
    assign(frame, op->d, word(frame, op->a) & word(frame, op->b), mask);
    IKAT_NEXT;
}
IKAT_CONTROL_HANDLER(predicate_or) {
    assign(frame, op->d, word(frame, op->a) | word(frame, op->b), mask);
    IKAT_NEXT;
}
IKAT_CONTROL_HANDLER(predicate_xor) {
    assign(frame, op->d, word(frame, op->a) ^ word(frame, op->b), mask);
    IKAT_NEXT;
}
IKAT_CONTROL_HANDLER(predicate_not) {
    assign(frame, op->d, ~word(frame, op->a), mask);
    IKAT_NEXT;
}
IKAT_CONTROL_HANDLER(predicate_move) {
    assign(frame, op->d, word(frame, op->a), mask);
    IKAT_NEXT;
}
IKAT_CONTROL_HANDLER(predicate_literal) {
    assign(frame, op->d, op->x ? all_lanes : 0, mask);
    IKAT_NEXT;
}
IKAT_CONTROL_HANDLER(predicate_select) {
    const u32 c = word(frame, op->c);
    assign(frame, op->d, (word(frame, op->a) & c) | (word(frame, op->b) & ~c), mask);
    IKAT_NEXT;
}

IKAT_CONTROL_HANDLER(fence) {
    if (w->parallel) std::atomic_thread_fence(std::memory_order_seq_cst);
    IKAT_NEXT;
}
IKAT_CONTROL_HANDLER(check_alignment) {
    for (u32 rest = mask; rest; rest &= rest - 1) {
        const auto lane = unsigned(std::countr_zero(rest));
        const std::byte* const a = frame + op->a;
        const std::uint64_t base =
            op->c == 8 ? reinterpret_cast<const std::uint64_t*>(a)[lane] : reinterpret_cast<const u32*>(a)[lane];
        const std::uint64_t address = base + std::uint64_t(std::int64_t(std::int32_t(op->x)));
        if (address % op->b)
            return fail(w, op, {.space = Space(op->y), .lane = lane, .bytes = op->b, .address = address});
    }
    IKAT_NEXT;
}
IKAT_CONTROL_HANDLER(nothing) { IKAT_NEXT; }
IKAT_CONTROL_HANDLER(give_way) {
    w->slice_end = w->leave_at = w->instructions;
    IKAT_NEXT;
}
IKAT_CONTROL_HANDLER(read_clock) {
    auto* const d = reinterpret_cast<std::uint64_t*>(frame + op->d);
    for (u32 rest = mask; rest; rest &= rest - 1) d[std::countr_zero(rest)] = w->instructions;
    IKAT_NEXT;
}

IKAT_CONTROL_HANDLER(check_rank) {
    for (u32 rest = mask; rest; rest &= rest - 1) {
        const auto lane = unsigned(std::countr_zero(rest));
        if ((&word(frame, op->a))[lane] != 0) return fail(w, op, {.code = FaultCode::ClusterRank, .lane = lane});
    }
    IKAT_NEXT;
}

IKAT_CONTROL_HANDLER(barrier) {
    w->leave = Leave::Barrier;
    w->pc = w->index_of(op);
    w->mask = mask;
    return nullptr;
}

}  // namespace ikat::emulator
