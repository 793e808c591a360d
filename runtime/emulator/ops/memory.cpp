// SPDX-License-Identifier: Apache-2.0
// Loads and stores. The 32 addresses of a warp are nearly always a row, or two rows of 16:
//
//     contiguous   lane i is at base + i * size     one copy, or one de-interleave for .v2 and .v4
//     the same     every lane loads at base         one load, broadcast
// `load`, load_two_rows and `store` check the bounds of a row once and move vectors, if written bytes need not be
// tracked (close_written). They make no calls except tail calls, because a handler that is returned to would have to
// save registers.
// load_asking and store_anywhere track written bytes; they check other addresses of a full warp together and move lane
// by lane, vectors through a staging area that looks like the contiguous case. Partial masks, local memory and lanes in
// several buffers take slower paths (any_lanes.inl). Every path checks bounds and alignment.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/emulator/ops/memory.cpp"
#include <hwy/foreach_target.h>
// after foreach_target
#include "runtime/emulator/ops/any_lanes.inl"

HWY_BEFORE_NAMESPACE();
namespace ikat::emulator {
namespace HWY_NAMESPACE {

/// All lanes, where the loaded bytes may be unwritten.
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
        if (asks(view) && !(written(rows.low, 0) && written(rows.high, 16))) return go_on_checked(op, w, mask);
        load_rows<T, N>(op, frame, view, a);
    } else if (all_inside(a, op, view, bytes)) {
        if (asks(view) && !lanes_are_written(view.written, 0, a, offset_of(op) - view.base, mask, bytes))
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
        if (asks(view)) {
            note_range_written(view.written, rows.low, 16 * bytes, w->parallel);
            note_range_written(view.written, rows.high, 16 * bytes, w->parallel);
        }
        store_rows<T, N>(op, frame, view, rows);
    } else if (all_inside(a, op, view, bytes)) {
        if (asks(view)) note_lanes_written(view.written, 0, a, offset_of(op) - view.base, mask, bytes, w->parallel);
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

/// Shared and global memory have the fast paths; for other spaces, the decoder widens 32-bit addresses.
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
        case Space::Cluster: break;
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
Behaviour select_load(Space space, unsigned address_bytes, unsigned bytes, unsigned count) {
    return {HWY_DYNAMIC_DISPATCH(choose_access)(space, address_bytes, bytes, count, false),
            {.operation = Op::Load, .access = {space, bytes * count, Direction::Read}}};
}
Behaviour select_store(Space space, unsigned address_bytes, unsigned bytes, unsigned count) {
    return {HWY_DYNAMIC_DISPATCH(choose_access)(space, address_bytes, bytes, count, true),
            {.operation = Op::Store, .access = {space, bytes * count, Direction::Write}}};
}
Behaviour select_load_parameter(unsigned bytes) {
    return {HWY_DYNAMIC_DISPATCH(choose_load_parameter)(bytes), {Op::Param}};
}
}  // namespace ikat::emulator
#endif
