// SPDX-License-Identifier: Apache-2.0
// Accesses by any lanes of a warp at any addresses: the general path of every load and store, and the tracking of
// written bytes. Included by the memory handlers once per instruction set, like lanes.inl.
#if defined(IKAT_EMULATOR_ANY_LANES) == defined(HWY_TARGET_TOGGLE)
#ifdef IKAT_EMULATOR_ANY_LANES
#undef IKAT_EMULATOR_ANY_LANES
#else
#define IKAT_EMULATOR_ANY_LANES
#endif

#include "runtime/emulator/core/definedness.hpp"
#include "runtime/emulator/ops/rows.inl"

HWY_BEFORE_NAMESPACE();
namespace ikat::emulator {
namespace HWY_NAMESPACE {

template <Space S>
HWY_INLINE void count_bytes(Warp* w, std::uint64_t address, std::uint64_t bytes, std::uint64_t Warp::*counter) {
    if (S == Space::Global || (S == Space::Generic && address >> window_bits > std::uint64_t(Space::Const)))
        w->*counter += bytes;
}

// ---- written bytes: stores set the bits and loads test them

HWY_INLINE bool asks(const View& view) { return HWY_UNLIKELY(view.written != nullptr); }

// The testing functions take numbers, not views: a handler could not end in a jump if the address of a local escaped.

HWY_NOINLINE bool range_is_written(const std::uint8_t* bits, std::uint64_t at, std::uint64_t bytes) {
    return written::all(bits, at, bytes);
}
HWY_NOINLINE void note_range_written(std::uint8_t* bits, std::uint64_t at, std::uint64_t bytes, bool others) {
    written::set(bits, at, bytes, others);
}
/// Each lane at a[i] + origin, with its own bits every `stride` bytes. One byte after the bits may be read.
template <class A>
HWY_NOINLINE bool lanes_are_written(const std::uint8_t* bits, std::uint64_t stride, const A* a, std::uint64_t origin,
                                    std::uint32_t mask, std::uint64_t bytes) {
    if (mask == all_lanes && stride == 0 && bytes <= 8) {  // as in a column of an incomplete tile: no branches
        std::uint32_t missing = 0;
        for (unsigned i = 0; i < warp_size; ++i) {
            const std::uint64_t at = a[i] + origin;
            std::uint16_t word;
            std::memcpy(&word, bits + at / 8, sizeof word);
            missing |= ~(std::uint32_t(word) >> at % 8);
        }
        return !(missing & ((1u << bytes) - 1));
    }
    for (std::uint32_t rest = mask; rest; rest &= rest - 1) {
        const unsigned i = unsigned(std::countr_zero(rest));
        if (!written::all(bits + i * stride, a[i] + origin, bytes)) return false;
    }
    return true;
}
template <class A>
HWY_NOINLINE void note_lanes_written(std::uint8_t* bits, std::uint64_t stride, const A* a, std::uint64_t origin,
                                     std::uint32_t mask, std::uint64_t bytes, bool others) {
    for (std::uint32_t rest = mask; rest; rest &= rest - 1) {
        const unsigned i = unsigned(std::countr_zero(rest));
        written::set(bits + i * stride, a[i] + origin, bytes, others);
    }
}

// ---- any addresses

/// Moves data between w->staging and memory, each active lane separately, in any buffer. False on a finding.
template <class A, unsigned Bytes, bool Store>
HWY_NOINLINE bool move_lanes(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask, Space space) {
    const A* const a = lanes_at<A>(frame, op->a);
    for (std::uint32_t rest = mask; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        const std::uint64_t address = with_offset(op, space, a[lane]);
        View view;
        std::byte* const memory = lane_bytes(w, op, space, lane, address, Bytes, Store, &view);
        if (!memory) return false;
        if (asks(view)) {
            std::uint8_t* const bits = view.written + lane * (view.lane_stride / 8);
            if (Store)
                written::set(bits, address - view.base, Bytes, w->parallel);
            else if (!written::all(bits, address - view.base, Bytes))
                return go_on_checked(op, w, mask), false;
        }
        std::byte* const staged = w->staging + lane * Bytes;
        if (Store)
            std::memcpy(memory, staged, Bytes);
        else
            std::memcpy(staged, memory, Bytes);
    }
    return true;
}

/// Loads the lanes of a mask from their addresses; the others keep their registers.
template <class T, unsigned N>
HWY_NOINLINE void load_some(const MicroOp* op, std::byte* frame, std::uint32_t mask, const View& view,
                            const std::uint64_t* at) {
    Cell<T>* to[N];
    for (unsigned k = 0; k < N; ++k) to[k] = lanes_at<Cell<T>>(frame, element(op, k));
    for (std::uint32_t rest = mask; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        T values[N];
        std::memcpy(values, view.host + at[lane] + lane * view.lane_stride, sizeof values);
        for (unsigned k = 0; k < N; ++k) to[k][lane] = values[k];
    }
}

template <Space S, class A, class T, unsigned N>
HWY_NOINLINE IKAT_HANDLER(load_any) {
    constexpr unsigned bytes = sizeof(T) * N;
    const std::uint64_t first = std::uint64_t(lanes_at<A>(frame, op->a)[std::countr_zero(mask)]) + offset_of(op);
    View view = common_view<S, A>(op, w, frame, mask, bytes);
    if (view.bytes == 0) {
        if (!move_lanes<A, bytes, false>(op, w, frame, mask, S)) return nullptr;
        view = {.host = w->staging, .lane_stride = bytes};
        std::memset(w->addresses, 0, sizeof w->addresses);
    } else if (asks(view) && !lanes_are_written(view.written, view.lane_stride / 8, w->addresses, 0, mask, bytes)) {
        return go_on_checked(op, w, mask);
    }
    if (mask == all_lanes) {
        for (unsigned i = 0; i < warp_size; ++i)
            std::memcpy(w->staging + i * bytes, view.host + w->addresses[i] + i * view.lane_stride, bytes);
        load_contiguous<T, N>(op, frame, w->staging);
    } else {
        load_some<T, N>(op, frame, mask, view, w->addresses);
    }
    count_bytes<S>(w, first, bytes * unsigned(std::popcount(mask)), &Warp::bytes_read);
    IKAT_NEXT;
}

template <Space S, class A, class T, unsigned N>
HWY_NOINLINE IKAT_HANDLER(store_any) {
    constexpr unsigned bytes = sizeof(T) * N;
    const std::uint64_t first = std::uint64_t(lanes_at<A>(frame, op->a)[std::countr_zero(mask)]) + offset_of(op);
    const View view = common_view<S, A>(op, w, frame, mask, bytes);
    store_contiguous<T, N>(op, frame, w->staging);
    if (view.bytes && view.writable && asks(view))
        note_lanes_written(view.written, view.lane_stride / 8, w->addresses, 0, mask, bytes, w->parallel);
    if (view.bytes == 0 || !view.writable) {
        if (!move_lanes<A, bytes, true>(op, w, frame, mask, S)) return nullptr;
    } else if (mask == all_lanes) {
        for (unsigned i = 0; i < warp_size; ++i)
            std::memcpy(view.host + w->addresses[i] + i * view.lane_stride, w->staging + i * bytes, bytes);
    } else {
        for (std::uint32_t rest = mask; rest; rest &= rest - 1) {
            const unsigned i = unsigned(std::countr_zero(rest));
            std::memcpy(view.host + w->addresses[i] + i * view.lane_stride, w->staging + i * bytes, bytes);
        }
    }
    count_bytes<S>(w, first, bytes * unsigned(std::popcount(mask)), &Warp::bytes_written);
    IKAT_NEXT;
}

// ---- contiguous lanes, some of them inactive, as at the end of an array

/// Whether a masked load or store of elements of 4 or 8 bytes touches only its lanes. If Highway implements it with a
/// whole vector (its scalar target does, undocumented), it would access bytes past a buffer's end, and overwrite
/// concurrent changes by other threads.
inline constexpr bool masks_are_exact =
    (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2) || (HWY_TARGET != HWY_SCALAR && !HWY_MEM_OPS_MIGHT_FAULT);

template <Space S, class A, class T>
HWY_NOINLINE IKAT_HANDLER(load_some_contiguous) {
    const A* const a = lanes_at<A>(frame, op->a);
    const unsigned first = unsigned(std::countr_zero(mask)), last = 31 - unsigned(std::countl_zero(mask));
    const std::uint64_t address = std::uint64_t(a[first]) + offset_of(op);
    const auto& view = view_for<S>(w, address);
    const std::uint64_t at = address - view.base;
    if (address % sizeof(T) || view.lane_stride || !is_progression_of_some<A, A(sizeof(T))>(a, mask) ||
        !inside(view, at, (last - first + 1) * sizeof(T)))
        return load_any<S, A, T, 1>(op, w, frame, mask);
    if (asks(view) && !range_is_written(view.written, at, (last - first + 1) * sizeof(T)) &&
        !lanes_are_written(view.written, 0, a, offset_of(op) - view.base, mask, sizeof(T)))
        return go_on_checked(op, w, mask);
    const hn::ScalableTag<T> v;
    T* const d = lanes_at<T>(frame, op->d);
    const std::uintptr_t lane_0 = reinterpret_cast<std::uintptr_t>(view.host) + at - first * sizeof(T);
    for (unsigned i = 0; i < warp_size; i += unsigned(hn::Lanes(v))) {
        const auto lanes = lanes_of(v, mask, i);
        const auto loaded = hn::MaskedLoad(lanes, v, reinterpret_cast<const T*>(lane_0 + i * sizeof(T)));
        hn::Store(hn::IfThenElse(lanes, loaded, hn::Load(v, d + i)), v, d + i);
    }
    count_bytes<S>(w, address, sizeof(T) * unsigned(std::popcount(mask)), &Warp::bytes_read);
    IKAT_NEXT;
}

template <Space S, class A, class T>
HWY_NOINLINE IKAT_HANDLER(store_some_contiguous) {
    const A* const a = lanes_at<A>(frame, op->a);
    const unsigned first = unsigned(std::countr_zero(mask)), last = 31 - unsigned(std::countl_zero(mask));
    const std::uint64_t address = std::uint64_t(a[first]) + offset_of(op);
    const auto& view = view_for<S>(w, address);
    const std::uint64_t at = address - view.base;
    if (address % sizeof(T) || view.lane_stride || !view.writable ||
        !is_progression_of_some<A, A(sizeof(T))>(a, mask) || !inside(view, at, (last - first + 1) * sizeof(T)))
        return store_any<S, A, T, 1>(op, w, frame, mask);
    if (asks(view)) note_lanes_written(view.written, 0, a, offset_of(op) - view.base, mask, sizeof(T), w->parallel);
    const hn::ScalableTag<T> v;
    const T* const d = lanes_at<T>(frame, op->d);
    const std::uintptr_t lane_0 = reinterpret_cast<std::uintptr_t>(view.host) + at - first * sizeof(T);
    for (unsigned i = 0; i < warp_size; i += unsigned(hn::Lanes(v)))
        hn::BlendedStore(hn::Load(v, d + i), lanes_of(v, mask, i), v, reinterpret_cast<T*>(lane_0 + i * sizeof(T)));
    count_bytes<S>(w, address, sizeof(T) * unsigned(std::popcount(mask)), &Warp::bytes_written);
    IKAT_NEXT;
}

}  // namespace HWY_NAMESPACE
}  // namespace ikat::emulator
HWY_AFTER_NAMESPACE();
#endif
