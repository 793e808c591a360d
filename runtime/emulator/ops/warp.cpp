// SPDX-License-Identifier: Apache-2.0
// Warp-wide instructions: shuffles, votes, matches, reductions. Each has a member mask; the op runs when all living
// members have arrived, otherwise the lanes wait at it (Leave::Rendezvous).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/emulator/ops/warp.cpp"
#include <hwy/foreach_target.h>
// after foreach_target
#include "runtime/emulator/core/definedness.hpp"
#include "runtime/emulator/ops/control.hpp"
#include "runtime/emulator/ops/lanes.inl"

HWY_BEFORE_NAMESPACE();
namespace ikat::emulator {
namespace HWY_NAMESPACE {

using u32 = std::uint32_t;

HWY_INLINE u32* words(std::byte* frame, u32 offset) { return lanes_at<u32>(frame, offset); }
HWY_INLINE u32& lane_set(std::byte* frame, u32 offset) { return *reinterpret_cast<u32*>(frame + offset); }

template <class F>
HWY_INLINE void each_lane(u32 mask, F f) {
    for (u32 rest = mask; rest; rest &= rest - 1) f(unsigned(std::countr_zero(rest)));
}

/// Whether every lane names all lanes as members, as converged code does.
HWY_INLINE bool names_all(const u32* members) {
    u32 all = all_lanes;
    for (unsigned i = 0; i < warp_size; ++i) all &= members[i];
    return all == all_lanes;
}

/// Whether all living members of every active lane have arrived. If not, the warp leaves: to wait, or with a finding if
/// a lane is not in its own mask.
HWY_NOINLINE bool members_present_slow(const MicroOp* op, Warp* w, const u32* members, u32 mask) {
    u32 wanted = 0, absent = 0;
    each_lane(mask, [&](unsigned lane) {
        wanted |= members[lane];
        if (!(members[lane] >> lane & 1)) absent |= 1u << lane;
    });
    if (absent) {
        fail(w, op,
             {.code = FaultCode::NotOwnMember,
              .lane = unsigned(std::countr_zero(absent)),
              .address = members[std::countr_zero(absent)]});
        return false;
    }
    for (u32 rest = mask; rest;) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        u32 same = 0;
        each_lane(mask, [&](unsigned i) { same |= u32(members[i] == members[lane]) << i; });
        const u32 others = members[lane] & mask & ~same;
        if (others) {
            fail(w, op,
                 {.code = FaultCode::MasksDisagree,
                  .lane = lane,
                  .address = members[lane],
                  .lanes = others,
                  .other = members[std::countr_zero(others)]});
            return false;
        }
        rest &= ~same;
    }
    if (!(wanted & w->live & ~mask)) return true;
    w->leave = Leave::Rendezvous;
    w->pc = w->index_of(op);
    w->mask = mask;
    return false;
}

HWY_INLINE bool members_present(const MicroOp* op, Warp* w, const u32* members, u32 mask) {
    if (HWY_LIKELY(mask == w->live && names_all(members))) return true;
    return members_present_slow(op, w, members, mask);
}

/// A value cannot come from a thread that has exited; not needed if all lanes are alive.
HWY_NOINLINE bool names_exited(const MicroOp* op, Warp* w, const u32* members, u32 mask) {
    const u32 exited = w->existing & ~w->live;
    for (u32 rest = mask; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        if (!(members[lane] & exited)) continue;
        return !passes(
            w, op,
            {.code = FaultCode::ExitedMember, .lane = lane, .address = members[lane], .lanes = members[lane] & exited});
    }
    return false;
}

/// d and predicate y = a of another lane (PTX ISA, shfl.sync), its own where that is out of range; b the lane or
/// distance, c clamp and segments, x the members. In plain code, the shuffled value is defined.
template <Shuffle Mode, bool Checked>
IKAT_HANDLER(shuffle) {
    if (HWY_UNLIKELY(w->existing != w->live) && names_exited(op, w, words(frame, op->x), mask)) return nullptr;
    if (!members_present(op, w, words(frame, op->x), mask)) return nullptr;
    u32* const sources = reinterpret_cast<u32*>(w->addresses);
    u32* const here = sources + warp_size;
    u32* const values = reinterpret_cast<u32*>(w->staging);
    u32* const results = reinterpret_cast<u32*>(w->scratch);
    const u32 *const a = words(frame, op->a), *const b = words(frame, op->b), *const c = words(frame, op->c);
    IKAT_EACH_LANE(i) {
        const ShuffleSource from = shuffle_source(Mode, int(i), b[i], c[i]);
        sources[i] = u32(from.lane);
        here[i] = from.in_range ? 1u << i : 0;
        values[i] = a[i];
    }
    u32 in_range = 0;
    for (unsigned i = 0; i < warp_size; ++i) in_range |= here[i];
    if (HWY_UNLIKELY(Checked || mask != all_lanes || !names_all(words(frame, op->x)))) {
        const u32* const members = words(frame, op->x);
        u32 absent = 0;
        for (unsigned i = 0; i < warp_size; ++i) {
            here[i] = members[i] & mask;
            absent |= u32(!(here[i] >> sources[i] & 1)) << i;
        }
        if constexpr (Checked)
            shuffle_definedness(op, w, mask, sources, here);
        else if (absent & mask)
            return go_on_checked(op, w, mask);
    }
    IKAT_UNROLLED_LANES(i) results[i] = values[sources[i]];
    u32& p = lane_set(frame, op->y);
    p = (p & ~mask) | (in_range & mask);
    return blend_and_continue<4>(op, w, frame, mask);
}

/// d[i] = a[from[i]]; d may be a. All are aligned.
HWY_INLINE void permute(const u32* a, const u32* from, u32* d) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
    const hn::ScalableTag<u32> v;
    constexpr unsigned lanes = hn::MaxLanes(v), parts = warp_size / lanes;
    hn::Vec<decltype(v)> in[parts], out[parts];
    for (unsigned k = 0; k < parts; ++k) in[k] = hn::Load(v, a + k * lanes);
    for (unsigned i = 0; i < parts; ++i) {
        const auto source = hn::Load(v, from + i * lanes);
        const auto in_part = hn::IndicesFromVec(v, hn::And(source, hn::Set(v, lanes - 1)));
        const auto part = hn::ShiftRight<std::countr_zero(lanes)>(source);
        out[i] = hn::TableLookupLanes(in[0], in_part);
        for (unsigned k = 1; k < parts; ++k)
            out[i] = hn::IfThenElse(hn::Eq(part, hn::Set(v, k)), hn::TableLookupLanes(in[k], in_part), out[i]);
    }
    for (unsigned i = 0; i < parts; ++i) hn::Store(out[i], v, d + i * lanes);
#else
    u32 values[warp_size];
    std::memcpy(values, a, sizeof values);
    for (unsigned i = 0; i < warp_size; ++i) d[i] = values[from[i]];
#endif
}

