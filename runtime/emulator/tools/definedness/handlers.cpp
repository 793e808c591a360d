// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/tools/definedness/definedness.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/emulator/core/memory/written.hpp"
#include "runtime/emulator/machine/block.hpp"
#include "runtime/emulator/ops/control.hpp"

namespace ikat::emulator {

namespace {

using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

u32 field(const MicroOp& op, unsigned i) {
    return i == 0 ? op.d : i == 1 ? op.a : i == 2 ? op.b : i == 3 ? op.c : i == 4 ? op.x : op.y;
}

/// The low bytes of a word.
u64 low(u32 bytes) { return bytes >= 8 ? ~u64{0} : (u64{1} << 8 * bytes) - 1; }

/// A register of a lane: its value, its undefined bits, and those of them that are computed. A predicate has 0 bytes
/// and one bit.
struct Operand {
    u64 u = 0, v = 0, computed = 0;
};
Operand read(const Warp* w, const std::byte* frame, u32 offset, u32 bytes, unsigned lane) {
    const u32 *const masks = undefined_at(w, offset), *const computed = computed_at(w, offset);
    const std::byte* const at = frame + offset;
    if (bytes == 0)
        return {masks[0] >> lane & 1, *reinterpret_cast<const u32*>(at) >> lane & 1, computed[0] >> lane & 1};
    Operand operand;
    for (u32 k = 0; k < bytes; ++k) {
        if (masks[k] >> lane & 1) operand.u |= u64{0xff} << 8 * k;
        if (computed[k] >> lane & 1) operand.computed |= u64{0xff} << 8 * k;
    }
    operand.v = bytes == 8 ? reinterpret_cast<const u64*>(at)[lane] : reinterpret_cast<const u32*>(at)[lane];
    return operand;
}

void write(const Warp* w, u32 offset, u32 bytes, unsigned lane, u64 u, u64 computed = 0) {
    u32 *const masks = undefined_at(w, offset), *const of_computed = computed_at(w, offset);
    const u32 bit = 1u << lane;
    const auto set = [&](u32& mask, u64 bits) { mask = bits & 0xff ? mask | bit : mask & ~bit; };
    for (u32 k = 0; k < (bytes ? bytes : 1); ++k) set(masks[k], u >> 8 * k), set(of_computed[k], computed >> 8 * k);
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
    }
    return 0;
}

/// A finding; false if it stops the warp.
bool uses(Warp* w, const MicroOp* op, unsigned lane, DefinedUse use) {
    return passes(w, op, {.code = FaultCode(int(FaultCode::UndefinedAddress) + int(use)), .lane = lane});
}

/// Whether an undefined value says what is moved where.
bool is_led_by_undefined(Propagation rule, const Operand (&s)[4]) {
    switch (rule) {
        case Propagation::ShiftLeft:
        case Propagation::ShiftRight:
        case Propagation::ShiftRightSigned: return s[1].u;
        case Propagation::FunnelLeft:
        case Propagation::FunnelRight:
        case Propagation::Choose:
        case Propagation::Permute: return s[2].u;
        case Propagation::Extract: return s[1].u || s[2].u;
        case Propagation::Insert: return s[2].u || s[3].u;
        default: return false;
    }
}

/// Which undefined bits of the result are computed: all that arithmetic has made, and of what only moves those that
/// were.
u64 computed_bits(Propagation rule, const Operand (&s)[4], u32 x, unsigned bits, u64 undefined) {
    if (!moves(rule) || is_led_by_undefined(rule, s)) return undefined;
    Operand of_computed[4];
    for (unsigned i = 0; i < 4; ++i) of_computed[i] = {s[i].computed, s[i].v};
    return undefined & transfer(rule, of_computed, x, bits);
}

const MicroOp* definedness(const MicroOp* op, Warp* w, std::byte* frame, u32 mask) {
    const MicroOp& real = op[1];
    u32 sources[4] = {}, widths[4] = {}, count = 0, lanes = 0;
    for (unsigned i = 0; i < 6; ++i) {
        if (!(op->a >> i & 1) || count == 4) continue;
        sources[count] = field(real, i);
        const u32 bytes = widths[count] = op->c >> 4 * i & 15;
        const u32* const masks = undefined_at(w, sources[count++]);
        for (u32 k = 0; k < (bytes ? bytes : 1); ++k) lanes |= masks[k];
    }
    // A list, results first: all its sources are treated alike.
    const u32* const list = op->y ? w->lists + real.d : nullptr;
    const u32 results = op->y ? op->y - 1 : 0;
    for (u32 i = results; list && i < list[0]; ++i) {
        const u32* const masks = undefined_at(w, list[1 + 2 * i]);
        for (u32 k = 0; k < std::max(list[2 + 2 * i], 1u); ++k) lanes |= masks[k];
    }
    lanes &= mask;
    const bool is_use = op->d >= first_use;
    const Propagation rule = is_use ? Propagation::Mix : Propagation(op->d);
    if (is_use && lanes && !uses(w, op, unsigned(std::countr_zero(lanes)), DefinedUse(op->d - first_use)))
        return nullptr;
    for (unsigned i = 0; i < 6; ++i) {
        if (!(op->b >> i & 1)) continue;
        const u32 to = field(real, i), bytes = op->c >> 4 * i & 15;
        const unsigned bits = bytes ? 8 * bytes : 1;
        u64 undefined[warp_size], computed[warp_size];
        u32 maker = moves(rule) ? ~0u : w->index_of(op + 1);
        for (u32 rest = lanes; rest; rest &= rest - 1) {
            const auto lane = unsigned(std::countr_zero(rest));
            Operand s[4];
            for (u32 k = 0; k < count; ++k) s[k] = read(w, frame, sources[k], widths[k], lane);
            undefined[lane] = is_use ? 0 : transfer(rule, s, op->x, bits) & (bytes ? low(bytes) : 1);
            computed[lane] = computed_bits(rule, s, op->x, bits, undefined[lane]);
            for (u32 k = 0; k < count && maker == ~0u; ++k)
                if (s[k].computed && widths[k]) maker = maker_of(w, sources[k]);
            if (is_led_by_undefined(rule, s)) maker = w->index_of(op + 1);
        }
        if (lanes && bytes) maker_of(w, to) = maker;
        set_undefined(w, to, bytes, mask & ~lanes, false);
        for (u32 rest = lanes; rest; rest &= rest - 1)
            write(w, to, bytes, unsigned(std::countr_zero(rest)), undefined[std::countr_zero(rest)],
                  computed[std::countr_zero(rest)]);
    }
    for (u32 i = 0; i < results; ++i) {
        set_undefined(w, list[1 + 2 * i], list[2 + 2 * i], mask & ~lanes, false);
        set_undefined(w, list[1 + 2 * i], list[2 + 2 * i], lanes, true);
        if (lanes && list[2 + 2 * i]) maker_of(w, list[1 + 2 * i]) = w->index_of(op + 1);
    }
    IKAT_NEXT;
}

constexpr unsigned element_fields[4] = {0, 2, 3, 5};

/// A load or store of the checked code, which does the whole access: the op after it, the plain one, is skipped.
class Access {
public:
    Access(const MicroOp* op, Warp* w, std::byte* frame, u32 mask)
        : op_(op), w_(w), frame_(frame), mask_(mask), space_(Space(op->a)), bytes_(op->b), total_(op->b * count()) {}

