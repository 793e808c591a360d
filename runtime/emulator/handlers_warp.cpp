// SPDX-License-Identifier: Apache-2.0
// Instructions in which the lanes of a warp meet: shuffles, votes, matches, reductions. Each names its members; the op
// runs when all of them that still live are here, and else the lanes wait at it (Leave::Rendezvous).
#include <bit>
#include <cstring>

#include "runtime/emulator/handlers_control.hpp"

namespace ikat::emulator {

namespace {

using u32 = std::uint32_t;

u32* words(std::byte* frame, u32 offset) { return reinterpret_cast<u32*>(frame + offset); }

template <class F>
void each_lane(u32 mask, F f) {
    for (u32 rest = mask; rest; rest &= rest - 1) f(unsigned(std::countr_zero(rest)));
}

/// Whether all living members of every active lane are here. If not, the warp leaves: to wait, or with a finding when a
/// lane is no member of its own set.
bool members_present(const Op* op, Warp* w, const u32* members, u32 mask) {
    u32 wanted = 0, absent = 0;
    each_lane(mask, [&](unsigned lane) {
        wanted |= members[lane];
        if (!(members[lane] >> lane & 1)) absent |= 1u << lane;
    });
    if (absent) {
        fail(w, op,
             {.kind = Fault::Kind::Members,
              .lane = unsigned(std::countr_zero(absent)),
              .address = members[std::countr_zero(absent)],
              .message = "a thread executes this instruction but is not in its own member mask",
              .hint = "the mask must name every thread that executes the instruction: use 0xffffffff in a "
                      "converged warp"});
        return false;
    }
    if (!(wanted & w->live & ~mask)) return true;
    w->leave = Leave::Rendezvous;
    w->pc = w->index_of(op);
    w->mask = mask;
    return false;
}

enum class Shuffle { Up, Down, Butterfly, Index };

/// The lane that `lane` reads, and whether it is in range (PTX ISA, shfl.sync).
template <Shuffle Mode>
bool source_lane(unsigned lane, u32 b, u32 c, unsigned& from) {
    const u32 segment = c >> 8 & 31, clamp = c & 31;
    b &= 31;
    const u32 limit = (lane & segment) | (clamp & ~segment);
    int j = 0;
    bool in_range = false;
    switch (Mode) {
        case Shuffle::Up: j = int(lane) - int(b), in_range = j >= int(limit); break;
        case Shuffle::Down: j = int(lane + b), in_range = j <= int(limit); break;
        case Shuffle::Butterfly: j = int(lane ^ b), in_range = j <= int(limit); break;
        case Shuffle::Index: j = int((lane & segment) | (b & ~segment)), in_range = j <= int(limit); break;
    }
    from = in_range ? unsigned(j) & 31 : lane;
    return in_range;
}

/// d and predicate y = a of another lane; b the lane or distance, c clamp and segments, x the members.
template <Shuffle Mode>
const Op* shuffle(const Op* op, Warp* w, std::byte* frame, u32 mask) {
    if (!members_present(op, w, words(frame, op->x), mask)) return nullptr;
    u32 from[warp_size];
    std::memcpy(from, frame + op->a, sizeof from);
    const u32 *b = words(frame, op->b), *c = words(frame, op->c);
    u32 results[warp_size], in_range = 0;
    for (unsigned lane = 0; lane < warp_size; ++lane) {
        unsigned source;
        in_range |= u32(source_lane<Mode>(lane, b[lane], c[lane], source)) << lane;
        results[lane] = from[source];
    }
    u32* const d = words(frame, op->d);
    if (mask == all_lanes)
        std::memcpy(d, results, sizeof results);
    else
        each_lane(mask, [&](unsigned lane) { d[lane] = results[lane]; });
    u32* const p = words(frame, op->y);
    *p = (*p & ~mask) | (in_range & mask);
    IKAT_NEXT;
}

/// Predicate d (ballot: register d) = vote on predicate a among members x.
template <Vote Mode>
const Op* vote(const Op* op, Warp* w, std::byte* frame, u32 mask) {
    const u32* const members = words(frame, op->x);
    if (!members_present(op, w, members, mask)) return nullptr;
    const u32 p = *words(frame, op->a) & mask;
    u32 verdict = 0;
    u32* const d = words(frame, op->d);
    each_lane(mask, [&](unsigned lane) {
        const u32 here = members[lane] & mask, yes = p & here;
        bool is = false;
        switch (Mode) {
            case Vote::All: is = yes == here; break;
            case Vote::Any: is = yes != 0; break;
            case Vote::Uniform: is = yes == here || yes == 0; break;
            case Vote::Ballot: d[lane] = yes; break;
        }
        verdict |= u32(is) << lane;
    });
    if (Mode != Vote::Ballot) *d = (*d & ~mask) | verdict;
    IKAT_NEXT;
}

/// d = members with the same a; match.all also sets predicate y and gives 0 unless all agree.
template <class T, bool All>
const Op* match(const Op* op, Warp* w, std::byte* frame, u32 mask) {
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
        u32* const p = words(frame, op->y);
        *p = (*p & ~mask) | agreed;
    }
    IKAT_NEXT;
}

template <Reduction R>
const Op* reduce(const Op* op, Warp* w, std::byte* frame, u32 mask) {
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
            }
        });
        results[lane] = r;
    });
    u32* const d = words(frame, op->d);
    each_lane(mask, [&](unsigned lane) { d[lane] = results[lane]; });
    IKAT_NEXT;
}

