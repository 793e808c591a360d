// SPDX-License-Identifier: Apache-2.0
// Loads and stores. A warp's 32 addresses nearly always form one of two patterns, and each has a path that checks the
// bounds once and moves whole vectors:
//
//     contiguous   lane i reads base + i * size        one copy, or one de-interleave for .v2 and .v4
//     uniform      every lane reads the same           one load, broadcast
//
// Everything else (partial masks, strides, several buffers, local memory) takes the lanes one by one, after one check
// of all of them where they lie in one buffer. Every path checks bounds and alignment.
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

/// Addresses of the active lanes into w->addresses, those of the others set to the first active lane's. Returns the
/// view when all of them are inside one and aligned; else one of 0 bytes.
template <class A>
View common_view(const Op* op, Warp* w, std::byte* frame, std::uint32_t mask, Space space, std::uint64_t bytes) {
    const A* const a = lanes_at<A>(frame, op->a);
    const auto offset = std::uint64_t(std::int64_t(std::int32_t(op->x)));
    std::uint64_t* const addresses = w->addresses;
    const std::uint64_t first = std::uint64_t(a[std::countr_zero(mask)]) + offset;
    IKAT_EACH_LANE(i) addresses[i] = mask >> i & 1 ? std::uint64_t(a[i]) + offset : first;
    View view = view_of(*w, space, first);
    if (view.bytes < bytes) return {};
    std::uint64_t beyond = 0, misaligned = 0;
    const std::uint64_t base = view.base, last = view.bytes - bytes;
    for (unsigned i = 0; i < warp_size; ++i) {
        beyond |= addresses[i] - base > last ? 1 : 0;
        misaligned |= addresses[i];
    }
    if (beyond || (misaligned & (bytes - 1))) view.bytes = 0;
    return view;
}

template <class T, unsigned N>
HWY_NOINLINE bool load_lanes(const Op* op, Warp* w, std::byte* frame, std::uint32_t mask, Space space,
                             const View& view) {
    constexpr std::uint32_t bytes = sizeof(T) * N;
    Cell<T>* to[N];
    for (unsigned k = 0; k < N; ++k) to[k] = lanes_at<Cell<T>>(frame, element(op, k));
    const bool checked = view.bytes != 0;
    for (std::uint32_t rest = mask; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        const std::uint64_t address = w->addresses[lane];
        const std::byte* from = view.host + (address - view.base) + lane * view.lane_stride;
        if (!checked && !(from = lane_bytes(w, op, space, lane, address, bytes, false))) return false;
        for (unsigned k = 0; k < N; ++k) {
            T value;
            std::memcpy(&value, from + k * sizeof(T), sizeof(T));
            to[k][lane] = value;
        }
    }
    return true;
}

template <class T, unsigned N>
HWY_NOINLINE bool store_lanes(const Op* op, Warp* w, std::byte* frame, std::uint32_t mask, Space space,
                              const View& view) {
    constexpr std::uint32_t bytes = sizeof(T) * N;
    const Cell<T>* from[N];
    for (unsigned k = 0; k < N; ++k) from[k] = lanes_at<Cell<T>>(frame, element(op, k));
    const bool checked = view.bytes != 0 && view.writable;
    for (std::uint32_t rest = mask; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        const std::uint64_t address = w->addresses[lane];
        std::byte* to = view.host + (address - view.base) + lane * view.lane_stride;
        if (!checked && !(to = lane_bytes(w, op, space, lane, address, bytes, true))) return false;
        for (unsigned k = 0; k < N; ++k) {
            const T value = T(from[k][lane]);
            std::memcpy(to + k * sizeof(T), &value, sizeof(T));
        }
    }
    return true;
}

template <Space S, class A, class T, unsigned N>
HWY_NOINLINE IKAT_HANDLER(load_any) {
    const View view = common_view<A>(op, w, frame, mask, S, sizeof(T) * N);
    if (!load_lanes<T, N>(op, w, frame, mask, S, view)) return nullptr;
    count_bytes<S>(w, w->addresses[0], sizeof(T) * N * unsigned(std::popcount(mask)), &Warp::bytes_read);
    IKAT_NEXT;
}

