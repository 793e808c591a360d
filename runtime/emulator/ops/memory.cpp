// SPDX-License-Identifier: Apache-2.0
// Loads and stores. The 32 addresses of a warp nearly always are a row, or one of 16 for each half:
//
//     contiguous   lane i is at base + i * size     one copy, or one de-interleave for .v2 and .v4
//     the same     every lane loads at base         one load, broadcast
//
// `load`, load_two_rows and `store` check the bounds of a row once and move vectors, where nobody need be asked what
// has been written (close_written). They call nobody and end in another's place, for a handler that is come back to has
// registers to save.
//
// load_carefully and store_anywhere ask; other addresses of a whole warp they check together and move lane by lane,
// vectors through a staging area that looks like the contiguous case. Partial masks, local memory and lanes in several
// buffers take longer ways. Every path checks bounds and alignment.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/emulator/ops/memory.cpp"
#include <hwy/foreach_target.h>
// after foreach_target
#include "runtime/emulator/observe/undefined.hpp"
#include "runtime/emulator/ops/addresses.inl"

HWY_BEFORE_NAMESPACE();
namespace ikat::emulator {
namespace HWY_NAMESPACE {

HWY_INLINE std::uint32_t element(const Op* op, unsigned k) {
    return k == 0 ? op->d : k == 1 ? op->b : k == 2 ? op->c : op->y;
}

template <Space S>
HWY_INLINE void count_bytes(Warp* w, std::uint64_t address, std::uint64_t bytes, std::uint64_t Warp::*counter) {
    if (S == Space::Global || (S == Space::Generic && address >> window_bits > std::uint64_t(Space::Const)))
        w->*counter += bytes;
}

// ---- from memory bytes, lane after lane, to registers and back

/// Into `Count` lanes from `first` on, and the same again into those behind them.
template <class T, unsigned N, unsigned Count = warp_size, bool Again = false>
HWY_INLINE void load_contiguous(const Op* op, std::byte* frame, const std::byte* host, unsigned first = 0) {
    const T* const from = reinterpret_cast<const T*>(host);
    if constexpr (N == 4 && sizeof(T) == 4) {
        const hn::CappedTag<T, Count> v;
        const auto put = [&](auto lanes, std::uint32_t to, unsigned i) HWY_ATTR {
            hn::Store(lanes, v, lanes_at<T>(frame, to) + first + i);
            if constexpr (Again) hn::Store(lanes, v, lanes_at<T>(frame, to) + first + Count + i);
        };
        for (unsigned i = 0; i < Count; i += unsigned(hn::Lanes(v))) {
            hn::Vec<decltype(v)> v0, v1, v2, v3;
            hn::LoadInterleaved4(v, from + 4 * i, v0, v1, v2, v3);
            put(v0, op->d, i);
            put(v1, op->b, i);
            put(v2, op->c, i);
            put(v3, op->y, i);
        }
    } else {
        static_assert(!Again);
        Cell<T>* to[N];
        for (unsigned k = 0; k < N; ++k) to[k] = lanes_at<Cell<T>>(frame, element(op, k)) + first;
        IKAT_EACH_OF(i, Count) for (unsigned k = 0; k < N; ++k) to[k][i] = from[i * N + k];
    }
}

template <class T, unsigned N, unsigned Count = warp_size>
HWY_INLINE void load_uniform(const Op* op, std::byte* frame, const std::byte* host, unsigned first = 0) {
    const auto broadcast = [&](std::uint32_t register_offset, unsigned k) HWY_ATTR {
        T value;
        std::memcpy(&value, host + k * sizeof(T), sizeof value);
        Cell<T>* const d = lanes_at<Cell<T>>(frame, register_offset) + first;
        IKAT_EACH_OF(i, Count) d[i] = value;
    };
    broadcast(op->d, 0);
    if constexpr (N > 1) broadcast(op->b, 1);
    if constexpr (N > 2) broadcast(op->c, 2), broadcast(op->y, 3);
}

template <class T, unsigned N, unsigned Count = warp_size>
HWY_INLINE void store_contiguous(const Op* op, std::byte* frame, std::byte* host, unsigned first = 0) {
    T* const to = reinterpret_cast<T*>(host);
    if constexpr (N == 4 && sizeof(T) == 4) {
        const hn::CappedTag<T, Count> v;
        const auto of = [&](std::uint32_t from, unsigned i)
                            HWY_ATTR { return hn::Load(v, lanes_at<T>(frame, from) + first + i); };
        for (unsigned i = 0; i < Count; i += unsigned(hn::Lanes(v)))
            hn::StoreInterleaved4(of(op->d, i), of(op->b, i), of(op->c, i), of(op->y, i), v, to + 4 * i);
    } else {
        const Cell<T>* from[N];
        for (unsigned k = 0; k < N; ++k) from[k] = lanes_at<Cell<T>>(frame, element(op, k)) + first;
        IKAT_EACH_OF(i, Count) for (unsigned k = 0; k < N; ++k) to[i * N + k] = T(from[k][i]);
    }
}

// ---- what has been written: stores say so and loads ask; the checked code does both by itself

HWY_INLINE bool asks(const Warp* w, const View& view) { return HWY_UNLIKELY(view.written != nullptr && !w->undefined); }

// The functions that look take numbers, not views: a handler with a local that others know of could not end in a jump.

HWY_NOINLINE bool range_is_written(const std::uint8_t* bits, std::uint64_t at, std::uint64_t bytes) {
    return written::all(bits, at, bytes);
}
HWY_NOINLINE void note_range_written(std::uint8_t* bits, std::uint64_t at, std::uint64_t bytes, bool others) {
    written::set(bits, at, bytes, others);
}
/// Each lane at a[i] + origin, with bits of its own every `stride` bytes. One byte behind the bits may be read.
template <class A>
HWY_NOINLINE bool lanes_are_written(const std::uint8_t* bits, std::uint64_t stride, const A* a, std::uint64_t origin,
                                    std::uint32_t mask, std::uint64_t bytes) {
    if (mask == all_lanes && stride == 0 && bytes <= 8) {  // as in a column of a tile that never is whole: no branches
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

/// Every active lane by itself, each in a buffer of its own: between w->staging and memory. False on a finding.
template <class A, unsigned Bytes, bool Store>
HWY_NOINLINE bool move_lanes(const Op* op, Warp* w, std::byte* frame, std::uint32_t mask, Space space) {
    const A* const a = lanes_at<A>(frame, op->a);
    for (std::uint32_t rest = mask; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        const std::uint64_t address = with_offset(op, space, a[lane]);
        View view;
        std::byte* const memory = lane_bytes(w, op, space, lane, address, Bytes, Store, &view);
        if (!memory) return false;
        if (asks(w, view)) {
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

/// Lanes of a mask from their places, the others keeping their registers.
template <class T, unsigned N>
HWY_NOINLINE void load_some(const Op* op, std::byte* frame, std::uint32_t mask, const View& view,
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
    } else if (asks(w, view) && !lanes_are_written(view.written, view.lane_stride / 8, w->addresses, 0, mask, bytes)) {
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
    if (view.bytes && view.writable && asks(w, view))
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

/// Where address 0 would be on the host: a number, for it is outside of every object.
HWY_INLINE std::uintptr_t origin_of(const View& view, const Op* op) {
    return reinterpret_cast<std::uintptr_t>(view.host) + (offset_of(op) - view.base);
}

/// Lane i from origin + a[i].
template <class A, class T, unsigned N>
HWY_INLINE void load_gathered(const Op* op, Warp* w, std::byte* frame, const A* a, std::uintptr_t origin) {
    const auto at = [&](unsigned i) HWY_ATTR { return reinterpret_cast<const std::byte*>(origin + a[i]); };
    if constexpr (N == 1) {
        Cell<T>* const d = lanes_at<Cell<T>>(frame, op->d);
        IKAT_UNROLLED_LANES(i) {
            T value;
            std::memcpy(&value, at(i), sizeof value);
            d[i] = value;
        }
    } else {
        std::byte* const staging = w->staging;
        IKAT_UNROLLED_LANES(i) std::memcpy(staging + i * sizeof(T) * N, at(i), sizeof(T) * N);
        load_contiguous<T, N>(op, frame, staging);
    }
}

template <class A, class T, unsigned N>
HWY_INLINE void store_scattered(const Op* op, Warp* w, std::byte* frame, const A* a, std::uintptr_t origin) {
    std::byte* const staging = w->staging;
    store_contiguous<T, N>(op, frame, staging);
    IKAT_UNROLLED_LANES(i)
    std::memcpy(reinterpret_cast<std::byte*>(origin + a[i]), staging + i * sizeof(T) * N, sizeof(T) * N);
}

// ---- the common patterns with all lanes

// ---- contiguous lanes of which some are off, as at the end of an array

/// Whether a masked load or store of elements of 4 or 8 bytes touches nothing but its lanes. Where Highway makes it of
/// a whole vector (its scalar target does, and does not say so) it would reach past a buffer's end, and write back what
/// another thread has just changed.
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
    if (asks(w, view) && !range_is_written(view.written, at, (last - first + 1) * sizeof(T)) &&
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
    if (asks(w, view)) note_lanes_written(view.written, 0, a, offset_of(op) - view.base, mask, sizeof(T), w->parallel);
    const hn::ScalableTag<T> v;
    const T* const d = lanes_at<T>(frame, op->d);
    const std::uintptr_t lane_0 = reinterpret_cast<std::uintptr_t>(view.host) + at - first * sizeof(T);
    for (unsigned i = 0; i < warp_size; i += unsigned(hn::Lanes(v)))
        hn::BlendedStore(hn::Load(v, d + i), lanes_of(v, mask, i), v, reinterpret_cast<T*>(lane_0 + i * sizeof(T)));
    count_bytes<S>(w, address, sizeof(T) * unsigned(std::popcount(mask)), &Warp::bytes_written);
    IKAT_NEXT;
}

/// The rows of a warp, relative to the view's base.
struct Rows {
    std::uint64_t low, high;
};
template <class A>
HWY_INLINE Rows rows_of(const A* a, const Op* op, const View& view) {
    const std::uint64_t origin = offset_of(op) - view.base;
    return {a[0] + origin, a[16] + origin};
}

template <class T, unsigned N, class A>
HWY_INLINE void load_rows(const Op* op, std::byte* frame, const View& view, const A* a) {
    const Rows rows = rows_of(a, op, view);
    const bool low_same = is_same(a, 0), high_same = is_same(a, 16);  // a may be the register that is loaded
    if (rows.low == rows.high && low_same && high_same) return load_uniform<T, N>(op, frame, view.host + rows.low);
    if constexpr (N == 4 && sizeof(T) == 4)
        if (rows.low == rows.high && !low_same && !high_same)
            return load_contiguous<T, N, 16, true>(op, frame, view.host + rows.low);
    if (low_same)
        load_uniform<T, N, 16>(op, frame, view.host + rows.low);
    else
        load_contiguous<T, N, 16>(op, frame, view.host + rows.low);
    if (high_same)
        load_uniform<T, N, 16>(op, frame, view.host + rows.high, 16);
    else
        load_contiguous<T, N, 16>(op, frame, view.host + rows.high, 16);
}

template <class T, unsigned N>
HWY_INLINE void store_rows(const Op* op, std::byte* frame, const View& view, const Rows& rows) {
    store_contiguous<T, N, 16>(op, frame, view.host + rows.low);
    store_contiguous<T, N, 16>(op, frame, view.host + rows.high, 16);
}

/// All lanes, where nothing may have written what they load.
template <Space S, class A, class T, unsigned N>
HWY_NOINLINE IKAT_HANDLER(load_asking) {
    constexpr std::uint64_t bytes = sizeof(T) * N;
    const A* const a = lanes_at<A>(frame, op->a);
    const std::uint64_t address = std::uint64_t(a[0]) + offset_of(op);
    const auto& view = view_for<S>(w, address);
    if (are_rows<A, A(bytes), true>(a) && rows_inside<bytes>(a, op, view)) {
        const Rows rows = rows_of(a, op, view);
        const auto written = [&](std::uint64_t at, unsigned first) {
            return range_is_written(view.written, at, is_same(a, first) ? bytes : 16 * bytes);
        };
        if (asks(w, view) && !(written(rows.low, 0) && written(rows.high, 16))) return go_on_checked(op, w, mask);
        load_rows<T, N>(op, frame, view, a);
    } else if (all_inside(a, op, view, bytes)) {
        if (asks(w, view) && !lanes_are_written(view.written, 0, a, offset_of(op) - view.base, mask, bytes))
            return go_on_checked(op, w, mask);
        load_gathered<A, T, N>(op, w, frame, a, origin_of(view, op));
    } else {
        return load_any<S, A, T, N>(op, w, frame, mask);
    }
    count_bytes<S>(w, address, warp_size * bytes, &Warp::bytes_read);
    IKAT_NEXT;
}

/// All lanes, anywhere.
template <Space S, class A, class T, unsigned N>
HWY_NOINLINE IKAT_HANDLER(load_anywhere) {
    constexpr std::uint64_t bytes = sizeof(T) * N;
    const A* const a = lanes_at<A>(frame, op->a);
    const std::uint64_t address = std::uint64_t(a[0]) + offset_of(op);
    const auto& view = view_for<S>(w, address);
    if (S == Space::Generic && view.lane_stride) return load_any<S, A, T, N>(op, w, frame, mask);
    if (view.written) return load_asking<S, A, T, N>(op, w, frame, mask);
    if (!all_inside(a, op, view, bytes)) return load_any<S, A, T, N>(op, w, frame, mask);
    load_gathered<A, T, N>(op, w, frame, a, origin_of(view, op));
    count_bytes<S>(w, address, warp_size * bytes, &Warp::bytes_read);
    IKAT_NEXT;
}

/// All lanes, perhaps in two rows.
template <Space S, class A, class T, unsigned N>
HWY_NOINLINE IKAT_HANDLER(load_two_rows) {
    constexpr std::uint64_t bytes = sizeof(T) * N;
    const A* const a = lanes_at<A>(frame, op->a);
    const std::uint64_t address = std::uint64_t(a[0]) + offset_of(op);
    const auto& view = view_for<S>(w, address);
    if (!are_rows<A, A(bytes), true>(a) || !rows_inside<bytes>(a, op, view) || view.written ||
        (S == Space::Generic && view.lane_stride))
        return load_anywhere<S, A, T, N>(op, w, frame, mask);
    load_rows<T, N>(op, frame, view, a);
    count_bytes<S>(w, address, warp_size * bytes, &Warp::bytes_read);
    IKAT_NEXT;
}

template <Space S, class A, class T, unsigned N>
IKAT_HANDLER(load) {
    constexpr std::uint64_t bytes = sizeof(T) * N;
    const A* const a = lanes_at<A>(frame, op->a);
    if (HWY_UNLIKELY(mask != all_lanes)) {
        if constexpr (masks_are_exact && N == 1 && sizeof(T) >= 4)
            return load_some_contiguous<S, A, T>(op, w, frame, mask);
        return load_any<S, A, T, N>(op, w, frame, mask);
    }
    if (!is_row<A, A(bytes)>(a)) {
        const A step = a[15] - a[0];
        if (step != 0 && step != A(15 * bytes)) return load_anywhere<S, A, T, N>(op, w, frame, mask);
        return load_two_rows<S, A, T, N>(op, w, frame, mask);
    }
    const std::uint64_t address = std::uint64_t(a[0]) + offset_of(op);
    const auto& view = view_for<S>(w, address);
    const std::uint64_t at = address - view.base;
    if (address % bytes || !inside(view, at, warp_size * bytes) || view.written ||
        (S == Space::Generic && view.lane_stride))
        return load_anywhere<S, A, T, N>(op, w, frame, mask);
    load_contiguous<T, N>(op, frame, view.host + at);
    count_bytes<S>(w, address, warp_size * bytes, &Warp::bytes_read);
    IKAT_NEXT;
}

template <Space S, class A, class T, unsigned N>
HWY_NOINLINE IKAT_HANDLER(store_anywhere) {
    constexpr std::uint64_t bytes = sizeof(T) * N;
    const A* const a = lanes_at<A>(frame, op->a);
    const std::uint64_t address = std::uint64_t(a[0]) + offset_of(op);
    const auto& view = view_for<S>(w, address);
    if (view.lane_stride || !view.writable) return store_any<S, A, T, N>(op, w, frame, mask);
    if (are_rows<A, A(bytes), false>(a) && rows_inside<bytes>(a, op, view)) {
        const Rows rows = rows_of(a, op, view);
        if (asks(w, view)) {
            note_range_written(view.written, rows.low, 16 * bytes, w->parallel);
            note_range_written(view.written, rows.high, 16 * bytes, w->parallel);
        }
        store_rows<T, N>(op, frame, view, rows);
    } else if (all_inside(a, op, view, bytes)) {
        if (asks(w, view)) note_lanes_written(view.written, 0, a, offset_of(op) - view.base, mask, bytes, w->parallel);
        store_scattered<A, T, N>(op, w, frame, a, origin_of(view, op));
    } else {
        return store_any<S, A, T, N>(op, w, frame, mask);
    }
    count_bytes<S>(w, address, warp_size * bytes, &Warp::bytes_written);
    IKAT_NEXT;
}

template <Space S, class A, class T, unsigned N>
IKAT_HANDLER(store) {
    constexpr std::uint64_t bytes = sizeof(T) * N;
    const A* const a = lanes_at<A>(frame, op->a);
    if (HWY_UNLIKELY(mask != all_lanes)) {
        if constexpr (masks_are_exact && N == 1 && sizeof(T) >= 4)
            return store_some_contiguous<S, A, T>(op, w, frame, mask);
        return store_any<S, A, T, N>(op, w, frame, mask);
    }
    if (!is_row<A, A(bytes)>(a)) return store_anywhere<S, A, T, N>(op, w, frame, mask);
    const std::uint64_t address = std::uint64_t(a[0]) + offset_of(op);
    const auto& view = view_for<S>(w, address);
    const std::uint64_t at = address - view.base;
    if (address % bytes || !inside(view, at, warp_size * bytes) || view.written ||
        (S == Space::Generic && (view.lane_stride || !view.writable)))
        return store_anywhere<S, A, T, N>(op, w, frame, mask);
    store_contiguous<T, N>(op, frame, view.host + at);
    count_bytes<S>(w, address, warp_size * bytes, &Warp::bytes_written);
    IKAT_NEXT;
}

template <class T>
IKAT_HANDLER(load_parameter) {
    T value;
    std::memcpy(&value, w->windows[int(Space::Param)].views->host + op->x, sizeof value);
    IKAT_RESULT(T);
    IKAT_EACH_LANE(i) d[i] = value;
    IKAT_FINISH(T);
}

/// Shared and global have the fast paths; a space of 32-bit addresses is widened by the decoder where it has none.
template <class T, unsigned N>
Handler load_handler(Space space, unsigned address_bytes) {
    using std::uint32_t, std::uint64_t;
    switch (space) {
        case Space::Shared:
            return address_bytes == 4 ? load<Space::Shared, uint32_t, T, N> : load<Space::Shared, uint64_t, T, N>;
        case Space::Global: return load<Space::Global, uint64_t, T, N>;
        case Space::Generic: return load<Space::Generic, uint64_t, T, N>;
        case Space::Local: return load_any<Space::Local, uint64_t, T, N>;
        case Space::Param: return load_any<Space::Param, uint64_t, T, N>;
        case Space::Const: return load_any<Space::Const, uint64_t, T, N>;
    }
    return nullptr;
}

template <class T, unsigned N>
Handler store_handler(Space space, unsigned address_bytes) {
    using std::uint32_t, std::uint64_t;
    switch (space) {
        case Space::Shared:
            return address_bytes == 4 ? store<Space::Shared, uint32_t, T, N> : store<Space::Shared, uint64_t, T, N>;
        case Space::Global: return store<Space::Global, uint64_t, T, N>;
        case Space::Generic: return store<Space::Generic, uint64_t, T, N>;
        case Space::Local: return store_any<Space::Local, uint64_t, T, N>;
        default: return nullptr;
    }
}

template <class T>
Handler access_handler(Space space, unsigned address_bytes, unsigned count, bool store) {
    switch (count) {
        case 1: return store ? store_handler<T, 1>(space, address_bytes) : load_handler<T, 1>(space, address_bytes);
        case 2: return store ? store_handler<T, 2>(space, address_bytes) : load_handler<T, 2>(space, address_bytes);
        case 4:
            if constexpr (sizeof(T) < 8)
                return store ? store_handler<T, 4>(space, address_bytes) : load_handler<T, 4>(space, address_bytes);
            return nullptr;
        default: return nullptr;
    }
}

Handler choose_access(Space space, unsigned address_bytes, unsigned bytes, unsigned count, bool store) {
    switch (bytes) {
        case 1: return access_handler<std::uint8_t>(space, address_bytes, count, store);
        case 2: return access_handler<std::uint16_t>(space, address_bytes, count, store);
        case 4: return access_handler<std::uint32_t>(space, address_bytes, count, store);
        case 8: return access_handler<std::uint64_t>(space, address_bytes, count, store);
        default: return nullptr;
    }
}

Handler choose_load_parameter(unsigned bytes) {
    switch (bytes) {
        case 1: return load_parameter<std::uint8_t>;
        case 2: return load_parameter<std::uint16_t>;
        case 4: return load_parameter<std::uint32_t>;
        case 8: return load_parameter<std::uint64_t>;
        default: return nullptr;
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace ikat::emulator
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ikat::emulator {
HWY_EXPORT(choose_access);
HWY_EXPORT(choose_load_parameter);
Handler select_load(Space space, unsigned address_bytes, unsigned bytes, unsigned count) {
    return HWY_DYNAMIC_DISPATCH(choose_access)(space, address_bytes, bytes, count, false);
}
Handler select_store(Space space, unsigned address_bytes, unsigned bytes, unsigned count) {
    return HWY_DYNAMIC_DISPATCH(choose_access)(space, address_bytes, bytes, count, true);
}
Handler select_load_parameter(unsigned bytes) { return HWY_DYNAMIC_DISPATCH(choose_load_parameter)(bytes); }
}  // namespace ikat::emulator
#endif
