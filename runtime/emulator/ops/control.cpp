// SPDX-License-Identifier: Apache-2.0
// Control flow, guards, predicates, barriers.
// Branches jump directly as long as the lanes stay before the first op where others could continue (Warp::meet) and
// their turn is not over. There they return to the warp's scheduler (warp.cpp), so that lanes that meet continue
// together. If the lanes of a branch diverge, those that are ahead are suspended and the others continue.
#include "runtime/emulator/ops/control.hpp"

#include <atomic>
#include <bit>

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
    if (op == w->meet && w->join_others(mask)) {
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
        w->part(w->index_of(op + ahead), mask & ~staying, staying);
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
    if (w->strayed || passes(w, op, {.code = FaultCode::UniformBranch, .lane = unsigned(std::countr_zero(w->taken))}))
        return diverge(op, w, frame, mask);
    return nullptr;
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

namespace {
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
}  // namespace

Behaviour select_predicate(Op op) {
    switch (op) {
        case Op::And: return {predicate_and, {.operation = op, .propagation = Propagation::And}};
        case Op::Or: return {predicate_or, {.operation = op, .propagation = Propagation::Or}};
        case Op::Xor: return {predicate_xor, {.operation = op, .propagation = Propagation::Either}};
        case Op::Not: return {predicate_not, {.operation = op, .propagation = Propagation::Either}};
        case Op::Bitcast: return {predicate_move, {.operation = op, .propagation = Propagation::Either}};
        case Op::Select: return {predicate_select, {.operation = op, .propagation = Propagation::Choose}};
        case Op::Const: return {predicate_literal, {op}};
        default: return nullptr;
    }
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
        if (address % op->b &&
            !passes(w, op, {.space = Space(op->y), .lane = lane, .bytes = op->b, .address = address}))
            return nullptr;
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

namespace {

/// An address in the window of the cluster's shared memory; no_place after recording a fault.
constexpr std::uint64_t no_place = ~std::uint64_t{0};
std::uint64_t shared_place(Warp* w, const MicroOp* op, const std::byte* frame, unsigned lane) {
    const std::uint64_t address = reinterpret_cast<const std::uint64_t*>(frame + op->a)[lane];
    const std::uint64_t place = op->x ? address - window_address(Space::Shared) : address;
    const std::uint64_t end = w->shared_span ? (w->cluster_blocks + 1) * w->shared_span : std::uint64_t{1} << 32;
    if (place < end) return place;
    fail(w, op, {.code = FaultCode::NotShared, .lane = lane, .address = address});
    return no_place;
}

}  // namespace

IKAT_CONTROL_HANDLER(map_shared) {
    auto* const d = reinterpret_cast<std::uint64_t*>(frame + op->d);
    for (u32 rest = mask; rest; rest &= rest - 1) {
        const auto lane = unsigned(std::countr_zero(rest));
        const u32 rank = (&word(frame, op->b))[lane];
        if (rank >= w->cluster_blocks)
            return fail(w, op, {.code = FaultCode::ClusterRank, .lane = lane, .address = rank});
        const std::uint64_t place = shared_place(w, op, frame, lane);
        if (place == no_place) return nullptr;
        const std::uint64_t mapped = w->shared_span ? place % w->shared_span + (rank + 1) * w->shared_span : place;
        d[lane] = op->x ? mapped + window_address(Space::Shared) : mapped;
    }
    IKAT_NEXT;
}

IKAT_CONTROL_HANDLER(rank_of_shared) {
    for (u32 rest = mask; rest; rest &= rest - 1) {
        const auto lane = unsigned(std::countr_zero(rest));
        const std::uint64_t place = shared_place(w, op, frame, lane);
        if (place == no_place) return nullptr;
        const bool is_own = !w->shared_span || place < w->shared_span;
        (&word(frame, op->d))[lane] = is_own ? w->rank : u32(place / w->shared_span - 1);
    }
    IKAT_NEXT;
}

IKAT_CONTROL_HANDLER(is_own_shared) {
    const auto* const a = reinterpret_cast<const std::uint64_t*>(frame + op->a);
    u32 own = 0;
    for (unsigned lane = 0; lane < warp_size; ++lane) {
        const std::uint64_t place = a[lane] - window_address(Space::Shared);
        if (place < (w->shared_span ? w->shared_span : window_bytes)) own |= 1u << lane;
    }
    word(frame, op->d) = (word(frame, op->d) & ~mask) | (own & mask);
    IKAT_NEXT;
}

IKAT_CONTROL_HANDLER(barrier) {
    w->leave = Leave::Barrier;
    w->pc = w->index_of(op);
    w->mask = mask;
    return nullptr;
}

}  // namespace ikat::emulator