IKAT_HANDLER(known_shuffle) {
    w->count(op->y);
    if (HWY_UNLIKELY((mask & w->live) != all_lanes)) IKAT_NEXT;
    const ShuffleSources& from = w->shuffles[op->b];
    permute(words(frame, op->a), from.lanes, words(frame, op->d));
    lane_set(frame, op->c) = from.in_range;
    IKAT_CONTINUE(2);
}

/// Predicate d (ballot: register d) = vote on predicate a among members x.
template <Vote Mode>
IKAT_HANDLER(vote) {
    const u32* const members = words(frame, op->x);
    if (!members_present(op, w, members, mask)) return nullptr;
    const u32 p = lane_set(frame, op->a) & mask;
    u32 verdict = 0;
    const auto decide = [](u32 yes, u32 here) {
        return Mode == Vote::All ? yes == here : Mode == Vote::Any ? yes != 0 : yes == here || yes == 0;
    };
    if (HWY_LIKELY(mask == w->live && names_all(members))) {
        if constexpr (Mode == Vote::Ballot) {
            u32* const d = words(w->scratch, 0);
            IKAT_EACH_LANE(i) d[i] = p;
            return blend_and_continue<4>(op, w, frame, mask);
        } else {
            u32& d = lane_set(frame, op->d);
            d = (d & ~mask) | (decide(p, mask) ? mask : 0);
            IKAT_NEXT;
        }
    }
    each_lane(mask, [&](unsigned lane) {
        const u32 here = members[lane] & mask, yes = p & here;
        if constexpr (Mode == Vote::Ballot)
            words(frame, op->d)[lane] = yes;
        else
            verdict |= u32(decide(yes, here)) << lane;
    });
    if constexpr (Mode != Vote::Ballot) {
        u32& d = lane_set(frame, op->d);
        d = (d & ~mask) | verdict;
    }
    IKAT_NEXT;
}

