// SPDX-License-Identifier: Apache-2.0
// Moves data between the registers of a warp and memory: lane after lane, in rows, or each lane at its own address.
// Nothing is checked here. Included by the memory handlers once per instruction set, like lanes.inl.
#if defined(IKAT_EMULATOR_ROWS) == defined(HWY_TARGET_TOGGLE)
#ifdef IKAT_EMULATOR_ROWS
#undef IKAT_EMULATOR_ROWS
#else
#define IKAT_EMULATOR_ROWS
#endif

#include "runtime/emulator/ops/addresses.inl"

HWY_BEFORE_NAMESPACE();
namespace ikat::emulator {
namespace HWY_NAMESPACE {

HWY_INLINE std::uint32_t element(const MicroOp* op, unsigned k) {
    return k == 0 ? op->d : k == 1 ? op->b : k == 2 ? op->c : op->y;
}

/// Into `Count` lanes from `first` on, and the same again into the following lanes.
template <class T, unsigned N, unsigned Count = warp_size, bool Again = false>
HWY_INLINE void load_contiguous(const MicroOp* op, std::byte* frame, const std::byte* host, unsigned first = 0) {
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
HWY_INLINE void load_uniform(const MicroOp* op, std::byte* frame, const std::byte* host, unsigned first = 0) {
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
HWY_INLINE void store_contiguous(const MicroOp* op, std::byte* frame, std::byte* host, unsigned first = 0) {
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

/// The rows of a warp, relative to the view's base.
struct Rows {
    std::uint64_t low, high;
};
template <class A>
HWY_INLINE Rows rows_of(const A* a, const MicroOp* op, const View& view) {
    const std::uint64_t origin = offset_of(op) - view.base;
    return {a[0] + origin, a[16] + origin};
}

template <class T, unsigned N, class A>
HWY_INLINE void load_rows(const MicroOp* op, std::byte* frame, const View& view, const A* a) {
    const Rows rows = rows_of(a, op, view);
    const bool low_same = is_same(a, 0), high_same = is_same(a, 16);  // a may be the loaded register
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
HWY_INLINE void store_rows(const MicroOp* op, std::byte* frame, const View& view, const Rows& rows) {
    store_contiguous<T, N, 16>(op, frame, view.host + rows.low);
    store_contiguous<T, N, 16>(op, frame, view.host + rows.high, 16);
}

/// Where address 0 would be on the host: a number, because it is outside every object.
HWY_INLINE std::uintptr_t origin_of(const View& view, const MicroOp* op) {
    return reinterpret_cast<std::uintptr_t>(view.host) + (offset_of(op) - view.base);
}

/// Lane i from origin + a[i].
template <class A, class T, unsigned N>
HWY_INLINE void load_gathered(const MicroOp* op, Warp* w, std::byte* frame, const A* a, std::uintptr_t origin) {
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
HWY_INLINE void store_scattered(const MicroOp* op, Warp* w, std::byte* frame, const A* a, std::uintptr_t origin) {
    std::byte* const staging = w->staging;
    store_contiguous<T, N>(op, frame, staging);
    IKAT_UNROLLED_LANES(i)
    std::memcpy(reinterpret_cast<std::byte*>(origin + a[i]), staging + i * sizeof(T) * N, sizeof(T) * N);
}

}  // namespace HWY_NAMESPACE
}  // namespace ikat::emulator
HWY_AFTER_NAMESPACE();
#endif
