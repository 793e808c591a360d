// SPDX-License-Identifier: Apache-2.0
// Loads and stores. A warp's 32 addresses nearly always form one of two patterns, and each has a path that checks the
// bounds once and moves whole vectors:
//
//     contiguous   lane i reads base + i * size        one copy, or one de-interleave for .v2 and .v4
//     uniform      every lane reads the same           one load, broadcast
//
// Other addresses of a whole warp are checked together and moved lane by lane, vectors through a staging area that
// looks like the contiguous case. Partial masks, local memory and lanes in several buffers take longer ways. Every path
// checks bounds and alignment.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/emulator/handlers_memory.cpp"
#include <hwy/foreach_target.h>
// after foreach_target
#include "runtime/emulator/lanes.inl"

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

/// Whether a[i] == a[0] + i * Step for all lanes.
template <class A, A Step>
HWY_INLINE bool is_progression(const A* a) {
    const hn::ScalableTag<A> v;
    const auto first = hn::Set(v, a[0]);
    auto difference = hn::Zero(v);
    for (unsigned i = 0; i < warp_size; i += unsigned(hn::Lanes(v))) {
        const auto expected = hn::Add(first, hn::Load(v, progression<A, Step>.at + i));
        difference = hn::Or(difference, hn::Xor(expected, hn::Load(v, a + i)));
    }
    return hn::AllTrue(v, hn::Eq(difference, hn::Zero(v)));
}

/// Whether [at, at + bytes) is inside the view, `at` relative to its base.
HWY_INLINE bool inside(const View& view, std::uint64_t at, std::uint64_t bytes) {
    return view.bytes >= bytes && at <= view.bytes - bytes;
}

HWY_INLINE std::uint32_t element(const Op* op, unsigned k) {
    return k == 0 ? op->d : k == 1 ? op->b : k == 2 ? op->c : op->y;
}

template <Space S>
HWY_INLINE void count_bytes(Warp* w, std::uint64_t address, std::uint64_t bytes, std::uint64_t Warp::*counter) {
    if (S == Space::Global || (S == Space::Generic && address >> window_bits > std::uint64_t(Space::Const)))
        w->*counter += bytes;
}

/// The window of a shared access, or the buffer of a global one.
template <Space S>
HWY_INLINE decltype(auto) view_for([[maybe_unused]] const Warp* w, [[maybe_unused]] std::uint64_t address) {
    if constexpr (S == Space::Global || S == Space::Generic)
        return view_of(*w, S, address);
    else
        return (w->windows[int(S)]);
}

HWY_INLINE std::uint64_t offset_of(const Op* op) { return std::uint64_t(std::int64_t(std::int32_t(op->x))); }

// ---- from memory bytes, lane after lane, to registers and back

template <class T, unsigned N>
HWY_INLINE void load_contiguous(const Op* op, std::byte* frame, const std::byte* host) {
    const T* const from = reinterpret_cast<const T*>(host);
    if constexpr (N == 4 && sizeof(T) == 4) {
        const hn::ScalableTag<T> v;
        for (unsigned i = 0; i < warp_size; i += unsigned(hn::Lanes(v))) {
            hn::Vec<decltype(v)> v0, v1, v2, v3;
            hn::LoadInterleaved4(v, from + 4 * i, v0, v1, v2, v3);
            hn::Store(v0, v, lanes_at<T>(frame, op->d) + i);
            hn::Store(v1, v, lanes_at<T>(frame, op->b) + i);
            hn::Store(v2, v, lanes_at<T>(frame, op->c) + i);
            hn::Store(v3, v, lanes_at<T>(frame, op->y) + i);
        }
    } else {
        Cell<T>* to[N];
        for (unsigned k = 0; k < N; ++k) to[k] = lanes_at<Cell<T>>(frame, element(op, k));
        IKAT_EACH_LANE(i) for (unsigned k = 0; k < N; ++k) to[k][i] = from[i * N + k];
    }
}

template <class T, unsigned N>
HWY_INLINE void load_uniform(const Op* op, std::byte* frame, const std::byte* host) {
    const auto broadcast = [&](std::uint32_t register_offset, unsigned k) HWY_ATTR {
        T value;
        std::memcpy(&value, host + k * sizeof(T), sizeof value);
        Cell<T>* const d = lanes_at<Cell<T>>(frame, register_offset);
        IKAT_EACH_LANE(i) d[i] = value;
    };
    broadcast(op->d, 0);
    if constexpr (N > 1) broadcast(op->b, 1);
    if constexpr (N > 2) broadcast(op->c, 2), broadcast(op->y, 3);
}

template <class T, unsigned N>
HWY_INLINE void store_contiguous(const Op* op, std::byte* frame, std::byte* host) {
    T* const to = reinterpret_cast<T*>(host);
    if constexpr (N == 4 && sizeof(T) == 4) {
        const hn::ScalableTag<T> v;
        for (unsigned i = 0; i < warp_size; i += unsigned(hn::Lanes(v)))
            hn::StoreInterleaved4(
                hn::Load(v, lanes_at<T>(frame, op->d) + i), hn::Load(v, lanes_at<T>(frame, op->b) + i),
                hn::Load(v, lanes_at<T>(frame, op->c) + i), hn::Load(v, lanes_at<T>(frame, op->y) + i), v, to + 4 * i);
    } else {
        const Cell<T>* from[N];
        for (unsigned k = 0; k < N; ++k) from[k] = lanes_at<Cell<T>>(frame, element(op, k));
        IKAT_EACH_LANE(i) for (unsigned k = 0; k < N; ++k) to[i * N + k] = T(from[k][i]);
    }
}

// ---- any addresses