/// d = members with the same a; match.all also sets predicate y and gives 0 unless all agree.
template <class T, bool All>
IKAT_HANDLER(match) {
    const u32* const members = words(frame, op->x);
    if (!members_present(op, w, members, mask)) return nullptr;
    const T* const a = reinterpret_cast<const T*>(frame + op->a);
    u32 results[warp_size], agreed = 0;
    each_lane(mask, [&](unsigned lane) {
        u32 same = 0;
        each_lane(members[lane] & mask, [&](unsigned other) { same |= u32(a[other] == a[lane]) << other; });
        const bool all = same == (members[lane] & mask);
        agreed |= u32(all) << lane;
        results[lane] = All && !all ? 0 : same;
    });
    u32* const d = words(frame, op->d);
    each_lane(mask, [&](unsigned lane) { d[lane] = results[lane]; });
    if (All) {
        u32& p = lane_set(frame, op->y);
        p = (p & ~mask) | agreed;
    }
    IKAT_NEXT;
}

template <Reduction R>
IKAT_HANDLER(reduce) {
    const u32* const members = words(frame, op->x);
    if (!members_present(op, w, members, mask)) return nullptr;
    const u32* const a = words(frame, op->a);
    u32 results[warp_size];
    each_lane(mask, [&](unsigned lane) {
        u32 r = a[lane];
        each_lane(members[lane] & mask & ~(1u << lane), [&](unsigned other) {
            const u32 v = a[other];
            switch (R) {
                case Reduction::Add: r += v; break;
                case Reduction::Min: r = std::min(r, v); break;
                case Reduction::Max: r = std::max(r, v); break;
                case Reduction::MinSigned: r = u32(std::min(int(r), int(v))); break;
                case Reduction::MaxSigned: r = u32(std::max(int(r), int(v))); break;
                case Reduction::And: r &= v; break;
                case Reduction::Or: r |= v; break;
                case Reduction::Xor: r ^= v; break;
                default: break;
            }
        });
        results[lane] = r;
    });
    u32* const d = words(frame, op->d);
    each_lane(mask, [&](unsigned lane) { d[lane] = results[lane]; });
    IKAT_NEXT;
}

/// Numbers are preferred to NaNs, unless NaN is requested; a NaN's payload is not kept.
template <bool Max, bool Nan>
IKAT_HANDLER(reduce_floats) {
    const u32* const members = words(frame, op->x);
    if (!members_present(op, w, members, mask)) return nullptr;
    const float* const a = reinterpret_cast<const float*>(frame + op->a);
    float results[warp_size];
    each_lane(mask, [&](unsigned lane) {
        float r = a[lane];
        bool has_nan = r != r;
        each_lane(members[lane] & mask & ~(1u << lane), [&](unsigned other) {
            has_nan |= a[other] != a[other];
            r = Max ? sem::maximum(r, a[other]) : sem::minimum(r, a[other]);
        });
        results[lane] = r != r || (Nan && has_nan) ? sem::canonical_nan<float>() : r;
    });
    float* const d = reinterpret_cast<float*>(frame + op->d);
    each_lane(mask, [&](unsigned lane) { d[lane] = results[lane]; });
    IKAT_NEXT;
}

/// d = one of the members; predicate y holds in that lane.
IKAT_HANDLER(elect) {
    const u32* const members = words(frame, op->x);
    if (!members_present(op, w, members, mask)) return nullptr;
    u32* const d = words(frame, op->d);
    u32& p = lane_set(frame, op->y);
    each_lane(mask, [&](unsigned lane) {
        const u32 leader = w->block->elected(members[lane] & mask);
        d[lane] = leader;
        p = (p & ~(1u << lane)) | u32(leader == lane) << lane;
    });
    IKAT_NEXT;
}

IKAT_HANDLER(active_mask) {
    u32* const d = words(frame, op->d);
    each_lane(mask, [&](unsigned lane) { d[lane] = mask; });
    IKAT_NEXT;
}

IKAT_HANDLER(meet) {
    if (!members_present(op, w, words(frame, op->x), mask)) return nullptr;
    IKAT_NEXT;
}

template <bool Checked>
Handler shuffle_handler(Shuffle mode) {
    switch (mode) {
        case Shuffle::Up: return shuffle<Shuffle::Up, Checked>;
        case Shuffle::Down: return shuffle<Shuffle::Down, Checked>;
        case Shuffle::Butterfly: return shuffle<Shuffle::Butterfly, Checked>;
        case Shuffle::Index: return shuffle<Shuffle::Index, Checked>;
    }
    return nullptr;
}
Handler choose_shuffle(Shuffle mode) { return shuffle_handler<false>(mode); }
Handler choose_checked_shuffle(Shuffle mode) { return shuffle_handler<true>(mode); }
Handler choose_known_shuffle() { return known_shuffle; }

Handler choose_vote(Vote mode) {
    switch (mode) {
        case Vote::All: return vote<Vote::All>;
        case Vote::Any: return vote<Vote::Any>;
        case Vote::Uniform: return vote<Vote::Uniform>;
        case Vote::Ballot: return vote<Vote::Ballot>;
    }
    return nullptr;
}