    bool load() {
        const auto note = [&](unsigned lane, const Place& at) {
            const u8* const bits = at.view.written ? at.bits(lane) : nullptr;
            u64 from = at.offset;
            bool some = false;
            each_element([&](u32 place, unsigned) {
                u64 u = 0;
                for (u32 k = 0; bits && k < bytes_; ++k, ++from)
                    if (!(bits[from / 8] >> from % 8 & 1)) u |= u64{0xff} << 8 * k;
                write(w_, place, cell(), lane, u);
                if (u) w_->definedness->unwritten = {w_->index_of(op_), space_, at.address, total_};
                some |= u != 0;
            });
            return !some || !is_shared(at.address) || !touches_agent(w_, op_, space_, lane, at.address, total_, false);
        };
        const auto move = [&](unsigned lane, const std::byte* from) {
            each_element([&](u32 place, unsigned i) {
                if (bytes_ == 8) return void(std::memcpy(frame_ + place + 8 * lane, from + 8 * i, 8));
                u32 value = 0;
                std::memcpy(&value, from + bytes_ * i, bytes_);
                std::memcpy(frame_ + place + 4 * lane, &value, 4);
            });
        };
        return each_lane(false, note, move, w_->bytes_read);
    }

    /// Computed bytes may not be stored to global memory.
    bool store() {
        const auto note = [&](unsigned lane, const Place& at) {
            u64 u[4] = {};
            bool some = false, is_computed = false;
            each_element([&](u32 place, unsigned i) {
                const Operand element = read(w_, frame_, place, cell(), lane);
                u[i] = element.u & low(bytes_);
                some |= u[i] != 0;
                if (!(element.computed & low(bytes_))) return;
                is_computed = true;
                w_->definedness->stored_of = maker_of(w_, place);
            });
            const bool global = is_global(at.address);
            if (global && is_computed && !uses(w_, op_, lane, DefinedUse::Store)) return false;
            if (!at.view.writable || (!some && !at.view.written)) return true;
            if (some && is_shared(at.address)) {
                // At its wait the copy would not notice: the bits stay as they are.
                if (touches_agent(w_, op_, space_, lane, at.address, total_, true)) return false;
                w_->block->reopen(at.address & (window_bytes - 1));
            }
            u8* const to = at.bits(lane);
            for (u32 k = 0; to && k < total_; ++k)
                written::set(to, at.offset + k, 1, w_->parallel && global, !(u[k / bytes_] >> 8 * (k % bytes_) & 0xff));
            return true;
        };
        const auto move = [&](unsigned lane, std::byte* to) {
            each_element([&](u32 place, unsigned i) {
                std::memcpy(to + bytes_ * i, frame_ + place + (bytes_ == 8 ? 8 : 4) * lane, bytes_);
            });
        };
        return each_lane(true, note, move, w_->bytes_written);
    }

private:
    /// The memory that a lane accesses; empty if out of bounds.
    struct Place {
        View view;
        u64 address = 0, offset = 0;
        u8* bits(unsigned lane) const { return view.bits ? view.bits + lane * (view.lane_stride / 8) : nullptr; }
    };

