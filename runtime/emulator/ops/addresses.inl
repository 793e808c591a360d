// SPDX-License-Identifier: Apache-2.0
// Detects the pattern of the 32 addresses of a load or store, and whether all of them are inside one buffer. Included
// by the memory handlers once per instruction set, like lanes.inl.
#if defined(IKAT_EMULATOR_ADDRESSES) == defined(HWY_TARGET_TOGGLE)
#ifdef IKAT_EMULATOR_ADDRESSES
#undef IKAT_EMULATOR_ADDRESSES
#else
#define IKAT_EMULATOR_ADDRESSES
#endif

#include "runtime/emulator/ops/lanes.inl"

HWY_BEFORE_NAMESPACE();
namespace ikat::emulator {
namespace HWY_NAMESPACE {

/// 0, step, 2 * step, ...
template <class A, A Step>
struct Progression {
    alignas(64) A at[warp_size];
    constexpr Progression() : at{} {
        for (unsigned i = 0; i < warp_size; ++i) at[i] = A(i) * Step;
    }
};
template <class A, A Step>
inline constexpr Progression<A, Step> progression;

/// Whether a[i] == a[0] + i * Step.
template <class A, A Step>
HWY_INLINE bool is_row(const A* a) {
    if (A(a[warp_size - 1] - a[0]) != A(A(warp_size - 1) * Step)) return false;
    const hn::ScalableTag<A> v;
    const auto in = [&](unsigned i) HWY_ATTR {
        return hn::Eq(hn::Add(hn::Set(v, a[0]), hn::Load(v, progression<A, Step>.at + i)), hn::Load(v, a + i));
    };
    auto holds = in(0);
    for (unsigned i = unsigned(hn::Lanes(v)); i < warp_size; i += unsigned(hn::Lanes(v))) holds = hn::And(holds, in(i));
    return hn::AllTrue(v, holds);
}

/// Whether all lanes of a half warp have the same address; such a half counts as a row.
template <class A>
HWY_INLINE bool is_same(const A* a, unsigned first) {
    return a[first] == a[first + 15];
}

/// Whether each half of the warp is a row: a[i] == a[0] + i * Step, or (OrSame) all addresses are equal.
template <class A, A Step, bool OrSame>
HWY_INLINE bool are_rows(const A* a) {
    const hn::CappedTag<A, 16> v;
    const auto in = [&](unsigned first, unsigned i) HWY_ATTR {
        const A* const steps = OrSame && is_same(a, first) ? progression<A, 0>.at : progression<A, Step>.at;
        return hn::Eq(hn::Add(hn::Set(v, a[first]), hn::Load(v, steps + i)), hn::Load(v, a + first + i));
    };
    auto holds = hn::And(in(0, 0), in(16, 0));
    for (unsigned i = unsigned(hn::Lanes(v)); i < 16; i += unsigned(hn::Lanes(v)))
        holds = hn::And(holds, hn::And(in(0, i), in(16, i)));
    return hn::AllTrue(v, holds);
}

/// Whether the active lanes are those of a progression with this step.
template <class A, A Step>
HWY_INLINE bool is_progression_of_some(const A* a, std::uint32_t mask) {
    const hn::ScalableTag<A> v;
    const unsigned lane = unsigned(std::countr_zero(mask));
    const auto first = hn::Set(v, A(a[lane] - A(lane) * Step));
    auto difference = hn::Zero(v);
    for (unsigned i = 0; i < warp_size; i += unsigned(hn::Lanes(v))) {
        const auto expected = hn::Add(first, hn::Load(v, progression<A, Step>.at + i));
        const auto off = hn::Xor(expected, hn::Load(v, a + i));
        difference = hn::Or(difference, hn::IfThenElseZero(lanes_of(v, mask, i), off));
    }
    return hn::AllTrue(v, hn::Eq(difference, hn::Zero(v)));
}

/// Whether [at, at + bytes) is inside the view, `at` relative to its base.
HWY_INLINE bool inside(const View& view, std::uint64_t at, std::uint64_t bytes) {
    return view.bytes >= bytes && at <= view.bytes - bytes;
}

/// The window of a shared access, or the buffer of a global one.
template <Space S>
HWY_INLINE decltype(auto) view_for([[maybe_unused]] const Warp* w, [[maybe_unused]] std::uint64_t address) {
    if constexpr (S == Space::Global || S == Space::Generic)
        return view_of(*w, S, address);
    else
        return (w->windows[int(S)].at(address));
}

HWY_INLINE std::uint64_t offset_of(const MicroOp* op) { return std::uint64_t(std::int64_t(std::int32_t(op->x))); }

/// Whether two rows are inside the view and aligned. (False for some that are aligned only with the offset.)
template <std::uint64_t Bytes, class A>
HWY_INLINE bool rows_inside(const A* a, const MicroOp* op, const View& view) {
    const std::uint64_t origin = offset_of(op) - view.base, last = view.bytes - Bytes;
    return ((a[0] | a[16] | op->x) & (Bytes - 1)) == 0 && view.bytes >= Bytes &&
           std::min(a[0], a[16]) + origin <= last && std::max(a[15], a[31]) + origin <= last;
}

/// Whether all lanes, at a[i] + the offset of the op, are inside the view and aligned.
template <class A>
HWY_INLINE bool all_inside(const A* a, const MicroOp* op, const View& view, std::uint64_t bytes) {
    if (view.bytes < bytes) return false;
    const std::uint64_t origin = offset_of(op) - view.base;
    std::uint64_t lowest = 0 - origin, range = view.bytes - bytes;
    if constexpr (sizeof(A) == 4) {  // a window: neither base nor offset have more than 32 bits
        const std::int64_t offset = std::int64_t(origin), first = offset < 0 ? -offset : 0;
        const std::int64_t last = std::min(std::int64_t(range) - offset, std::int64_t(~0u));
        if (last < first) return false;
        lowest = std::uint64_t(first), range = std::uint64_t(last - first);
    }
    const hn::ScalableTag<A> v;
    auto largest = hn::Zero(v), low_bits = hn::Zero(v);
    for (unsigned i = 0; i < warp_size; i += unsigned(hn::Lanes(v))) {
        const auto lanes = hn::Load(v, a + i);
        largest = hn::Max(largest, hn::Sub(lanes, hn::Set(v, A(lowest))));
        low_bits = hn::Or(low_bits, hn::Add(lanes, hn::Set(v, A(offset_of(op)))));
    }
    return hn::AllFalse(v, hn::Gt(largest, hn::Set(v, A(range)))) &&
           hn::AllTrue(v, hn::Eq(hn::And(low_bits, hn::Set(v, A(bytes - 1))), hn::Zero(v)));
}

/// Stores lane addresses relative to the view of the first active lane in w->addresses; inactive lanes get the first
/// active lane's. Returns that view with bytes = 0 unless every lane is inside it and aligned.
template <Space S, class A>
View common_view(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask, std::uint64_t bytes) {
    const A* const a = lanes_at<A>(frame, op->a);
    std::uint64_t* const at = w->addresses;
    const std::uint64_t first = std::uint64_t(a[std::countr_zero(mask)]) + offset_of(op);
    View view = view_for<S>(w, first);
    const std::uint64_t origin = offset_of(op) - view.base, first_at = first - view.base;
    const std::uint64_t last = view.bytes - bytes;
    std::uint64_t beyond = 0, low_bits = 0;
    IKAT_EACH_LANE(i) {
        const std::uint64_t own = std::uint64_t(a[i]) + origin;
        at[i] = mask >> i & 1 ? own : first_at;
    }
    for (unsigned i = 0; i < warp_size; ++i) {
        beyond |= at[i] > last ? 1 : 0;
        low_bits |= at[i] + view.base;
    }
    if (view.bytes < bytes || beyond || (low_bits & (bytes - 1))) view.bytes = 0;
    return view;
}

}  // namespace HWY_NAMESPACE
}  // namespace ikat::emulator
HWY_AFTER_NAMESPACE();
#endif
