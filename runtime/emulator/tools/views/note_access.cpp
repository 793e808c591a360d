// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/emulator/tools/views/note_access.cpp"
#include <hwy/foreach_target.h>
// after foreach_target
#include "runtime/emulator/ops/addresses.inl"
#include "runtime/emulator/tools/views/views.hpp"

namespace ikat::emulator::views {
bool note_lanes(const MicroOp* op, Warp* w, const std::byte* frame, std::uint32_t mask);
}  // namespace ikat::emulator::views

HWY_BEFORE_NAMESPACE();
namespace ikat::emulator {
namespace HWY_NAMESPACE {

HWY_NOINLINE IKAT_HANDLER(note_any_in_views) {
    if (!views::note_lanes(op, w, frame, mask)) return nullptr;
    IKAT_NEXT;
}

/// All lanes are nearly always in one run.
IKAT_HANDLER(note_in_views) {
    const views::AccessForm form = views::AccessForm::of(op->c);
    const views::Run& run = views::views_of(w, form.slot).run(op->d);
    const View view{.base = run.begin, .bytes = run.end - run.begin};
    if (HWY_UNLIKELY((mask & op->b) != all_lanes ||
                     !all_inside(lanes_at<std::uint64_t>(frame, op->a), op, view, form.bytes)))
        return note_any_in_views(op, w, frame, mask);
    IKAT_NEXT;
}

Handler choose_note_in_views() { return note_in_views; }

}  // namespace HWY_NAMESPACE
}  // namespace ikat::emulator
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ikat::emulator {
namespace {
HWY_EXPORT(choose_note_in_views);
}  // namespace

namespace views {

// Separate from the handlers, whose last calls are jumps only if no address of their locals escapes.
bool note_lanes(const MicroOp* op, Warp* w, const std::byte* frame, std::uint32_t mask) {
    const AccessForm form = AccessForm::of(op->c);
    const auto* const from = reinterpret_cast<const std::uint64_t*>(frame + op->a);
    std::uint64_t addresses[warp_size];
    for (unsigned lane = 0; lane < warp_size; ++lane)
        addresses[lane] = from[lane] + std::uint64_t(std::int64_t(std::int32_t(op->x)));
    return views_of(w, form.slot).access_lanes(w, op, addresses, mask & op->b);
}

Handler select_note_access() { return HWY_DYNAMIC_DISPATCH(choose_note_in_views)(); }

}  // namespace views
}  // namespace ikat::emulator
#endif