/// d = the lowest member; predicate y holds in that lane.
const Op* elect(const Op* op, Warp* w, std::byte* frame, u32 mask) {
    const u32* const members = words(frame, op->x);
    if (!members_present(op, w, members, mask)) return nullptr;
    u32* const d = words(frame, op->d);
    u32* const p = words(frame, op->y);
    each_lane(mask, [&](unsigned lane) {
        const u32 leader = u32(std::countr_zero(members[lane] & mask));
        d[lane] = leader;
        *p = (*p & ~(1u << lane)) | u32(leader == lane) << lane;
    });
    IKAT_NEXT;
}

const Op* active_mask(const Op* op, Warp* w, std::byte* frame, u32 mask) {
    u32* const d = words(frame, op->d);
    each_lane(mask, [&](unsigned lane) { d[lane] = mask; });
    IKAT_NEXT;
}

}  // namespace

const Op* sync_warp(const Op* op, Warp* w, std::byte* frame, u32 mask) {
    if (!members_present(op, w, words(frame, op->x), mask)) return nullptr;
    IKAT_NEXT;
}

Handler select_shuffle(std::string_view mode) {
    if (mode == ".up") return shuffle<Shuffle::Up>;
    if (mode == ".down") return shuffle<Shuffle::Down>;
    if (mode == ".bfly") return shuffle<Shuffle::Butterfly>;
    if (mode == ".idx") return shuffle<Shuffle::Index>;
    return nullptr;
}

Handler select_vote(Vote mode) {
    switch (mode) {
        case Vote::All: return vote<Vote::All>;
        case Vote::Any: return vote<Vote::Any>;
        case Vote::Uniform: return vote<Vote::Uniform>;
        case Vote::Ballot: return vote<Vote::Ballot>;
    }
    return nullptr;
}

Handler select_match(bool all, unsigned bytes) {
    if (bytes == 8) return all ? match<std::uint64_t, true> : match<std::uint64_t, false>;
    return all ? match<u32, true> : match<u32, false>;
}

Handler select_reduction(Reduction reduction) {
    switch (reduction) {
        case Reduction::Add: return reduce<Reduction::Add>;
        case Reduction::Min: return reduce<Reduction::Min>;
        case Reduction::Max: return reduce<Reduction::Max>;
        case Reduction::MinSigned: return reduce<Reduction::MinSigned>;
        case Reduction::MaxSigned: return reduce<Reduction::MaxSigned>;
        case Reduction::And: return reduce<Reduction::And>;
        case Reduction::Or: return reduce<Reduction::Or>;
        case Reduction::Xor: return reduce<Reduction::Xor>;
    }
    return nullptr;
}

Handler select_elect() { return elect; }
Handler select_active_mask() { return active_mask; }

}  // namespace ikat::emulator