    u32 count() const { return u32(std::popcount(op_->d)); }
    u32 cell() const { return bytes_ == 8 ? 8 : 4; }
    bool is_global(u64 address) const {
        return address >> window_bits > u64(Space::Const) && (space_ == Space::Global || space_ == Space::Generic);
    }

    bool is_shared(u64 address) const {
        return space_ == Space::Shared || (space_ == Space::Generic && address >> window_bits == u64(Space::Shared));
    }

    template <class F>
    void each_element(F f) const {
        unsigned n = 0;
        for (const unsigned i : element_fields)
            if (op_->d >> i & 1) f(field(op_[1], i), n++);
    }

    /// First handles definedness for all lanes, by f(lane, place); then moves the data, by move(lane, memory). False on
    /// a finding.
    template <class F, class M>
    bool each_lane(bool stores, F f, M move, u64& bytes_moved) {
        std::byte* memory[warp_size];
        u64 addresses[warp_size];
        for (u32 rest = mask_; rest; rest &= rest - 1) {
            const auto lane = unsigned(std::countr_zero(rest));
            const Operand base = read(w_, frame_, op_[1].a, op_->c, lane);
            if (base.u && !uses(w_, op_, lane, DefinedUse::Address)) return false;
            Place at;
            at.address = with_offset(op_ + 1, space_, base.v);
            at.view = view_of(*w_, space_, at.address);
            at.offset = at.address - at.view.base;
            if (at.view.bytes < total_ || at.offset > at.view.bytes - total_) at.view = {};
            if (!f(lane, at)) return false;
            const bool fits = at.view.bytes && at.address % total_ == 0 && (at.view.writable || !stores);
            memory[lane] = fits ? at.view.host + at.offset + lane * at.view.lane_stride : nullptr;
            addresses[lane] = at.address;
        }
        for (u32 rest = mask_; rest; rest &= rest - 1) {
            const auto lane = unsigned(std::countr_zero(rest));
            if (!memory[lane]) memory[lane] = lane_bytes(w_, op_ + 1, space_, lane, addresses[lane], total_, stores);
            if (!memory[lane]) return false;
            move(lane, memory[lane]);
        }
        if (is_global(addresses[std::countr_zero(mask_)])) bytes_moved += total_ * u32(std::popcount(mask_));
        return true;
    }

    const MicroOp* const op_;
    Warp* const w_;
    std::byte* const frame_;
    const u32 mask_;
    const Space space_;
    const u32 bytes_, total_;  // of an element, of all
};

// Separate from the handlers, whose last calls are jumps only if no address of their locals escapes.
[[gnu::noinline]] bool load(const MicroOp* op, Warp* w, std::byte* frame, u32 mask) {
    return Access(op, w, frame, mask).load();
}
[[gnu::noinline]] bool store(const MicroOp* op, Warp* w, std::byte* frame, u32 mask) {
    return Access(op, w, frame, mask).store();
}

const MicroOp* checked_load(const MicroOp* op, Warp* w, std::byte* frame, u32 mask) {
    if (!load(op, w, frame, mask)) return nullptr;
    IKAT_CONTINUE(2);
}
const MicroOp* checked_store(const MicroOp* op, Warp* w, std::byte* frame, u32 mask) {
    if (!store(op, w, frame, mask)) return nullptr;
    IKAT_CONTINUE(2);
}

}  // namespace

Handler select_definedness() { return definedness; }
Handler select_checked_load() { return checked_load; }
Handler select_checked_store() { return checked_store; }

}  // namespace ikat::emulator