Handler choose_match(bool all, unsigned bytes) {
    if (bytes == 8) return all ? match<std::uint64_t, true> : match<std::uint64_t, false>;
    return all ? match<u32, true> : match<u32, false>;
}

Handler choose_reduction(Reduction reduction) {
    switch (reduction) {
        case Reduction::Add: return reduce<Reduction::Add>;
        case Reduction::Min: return reduce<Reduction::Min>;
        case Reduction::Max: return reduce<Reduction::Max>;
        case Reduction::MinSigned: return reduce<Reduction::MinSigned>;
        case Reduction::MaxSigned: return reduce<Reduction::MaxSigned>;
        case Reduction::And: return reduce<Reduction::And>;
        case Reduction::Or: return reduce<Reduction::Or>;
        case Reduction::Xor: return reduce<Reduction::Xor>;
        case Reduction::MinFloat: return reduce_floats<false, false>;
        case Reduction::MaxFloat: return reduce_floats<true, false>;
        case Reduction::MinFloatNan: return reduce_floats<false, true>;
        case Reduction::MaxFloatNan: return reduce_floats<true, true>;
    }
    return nullptr;
}

Handler choose_elect() { return elect; }
Handler choose_active_mask() { return active_mask; }
Handler choose_sync_warp() { return meet; }

}  // namespace HWY_NAMESPACE
}  // namespace ikat::emulator
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ikat::emulator {
HWY_EXPORT(choose_shuffle);
HWY_EXPORT(choose_checked_shuffle);
HWY_EXPORT(choose_known_shuffle);
HWY_EXPORT(choose_vote);
HWY_EXPORT(choose_match);
HWY_EXPORT(choose_reduction);
HWY_EXPORT(choose_elect);
HWY_EXPORT(choose_active_mask);
HWY_EXPORT(choose_sync_warp);

namespace {
Operation operation_of(Vote mode) {
    switch (mode) {
        case Vote::All: return Op::VoteAll;
        case Vote::Any: return Op::VoteAny;
        case Vote::Ballot: return Op::Ballot;
        case Vote::Uniform: break;
    }
    return OwnOp::VoteUniform;
}
Operation operation_of(Reduction reduction) {
    if (reduction <= Reduction::MaxSigned) return Op::WarpReduce;
    return reduction <= Reduction::Xor ? Operation(Op::WarpReduceBits) : Operation(OwnOp::ReduceFloats);
}
MicroInfo of_warp(Operation operation) {
    return {.operation = operation, .synchronises = {.exchanges_in_warp = true}, .use = DefinedUse::Warp};
}
}  // namespace

/// The checked one tells of the shuffled value itself what is defined.
Behaviour select_shuffle(Shuffle mode) {
    return {HWY_DYNAMIC_DISPATCH(choose_shuffle)(mode),
            {.operation = Op::Shuffle,
             .synchronises = {.exchanges_in_warp = true},
             .use = DefinedUse::Shuffle,
             .used = B | C | X,
             .checked = HWY_DYNAMIC_DISPATCH(choose_checked_shuffle)(mode)}};
}
/// It continues after the op for any lanes, which follows it and says what both do.
Behaviour select_known_shuffle() {
    return {HWY_DYNAMIC_DISPATCH(choose_known_shuffle)(), {.operation = Op::Shuffle, .checked = count_run}};
}
Behaviour select_vote(Vote mode) { return {HWY_DYNAMIC_DISPATCH(choose_vote)(mode), of_warp(operation_of(mode))}; }
Behaviour select_match(bool all, unsigned bytes) {
    return {HWY_DYNAMIC_DISPATCH(choose_match)(all, bytes), of_warp(all ? Op::MatchAll : Op::MatchAny)};
}
Behaviour select_reduction(Reduction reduction) {
    return {HWY_DYNAMIC_DISPATCH(choose_reduction)(reduction), of_warp(operation_of(reduction))};
}
Behaviour select_elect() { return {HWY_DYNAMIC_DISPATCH(choose_elect)(), of_warp(Op::Elect)}; }
Behaviour select_active_mask() { return {HWY_DYNAMIC_DISPATCH(choose_active_mask)(), {Op::ActiveMask}}; }
Behaviour select_sync_warp() {
    MicroInfo info = of_warp(Op::SyncWarp);
    info.synchronises = {.meets_warp = true};
    return {HWY_DYNAMIC_DISPATCH(choose_sync_warp)(), info};
}
}  // namespace ikat::emulator
#endif
