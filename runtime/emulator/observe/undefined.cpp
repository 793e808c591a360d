// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/observe/undefined.hpp"

#include <bit>

#include "runtime/emulator/machine/block.hpp"
#include "runtime/emulator/machine/written.hpp"
#include "runtime/emulator/ops/control.hpp"

namespace ikat::emulator {

namespace {

using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

u32 field(const Op& op, unsigned i) {
    return i == 0 ? op.d : i == 1 ? op.a : i == 2 ? op.b : i == 3 ? op.c : i == 4 ? op.x : op.y;
}

/// The low bytes of a word.
u64 low(u32 bytes) { return bytes >= 8 ? ~u64{0} : (u64{1} << 8 * bytes) - 1; }

/// A register of a lane: its value, and its undefined bits. A predicate has 0 bytes and one bit.
struct Operand {
    u64 u = 0, v = 0;
};
Operand read(const Warp* w, const std::byte* frame, u32 offset, u32 bytes, unsigned lane) {
    const u32* const masks = undefined_at(w, offset);
    const std::byte* const at = frame + offset;
    if (bytes == 0) return {masks[0] >> lane & 1, *reinterpret_cast<const u32*>(at) >> lane & 1};
    Operand operand;
    for (u32 k = 0; k < bytes; ++k)
        if (masks[k] >> lane & 1) operand.u |= u64{0xff} << 8 * k;
    operand.v = bytes == 8 ? reinterpret_cast<const u64*>(at)[lane] : reinterpret_cast<const u32*>(at)[lane];
    return operand;
}

void write(const Warp* w, u32 offset, u32 bytes, unsigned lane, u64 u) {
    u32* const masks = undefined_at(w, offset);
    const u32 bit = 1u << lane;
    for (u32 k = 0; k < (bytes ? bytes : 1); ++k) masks[k] = u >> 8 * k & 0xff ? masks[k] | bit : masks[k] & ~bit;
}

u64 all_if(bool undefined) { return undefined ? ~u64{0} : 0; }

/// The undefined bits of the result; `bits` is the width of the operation.
u64 transfer(Propagation rule, const Operand (&s)[4], u32 x, unsigned bits) {
    const auto& [a, b, c, d] = s;
    const u64 any = a.u | b.u | c.u | d.u;
    const auto by = [&](const Operand& amount, u64 shifted) { return amount.u ? ~u64{0} : shifted; };
    switch (rule) {
        case Propagation::Mix: return all_if((x ? a.u & low(x) : a.u) | b.u | c.u | d.u);
        case Propagation::Upward: return any ? ~((any & -any) - 1) : 0;
        case Propagation::Either: return any;
        case Propagation::And: return any & (a.u | a.v) & (b.u | b.v);
        case Propagation::Or: return any & (a.u | ~a.v) & (b.u | ~b.v);
        case Propagation::ShiftLeft: return by(b, u32(b.v) >= bits ? 0 : a.u << u32(b.v));
        case Propagation::ShiftRight: return by(b, u32(b.v) >= bits ? 0 : a.u >> u32(b.v));
        case Propagation::ShiftRightSigned: {
            const bool sign = a.u >> (bits - 1) & 1;
            const u64 extended = sign ? a.u | ~(bits == 64 ? ~u64{0} : (u64{1} << bits) - 1) : a.u;
            return by(b, u64(std::int64_t(extended) >> std::min(u32(b.v), 63u)));
        }
        case Propagation::FunnelLeft: return by(c, ((b.u << 32 | a.u) << std::min(u32(c.v), 32u)) >> 32);
        case Propagation::FunnelRight: return by(c, (b.u << 32 | a.u) >> std::min(u32(c.v), 32u));
        case Propagation::Extract: {
            const u32 place = b.v & 255, length = c.v & 255;
            const u64 field = length >= 64 ? ~u64{0} : (u64{1} << length) - 1;
            return all_if(b.u || c.u || (place < 64 && (a.u >> place & field)));
        }
        case Propagation::Insert: {
            const u32 place = c.v & 255, length = d.v & 255;
            if (c.u || d.u) return ~u64{0};
            const u64 field = place >= 64 ? 0 : (length >= 64 ? ~u64{0} : (u64{1} << length) - 1) << place;
            return (b.u & ~field) | (place >= 64 ? 0 : a.u << place & field);
        }
        case Propagation::Choose: return by(c, c.v & 1 ? a.u : b.u);
        case Propagation::Pack: return (a.u & (bits == 64 ? 0xffffffff : 0xffff)) | b.u << bits / 2;
        case Propagation::ZeroExtend: return a.u & low(x);
        case Propagation::SignExtend: return (a.u & low(x)) | (a.u >> (8 * x - 1) & 1 ? ~low(x) : 0);
        case Propagation::Permute: {
            const u64 bytes = b.u << 32 | (a.u & 0xffffffff);
            u64 out = 0;
            for (unsigned k = 0; k < 4; ++k) out |= (bytes >> 8 * (c.v >> 4 * k & 7) & 0xff) << 8 * k;
            return by(c, out);
        }
        case Propagation::Use: break;
    }
    return 0;
}

const Op* find(Warp* w, const Op* op, unsigned lane, DefinedUse use) {
    static constexpr const char* uses[] = {"an address is undefined",
                                           "a branch is on an undefined value",
                                           "an instruction's guard is undefined",
                                           "an operand of a barrier is undefined",
                                           "a warp-wide instruction is given an undefined value",
                                           "an atomic is given an undefined value",
                                           "an undefined value is printed",
                                           "a call or an allocation is given an undefined value",
                                           "an undefined value is stored to a buffer",
                                           "the lane or mask of a shuffle is undefined"};
    return fail(w, op, {.kind = Fault::Kind::Undefined, .lane = lane, .message = uses[int(use)]});
}

const Op* definedness(const Op* op, Warp* w, std::byte* frame, u32 mask) {
    const Op& real = op[1];
    u32 sources[4] = {}, widths[4] = {}, count = 0, lanes = 0;
    for (unsigned i = 0; i < 6; ++i) {
        if (!(op->a >> i & 1) || count == 4) continue;
        sources[count] = field(real, i);
        const u32 bytes = widths[count] = op->c >> 4 * i & 15;
        const u32* const masks = undefined_at(w, sources[count++]);
        for (u32 k = 0; k < (bytes ? bytes : 1); ++k) lanes |= masks[k];
    }
    lanes &= mask;
    const Propagation rule = Propagation(op->d);
    if (rule == Propagation::Use && lanes) return find(w, op, unsigned(std::countr_zero(lanes)), DefinedUse(op->x));
    for (unsigned i = 0; i < 6; ++i) {
        if (!(op->b >> i & 1)) continue;
        const u32 to = field(real, i), bytes = op->c >> 4 * i & 15;
        const unsigned bits = bytes ? 8 * bytes : 1;
        u64 results[warp_size];
        for (u32 rest = lanes; rest; rest &= rest - 1) {
            const auto lane = unsigned(std::countr_zero(rest));
            Operand s[4];
            for (u32 k = 0; k < count; ++k) s[k] = read(w, frame, sources[k], widths[k], lane);
            results[lane] = transfer(rule, s, op->x, bits) & (bytes ? low(bytes) : 1);
        }
        set_undefined(w, to, bytes, mask & ~lanes, false);
        for (u32 rest = lanes; rest; rest &= rest - 1)
            write(w, to, bytes, unsigned(std::countr_zero(rest)), results[std::countr_zero(rest)]);
    }
    IKAT_NEXT;
}

/// What a lane accesses. Outside of memory it is nothing: the op itself says so.
struct Access {
    View view;
    u64 at = 0, address = 0;
    u8* bits(unsigned lane) const { return view.bits ? view.bits + lane * (view.lane_stride / 8) : nullptr; }
};
constexpr unsigned element_fields[4] = {0, 2, 3, 5};

bool address_of(const Op* op, const Warp* w, const std::byte* frame, unsigned lane, u32 bytes, Access& access) {
    const Operand base = read(w, frame, op[1].a, op->c, lane);
    if (base.u) return false;
    access.address = with_offset(op + 1, Space(op->a), base.v);
    access.view = view_of(*w, Space(op->a), access.address);
    access.at = access.address - access.view.base;
    if (access.view.bytes < bytes || access.at > access.view.bytes - bytes) access.view = {};
    return true;
}

/// Calls f(lane, access) for each lane until one is a finding; false if one is.
template <class F>
bool each_access(const Op* op, Warp* w, const std::byte* frame, u32 mask, u32 bytes, F f) {
    for (u32 rest = mask; rest; rest &= rest - 1) {
        const auto lane = unsigned(std::countr_zero(rest));
        Access access;
        if (!address_of(op, w, frame, lane, bytes, access)) {
            find(w, op, lane, DefinedUse::Address);
            return false;
        }
        if (!f(lane, access)) return false;
    }
    return true;
}

const Op* definedness_of_load(const Op* op, Warp* w, std::byte* frame, u32 mask) {
    const u32 bytes = op->b, total = bytes * u32(std::popcount(op->d));
    const auto load = [&](unsigned lane, const Access& access) {
        const u8* const bits = access.view.written ? access.bits(lane) : nullptr;
        u64 at = access.at;
        for (const unsigned i : element_fields) {
            if (!(op->d >> i & 1)) continue;
            u64 u = 0;
            for (u32 k = 0; bits && k < bytes; ++k, ++at)
                if (!(bits[at / 8] >> at % 8 & 1)) u |= u64{0xff} << 8 * k;
            write(w, field(op[1], i), bytes == 8 ? 8 : 4, lane, u);
            if (u) w->unwritten = {w->index_of(op), Space(op->a), access.address, total};
        }
        return true;
    };
    if (!each_access(op, w, frame, mask, total, load)) return nullptr;
    IKAT_NEXT;
}

/// To global memory nothing undefined is stored but what may be padding: bytes of a word, which is no float, behind its
/// first, and whole words of a vector beside others.
const Op* definedness_of_store(const Op* op, Warp* w, std::byte* frame, u32 mask) {
    const u32 bytes = op->b, total = bytes * u32(std::popcount(op->d));
    const auto store = [&](unsigned lane, const Access& access) {
        u64 u[4] = {};
        unsigned n = 0, gone = 0;
        bool some = false, bad = false;
        for (const unsigned i : element_fields) {
            if (!(op->d >> i & 1)) continue;
            u[n] = read(w, frame, field(op[1], i), bytes == 8 ? 8 : 4, lane).u & low(bytes);
            some |= u[n] != 0;
            const bool whole = u[n] == low(bytes);
            gone += whole;
            bad |= op->x ? u[n] != 0 : !whole && (u[n] & 1);
            ++n;
        }
        const bool global = access.address >> window_bits > u64(Space::Const) && Space(op->a) != Space::Shared;
        if (global && (bad || gone == n)) {
            find(w, op, lane, DefinedUse::Store);
            return false;
        }
        if (!access.view.writable || (!some && !access.view.written)) return true;
        if (some && !access.view.written) w->block->reopen(access.address);
        u8* const to = access.bits(lane);
        for (u32 k = 0; to && k < total; ++k)
            written::set(to, access.at + k, 1, w->parallel && global, !(u[k / bytes] >> 8 * (k % bytes) & 0xff));
        return true;
    };
    if (!each_access(op, w, frame, mask, total, store)) return nullptr;
    IKAT_NEXT;
}

}  // namespace

void shuffle_definedness(const Op* op, Warp* w, u32 mask, const u32* sources, const u32* there) {
    const u32* const masks = undefined_at(w, op->a);
    const u32 from[4] = {masks[0], masks[1], masks[2], masks[3]};  // d may be a
    for (u32 rest = mask; rest; rest &= rest - 1) {
        const auto lane = unsigned(std::countr_zero(rest));
        const bool absent = !(there[lane] >> sources[lane] & 1);
        u64 u = absent ? ~u64{0} : 0;
        for (unsigned k = 0; k < 4; ++k)
            if (from[k] >> sources[lane] & 1) u |= u64{0xff} << 8 * k;
        write(w, op->d, 4, lane, u);
        if (absent) w->unwritten = {w->index_of(op), Space::Generic, sources[lane], 0};
    }
    set_undefined(w, op->y, 0, mask, false);
}

Handler select_definedness() { return definedness; }
Handler select_definedness_of_load() { return definedness_of_load; }
Handler select_definedness_of_store() { return definedness_of_store; }

}  // namespace ikat::emulator