/// Lane addresses relative to the view of the first active lane into w->addresses; lanes that are off get the first
/// active lane's. Returns that view with bytes = 0 unless every lane is inside it and aligned.
template <Space S, class A>
View common_view(const Op* op, Warp* w, std::byte* frame, std::uint32_t mask, std::uint64_t bytes) {
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
        low_bits |= at[i];
    }
    if (view.bytes < bytes || beyond || (low_bits & (bytes - 1))) view.bytes = 0;
    return view;
}

/// Every active lane by itself, each in a buffer of its own: between w->staging and memory. False on a finding.
template <class A, unsigned Bytes, bool Store>
HWY_NOINLINE bool move_lanes(const Op* op, Warp* w, std::byte* frame, std::uint32_t mask, Space space) {
    const A* const a = lanes_at<A>(frame, op->a);
    for (std::uint32_t rest = mask; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        std::byte* const memory = lane_bytes(w, op, space, lane, std::uint64_t(a[lane]) + offset_of(op), Bytes, Store);
        if (!memory) return false;
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

/// Whether all lanes, at a[i] + origin relative to a view's base, are inside of it and aligned.
template <class A>
HWY_INLINE bool all_inside(const A* a, std::uint64_t origin, std::uint64_t view_bytes, std::uint64_t bytes) {
    if (view_bytes < bytes) return false;
    std::uint64_t lowest = 0 - origin, range = view_bytes - bytes;
    if constexpr (sizeof(A) == 4) {  // a window: the base is 0, the origin a small offset of either sign
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
        low_bits = hn::Or(low_bits, hn::Add(lanes, hn::Set(v, A(origin))));
    }
    return hn::AllFalse(v, hn::Gt(largest, hn::Set(v, A(range)))) &&
           hn::AllTrue(v, hn::Eq(hn::And(low_bits, hn::Set(v, A(bytes - 1))), hn::Zero(v)));
}

/// Lane i from host + a[i].
template <class A, class T, unsigned N>
HWY_INLINE void load_gathered(const Op* op, Warp* w, std::byte* frame, const A* a, const std::byte* host) {
    if constexpr (N == 1) {
        Cell<T>* const d = lanes_at<Cell<T>>(frame, op->d);
        IKAT_UNROLLED_LANES(i) {
            T value;
            std::memcpy(&value, host + a[i], sizeof value);
            d[i] = value;
        }
    } else {
        std::byte* const staging = w->staging;
        IKAT_UNROLLED_LANES(i) std::memcpy(staging + i * sizeof(T) * N, host + a[i], sizeof(T) * N);
        load_contiguous<T, N>(op, frame, staging);
    }
}

template <class A, class T, unsigned N>
HWY_INLINE void store_scattered(const Op* op, Warp* w, std::byte* frame, const A* a, std::byte* host) {
    std::byte* const staging = w->staging;
    store_contiguous<T, N>(op, frame, staging);
    IKAT_UNROLLED_LANES(i) std::memcpy(host + a[i], staging + i * sizeof(T) * N, sizeof(T) * N);
}

// ---- the common patterns with all lanes

template <Space S, class A, class T, unsigned N>
IKAT_HANDLER(load) {
    constexpr std::uint64_t bytes = sizeof(T) * N;
    const A* const a = lanes_at<A>(frame, op->a);
    if (HWY_LIKELY(mask == all_lanes)) {
        const std::uint64_t address = std::uint64_t(a[0]) + offset_of(op);
        const auto& view = view_for<S>(w, address);
        const std::uint64_t at = address - view.base;
        if (S != Space::Generic || view.lane_stride == 0) {
            bool done = true;
            if (at % bytes == 0 && is_progression<A, A(bytes)>(a) && inside(view, at, warp_size * bytes))
                load_contiguous<T, N>(op, frame, view.host + at);
            else if (at % bytes == 0 && is_progression<A, 0>(a) && inside(view, at, bytes))
                load_uniform<T, N>(op, frame, view.host + at);
            else if (all_inside(a, offset_of(op) - view.base, view.bytes, bytes))
                load_gathered<A, T, N>(op, w, frame, a, view.host + (offset_of(op) - view.base));
            else
                done = false;
            if (HWY_LIKELY(done)) {
                count_bytes<S>(w, address, warp_size * bytes, &Warp::bytes_read);
                IKAT_NEXT;
            }
        }
    }
    return load_any<S, A, T, N>(op, w, frame, mask);
}

template <Space S, class A, class T, unsigned N>
IKAT_HANDLER(store) {
    constexpr std::uint64_t bytes = sizeof(T) * N;
    const A* const a = lanes_at<A>(frame, op->a);
    if (HWY_LIKELY(mask == all_lanes)) {
        const std::uint64_t address = std::uint64_t(a[0]) + offset_of(op);
        const auto& view = view_for<S>(w, address);
        const std::uint64_t at = address - view.base;
        if (S != Space::Generic || (view.lane_stride == 0 && view.writable)) {
            bool done = true;
            if (at % bytes == 0 && is_progression<A, A(bytes)>(a) && inside(view, at, warp_size * bytes))
                store_contiguous<T, N>(op, frame, view.host + at);
            else if (all_inside(a, offset_of(op) - view.base, view.bytes, bytes))
                store_scattered<A, T, N>(op, w, frame, a, view.host + (offset_of(op) - view.base));
            else
                done = false;
            if (HWY_LIKELY(done)) {
                count_bytes<S>(w, address, warp_size * bytes, &Warp::bytes_written);
                IKAT_NEXT;
            }
        }
    }
    return store_any<S, A, T, N>(op, w, frame, mask);
}

template <class T>
IKAT_HANDLER(load_parameter) {
    T value;
    std::memcpy(&value, w->windows[int(Space::Param)].host + op->x, sizeof value);
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
