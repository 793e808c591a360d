// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/emulator/tools/races/note_access.cpp"
#include <hwy/foreach_target.h>
// after foreach_target
#include "runtime/emulator/ops/addresses.inl"
#include "runtime/emulator/tools/races/note_access.hpp"

namespace ikat::emulator::races {
bool note_lanes(const MicroOp* op, Warp* w, const std::byte* frame, std::uint32_t mask);
bool note_group_lanes(const MicroOp* op, Warp* w, const std::byte* frame, std::uint32_t mask);
}  // namespace ikat::emulator::races

HWY_BEFORE_NAMESPACE();
namespace ikat::emulator {
namespace HWY_NAMESPACE {

HWY_NOINLINE IKAT_HANDLER(note_any) {
    if (!races::note_lanes(op, w, frame, mask)) return nullptr;
    IKAT_NEXT;
}

HWY_NOINLINE IKAT_HANDLER(note_any_of_group) {
    if (!races::note_group_lanes(op, w, frame, mask)) return nullptr;
    IKAT_NEXT;
}

/// Whether no two lanes have a byte in common, as far as is seen at once: each is after the one before it.
HWY_INLINE bool are_apart(const std::uint32_t* a, std::uint32_t bytes) {
    std::uint32_t overlaps = 0;
    for (unsigned i = 1; i < warp_size; ++i) overlaps |= a[i] - a[i - 1] - bytes;
    return !(overlaps >> 31);
}

/// By all or some lanes, to shared memory, at addresses of 32 bits.
template <bool writes, bool is_group>
IKAT_HANDLER(note_row) {
    constexpr Handler otherwise = is_group ? note_any_of_group : note_any;
    const std::uint32_t lanes = mask & op->b, bytes = op->c >> 20;
    const auto* const a = lanes_at<std::uint32_t>(frame, op->a);
    if (HWY_UNLIKELY(!lanes)) return otherwise(op, w, frame, mask);
    const hn::ScalableTag<std::uint32_t> v;
    const auto some = hn::Set(v, a[std::countr_zero(lanes)]);
    const auto at_lane = [&](unsigned i) HWY_ATTR {
        const auto address = hn::Load(v, a + i);
        return lanes == all_lanes ? address : hn::IfThenElse(lanes_of(v, lanes, i), address, some);
    };
    auto low = some, high = some;
    for (unsigned i = 0; i < warp_size; i += unsigned(hn::Lanes(v)))
        low = hn::Min(low, at_lane(i)), high = hn::Max(high, at_lane(i));
    const std::uint32_t first = hn::GetLane(hn::MinOfLanes(v, low));
    const std::uint64_t span = std::uint64_t{hn::GetLane(hn::MaxOfLanes(v, high)) - first} + (is_group ? op->y : bytes);
    const std::uint32_t address = first + op->x;
    const View& view = w->windows[int(Space::Shared)].at(address);
    const std::uint64_t at = address - view.base;
    if (HWY_UNLIKELY(!inside(view, at, span))) return otherwise(op, w, frame, mask);
    races::BlockRaces& races = races::races_of(w, op->c & 255);
    const races::RowOf of{.w = w,
                          .op = op,
                          .view = view,
                          .at = at,
                          .span = std::uint32_t(span),
                          .lanes = lanes,
                          .bytes = bytes,
                          .writes = writes,
                          .is_of_all = (op->c >> 12 & 1) != 0,
                          .are_apart = writes && lanes == all_lanes && are_apart(a, bytes),
                          .loads = is_group ? w->lists + op->d : races::LoadGroup::one};
    races::Phase::Row* const row = races.new_row(of);
    if (HWY_UNLIKELY(!row)) return otherwise(op, w, frame, mask);
    const auto base = hn::Set(v, first);
    const hn::Rebind<std::uint16_t, decltype(v)> half;
    for (unsigned i = 0; i < warp_size; i += unsigned(hn::Lanes(v)))
        hn::Store(hn::TruncateTo(half, hn::Sub(hn::Load(v, a + i), base)), half, row->distances.data() + i);
    if (HWY_UNLIKELY(!races.keep(*row, of))) return otherwise(op, w, frame, mask);
    IKAT_NEXT;
}

Handler choose_note(bool is_row, bool writes) {
    return !is_row ? note_any : writes ? note_row<true, false> : note_row<false, false>;
}
Handler choose_note_group() { return note_row<false, true>; }

}  // namespace HWY_NAMESPACE
}  // namespace ikat::emulator
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ikat::emulator {
namespace {
HWY_EXPORT(choose_note);
HWY_EXPORT(choose_note_group);
}  // namespace

namespace races {

// Separate from the handlers, whose last calls are jumps only if no address of their locals escapes.

namespace {

/// `op` says what is accessed, by `by`.
bool note_by(const MicroOp* by, const MicroOp* op, Warp* w, const std::byte* frame, std::uint32_t mask) {
    const AccessForm form = AccessForm::of(op->c);
    std::uint64_t addresses[warp_size];
    std::uint32_t shared = 0, global = 0;
    for (std::uint32_t rest = mask & op->b; rest; rest &= rest - 1) {
        const auto lane = unsigned(std::countr_zero(rest));
        const std::uint64_t base = form.is_wide ? reinterpret_cast<const std::uint64_t*>(frame + op->a)[lane]
                                                : reinterpret_cast<const std::uint32_t*>(frame + op->a)[lane];
        const std::uint64_t address = with_offset(op, form.space, base), window = address >> window_bits;
        const bool is_shared =
            form.space == Space::Shared || (form.space == Space::Generic && window == std::uint64_t(Space::Shared));
        if (!is_shared && window <= std::uint64_t(Space::Const)) continue;  // of the thread, or it cannot be written
        addresses[lane] = is_shared ? address & (window_bytes - 1) : address;
        (is_shared ? shared : global) |= 1u << lane;
    }
    const LaneAccess how{.op = by,
                         .w = w,
                         .frame = frame,
                         .lanes = shared | global,
                         .bytes = form.bytes,
                         .direction = form.direction,
                         .is_strong = form.is_strong,
                         .is_of_all = form.is_of_all,
                         .scope = form.scope,
                         .values = form.has_values ? w->lists + op->d : nullptr};
    BlockRaces& races = races_of(w, form.slot);
    return (!shared || races.access_shared(how, addresses, shared)) &&
           (!global || races.access_global(how, addresses, global));
}

}  // namespace

bool note_lanes(const MicroOp* op, Warp* w, const std::byte* frame, std::uint32_t mask) {
    return note_by(op, op, w, frame, mask);
}

bool note_group_lanes(const MicroOp* op, Warp* w, const std::byte* frame, std::uint32_t mask) {
    MicroOp one = *op;
    return LoadGroup(w->lists + op->d).each([&](const LoadGroup::Load& load) {
        one.x = op->x + load.offset;
        return note_by(op + load.distance, &one, w, frame, mask);
    });
}

Handler select_note_access(const AccessForm& form) {
    return HWY_DYNAMIC_DISPATCH(choose_note)(form.is_row(), form.direction != Direction::Read);
}
Handler select_note_group() { return HWY_DYNAMIC_DISPATCH(choose_note_group)(); }

}  // namespace races
}  // namespace ikat::emulator
#endif
