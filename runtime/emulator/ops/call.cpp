// SPDX-License-Identifier: Apache-2.0
// Calls at run time, and the stack. Each lane has two:
//
//     in local memory   frames of parameters and variables: their addresses may be passed
//     separately        what calls save: registers, the stack pointer, the return address
//
// A call is push_frame, the stores of its arguments, call_lanes; then the callee from enter_frame to return_lanes; then
// restore_lanes, the loads of the results, pop_frame. Lanes may be at different depths and return to different places.
#include <algorithm>
#include <bit>

#include "runtime/emulator/core/definedness.hpp"
#include "runtime/emulator/ops/control.hpp"

namespace ikat::emulator {

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr std::size_t max_kept_words = 1 << 16;  // words that the calls of one lane may save

template <class F>
void each_lane(u32 mask, F f) {
    for (u32 rest = mask; rest; rest &= rest - 1) f(unsigned(std::countr_zero(rest)));
}

u64* double_words(std::byte* frame, u32 offset) { return reinterpret_cast<u64*>(frame + offset); }

const MicroOp* overflow(Warp* w, const MicroOp* op, unsigned lane) {
    return fail(w, op, {.code = FaultCode::FullStack, .lane = lane});
}

/// `bytes` more on the stack of a lane, from a multiple of `alignment`; false if there is no room.
bool push(Warp* w, unsigned lane, u64 alignment, u64 bytes, u64& at) {
    const u64 limit = w->stack_end;
    at = (w->stack_top[lane] + alignment - 1) & ~(alignment - 1);
    if (bytes > limit || at > limit - bytes) return false;
    w->stack_top[lane] = at + bytes;
    return true;
}

/// Marks a new part of the stack as uninitialised: values of earlier calls do not count.
void forget_written(const Warp* w, unsigned lane, u64 from, u64 to) {
    if (from == to) return;
    const View view = w->windows[int(Space::Local)].at(from);
    written::set(view.bits + lane * (view.lane_stride / 8), from - view.base, to - from, false, false);
}

u64 pop(std::vector<u64>& stack) {
    const u64 word = stack.back();
    stack.pop_back();
    return word;
}

/// Lanes continue at w->targets: together if they agree, else through the scheduler.
const MicroOp* scatter(Warp* w, u32 mask) {
    w->leave = Leave::Scatter;
    w->mask = mask;
    return nullptr;
}

/// A register of a lane by its slot: pairs of offset and bytes (0 for a predicate) in a kernel's lists.
u64 read_register(const std::byte* frame, const u32* place, unsigned lane) {
    const std::byte* const at = frame + place[0];
    if (place[1] == 8) return reinterpret_cast<const u64*>(at)[lane];
    if (place[1] == 4) return reinterpret_cast<const u32*>(at)[lane];
    return *reinterpret_cast<const u32*>(at) >> lane & 1;
}

void write_register(std::byte* frame, const u32* place, unsigned lane, u64 value) {
    std::byte* const at = frame + place[0];
    if (place[1] == 8) {
        reinterpret_cast<u64*>(at)[lane] = value;
    } else if (place[1] == 4) {
        reinterpret_cast<u32*>(at)[lane] = u32(value);
    } else {
        u32& lanes = *reinterpret_cast<u32*>(at);
        lanes = (lanes & ~(1u << lane)) | u32(value) << lane;
    }
}

/// Its undefined bytes, as a set.
u32 undefined_bytes(const Warp* w, const u32* place, unsigned lane) {
    const u32* const masks = undefined_at(w, place[0]);
    u32 bytes = masks[0] >> lane & 1;
    for (u32 k = 1; k < place[1]; ++k) bytes |= (masks[k] >> lane & 1) << k;
    return bytes;
}

void set_undefined_bytes(const Warp* w, const u32* place, unsigned lane, u32 bytes) {
    u32* const masks = undefined_at(w, place[0]);
    for (u32 k = 0; k < std::max(place[1], 1u); ++k) {
        masks[k] = (masks[k] & ~(1u << lane)) | (bytes >> k & 1) << lane;
        masks[w->definedness->words + k] &= ~(1u << lane);
    }
}

/// The number of the function at an address, or the count of functions.
u64 function_at(const Warp* w, u64 address) {
    if (address < function_address(0) || address % function_address(0)) return w->function_count;
    return std::min<u64>(address / function_address(0) - 1, w->function_count);
}

}  // namespace

#define IKAT_CONTROL_HANDLER(name)                                                    \
    const MicroOp* name([[maybe_unused]] const MicroOp* op, [[maybe_unused]] Warp* w, \
                        [[maybe_unused]] std::byte* frame, u32 mask)