template <Space S, class A, class T, unsigned N>
HWY_NOINLINE IKAT_HANDLER(store_any) {
    const View view = common_view<A>(op, w, frame, mask, S, sizeof(T) * N);
    if (!store_lanes<T, N>(op, w, frame, mask, S, view)) return nullptr;
    count_bytes<S>(w, w->addresses[0], sizeof(T) * N * unsigned(std::popcount(mask)), &Warp::bytes_written);
    IKAT_NEXT;
}

template <class T, unsigned N>
HWY_INLINE void load_contiguous(const Op* op, std::byte* frame, const std::byte* host) {
    const T* const from = reinterpret_cast<const T*>(host);
    for (unsigned k = 0; k < N; ++k) {
        Cell<T>* const d = lanes_at<Cell<T>>(frame, element(op, k));
        IKAT_EACH_LANE(i) d[i] = from[i * N + k];
    }
}

template <class T, unsigned N>
HWY_INLINE void load_uniform(const Op* op, std::byte* frame, const std::byte* host) {
    T values[N];
    std::memcpy(values, host, sizeof values);
    for (unsigned k = 0; k < N; ++k) {
        Cell<T>* const d = lanes_at<Cell<T>>(frame, element(op, k));
        IKAT_EACH_LANE(i) d[i] = values[k];
    }
}

template <class T, unsigned N>
HWY_INLINE void store_contiguous(const Op* op, std::byte* frame, std::byte* host) {
    T* const to = reinterpret_cast<T*>(host);
    const Cell<T>* from[N];
    for (unsigned k = 0; k < N; ++k) from[k] = lanes_at<Cell<T>>(frame, element(op, k));
    IKAT_EACH_LANE(i) for (unsigned k = 0; k < N; ++k) to[i * N + k] = T(from[k][i]);
}

template <Space S, class A, class T, unsigned N>
IKAT_HANDLER(load) {
    constexpr std::uint64_t bytes = sizeof(T) * N;
    const A* const a = lanes_at<A>(frame, op->a);
    if (HWY_LIKELY(mask == all_lanes)) {
        const std::uint64_t address = std::uint64_t(a[0]) + std::uint64_t(std::int64_t(std::int32_t(op->x)));
        const View view = view_of(*w, S, address);
        const std::uint64_t at = address - view.base;
        if (at % bytes == 0 && (S != Space::Generic || view.lane_stride == 0)) {
            if (is_progression<A, A(bytes)>(a)) {
                if (HWY_LIKELY(inside(view, at, warp_size * bytes))) {
                    load_contiguous<T, N>(op, frame, view.host + at);
                    count_bytes<S>(w, address, warp_size * bytes, &Warp::bytes_read);
                    IKAT_NEXT;
                }
            } else if (is_progression<A, 0>(a)) {
                if (HWY_LIKELY(inside(view, at, bytes))) {
                    load_uniform<T, N>(op, frame, view.host + at);
                    count_bytes<S>(w, address, warp_size * bytes, &Warp::bytes_read);
                    IKAT_NEXT;
                }
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
        const std::uint64_t address = std::uint64_t(a[0]) + std::uint64_t(std::int64_t(std::int32_t(op->x)));
        const View view = view_of(*w, S, address);
        const std::uint64_t at = address - view.base;
        if (at % bytes == 0 && (S != Space::Generic || (view.lane_stride == 0 && view.writable)) &&
            is_progression<A, A(bytes)>(a) && HWY_LIKELY(inside(view, at, warp_size * bytes))) {
            store_contiguous<T, N>(op, frame, view.host + at);
            count_bytes<S>(w, address, warp_size * bytes, &Warp::bytes_written);
            IKAT_NEXT;
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