namespace {

/// Finds the targets of the lanes of a call; false on a finding.
bool find_callees(const MicroOp* op, Warp* w, std::byte* frame, u32 mask) {
    for (u32 rest = mask; rest; rest &= rest - 1) {
        const auto lane = unsigned(std::countr_zero(rest));
        const auto refuse = [&](FaultCode code) {
            fail(w, op, {.code = code, .lane = lane});
            return false;
        };
        const u64 number = op->c != ~0u ? op->c : function_at(w, double_words(frame, op->a)[lane]);
        if (number >= w->function_count || w->functions[number].op == ~0u) return refuse(FaultCode::NoFunction);
        if (w->functions[number].parameter_bytes != op->b) return refuse(FaultCode::OtherParameters);
        w->targets[lane] = w->functions[number].op;
    }
    return true;
}

/// A call saves what its caller needs; in the checked code also which of it is undefined, and that the code was
/// checked.
template <bool Checked>
IKAT_CONTROL_HANDLER(call) {
    w->count(op->y);
    if (!find_callees(op, w, frame, mask)) return nullptr;
    const u32* const list = w->lists + op->x;
    const u32 next = w->index_of(op + 1);
    for (u32 rest = mask; rest; rest &= rest - 1) {
        const auto lane = unsigned(std::countr_zero(rest));
        std::vector<u64>& kept = w->call_stack[lane];
        if (kept.size() + 2 * list[0] > max_kept_words) return overflow(w, op, lane);
        if constexpr (Checked)
            for (u32 i = 0; i < list[0]; ++i) kept.push_back(undefined_bytes(w, list + 1 + 2 * i, lane));
        kept.push_back(Checked);
        for (u32 i = 0; i < list[0]; ++i) kept.push_back(read_register(frame, list + 1 + 2 * i, lane));
        kept.push_back(Checked ? w->definedness->plain_of[next] : next);
    }
    return scatter(w, mask);
}

template <bool Checked>
IKAT_CONTROL_HANDLER(restore) {
    const u32* const list = w->lists + op->x;
    each_lane(mask, [&](unsigned lane) {
        std::vector<u64>& kept = w->call_stack[lane];
        for (u32 i = list[0]; i-- > 0;) write_register(frame, list + 1 + 2 * i, lane, pop(kept));
        const bool was_checked = pop(kept) != 0;  // else all of the caller's values were defined
        if constexpr (Checked)                    // checked code is never left
            for (u32 i = list[0]; i-- > 0;)
                set_undefined_bytes(w, list + 1 + 2 * i, lane, was_checked ? u32(pop(kept)) : 0);
    });
    IKAT_NEXT;
}

template <bool Checked>
IKAT_CONTROL_HANDLER(leave_function) {
    w->count(op->y);
    each_lane(mask, [&](unsigned lane) {
        const u64 next = pop(w->call_stack[lane]);
        w->targets[lane] = Checked ? w->definedness->checked_of[next] : u32(next);
    });
    return scatter(w, mask);
}

}  // namespace

IKAT_CONTROL_HANDLER(push_frame) {
    for (u32 rest = mask; rest; rest &= rest - 1) {
        const auto lane = unsigned(std::countr_zero(rest));
        std::vector<u64>& kept = w->call_stack[lane];
        const u64 pointer = w->stack_pointer[lane], top = w->stack_top[lane];
        if (!push(w, lane, 16, op->x, w->stack_pointer[lane])) return overflow(w, op, lane);
        forget_written(w, lane, w->stack_pointer[lane], w->stack_top[lane]);
        kept.push_back(pointer);
        kept.push_back(top);
        double_words(frame, op->d)[lane] = w->stack_pointer[lane];
    }
    IKAT_NEXT;
}

IKAT_CONTROL_HANDLER(call_lanes) { return call<false>(op, w, frame, mask); }
IKAT_CONTROL_HANDLER(call_lanes_checked) { return call<true>(op, w, frame, mask); }
IKAT_CONTROL_HANDLER(restore_lanes) { return restore<false>(op, w, frame, mask); }
IKAT_CONTROL_HANDLER(restore_lanes_checked) { return restore<true>(op, w, frame, mask); }
IKAT_CONTROL_HANDLER(return_lanes) { return leave_function<false>(op, w, frame, mask); }
IKAT_CONTROL_HANDLER(return_lanes_checked) { return leave_function<true>(op, w, frame, mask); }

IKAT_CONTROL_HANDLER(read_frame) {
    each_lane(mask, [&](unsigned lane) { double_words(frame, op->d)[lane] = w->stack_pointer[lane]; });
    IKAT_NEXT;
}

IKAT_CONTROL_HANDLER(pop_frame) {
    each_lane(mask, [&](unsigned lane) {
        w->stack_top[lane] = pop(w->call_stack[lane]);
        w->stack_pointer[lane] = pop(w->call_stack[lane]);
    });
    IKAT_NEXT;
}

IKAT_CONTROL_HANDLER(enter_frame) {
    for (u32 rest = mask; rest; rest &= rest - 1) {
        const auto lane = unsigned(std::countr_zero(rest));
        u64 at = 0;
        const u64 after_parameters = w->stack_top[lane];
        w->stack_top[lane] = w->stack_pointer[lane];
        if (!push(w, lane, 1, op->x, at)) return overflow(w, op, lane);
        forget_written(w, lane, after_parameters, w->stack_top[lane]);
        double_words(frame, op->d)[lane] = w->stack_pointer[lane];
    }
    IKAT_NEXT;
}

IKAT_CONTROL_HANDLER(allocate_on_stack) {
    for (u32 rest = mask; rest; rest &= rest - 1) {
        const auto lane = unsigned(std::countr_zero(rest));
        u64 at = 0;
        if (!push(w, lane, op->x, double_words(frame, op->a)[lane], at)) return overflow(w, op, lane);
        forget_written(w, lane, at, w->stack_top[lane]);
        double_words(frame, op->d)[lane] = at;
    }
    IKAT_NEXT;
}

IKAT_CONTROL_HANDLER(save_stack) {
    each_lane(mask, [&](unsigned lane) { double_words(frame, op->d)[lane] = w->stack_top[lane]; });
    IKAT_NEXT;
}

IKAT_CONTROL_HANDLER(restore_stack) {
    for (u32 rest = mask; rest; rest &= rest - 1) {
        const auto lane = unsigned(std::countr_zero(rest));
        const u64 top = double_words(frame, op->a)[lane];
        if (top < w->stack_base || top > w->stack_end) return overflow(w, op, lane);
        w->stack_top[lane] = top;
    }
    IKAT_NEXT;
}

}  // namespace ikat::emulator
