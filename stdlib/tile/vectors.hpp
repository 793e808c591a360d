// SPDX-License-Identifier: Apache-2.0
// Arrays in vectors, with tails: building blocks for kernels that stream through memory.
//
//     for_each_vec<float>(n, [&](auto width, const auto& i) {          // each element to one thread of the grid
//         store_lanes(y, i, 2 * load_lanes<width>(x, i));              // elements width * i ..., as f32
//     });
//
// The body is recorded twice: for whole vectors, and with width 1 for the elements that are left over. Arrays are
// aligned to a vector's bytes (buffers are; say so by the contract aligned<16>).
#pragma once
#include <algorithm>
#include <utility>

#include "dsl/threads/simt.hpp"

namespace ikat::stdlib {

/// How many elements of an array one access takes: 16 bytes.
template <class E>
inline constexpr int lanes_of = 16 / sizeof(E);

/// A number of elements as an argument whose type tells it.
template <int N>
using Width = std::integral_constant<int, N>;

/// N values in f32, whatever the type in memory.
template <int N>
using Lanes = LaneValues<float, LaneShape<std::size_t(N)>>;
/// Of one number.
inline Lanes<1> one_lane(const Leaf<float>& v) { return IncomingLanes<float, LaneShape<1>>(v).values(); }

/// Elements N * i ... N * i + N - 1.
template <int N, class E, Direction direction>
Lanes<N> load_lanes(const Indexable<E, direction>& x, const auto& i) {
    if constexpr (N == 1) {
        return one_lane(value(cast<f32>(x[i])));
    } else {
        return value(cast<f32>(x.template vec<N>(i)));
    }
}

/// The same where the condition is true, and `other` where it is not.
template <int N, class E, Direction direction>
Lanes<N> load_lanes_if(const auto& condition, const Indexable<E, direction>& x, const auto& i, float other) {
    if constexpr (N == 1) {
        return one_lane(value(cast<f32>(x.load_if(condition, i, other))));
    } else {
        return value(cast<f32>(x.template load_if<N>(condition, i, other)));
    }
}

/// Each rounded to the array's type, to nearest.
template <class E, Direction direction, Lanewise<float> V>
void store_lanes(const Indexable<E, direction>& y, const auto& i, const V& v) {
    constexpr int N = V::lane_shape::lanes;
    if constexpr (N == 1)
        y[i] = cast<E>(v[0]);
    else
        y.template vec<N>(i) = cast<E>(v);
}
template <class E, Direction direction, Lanewise<float> V>
void store_lanes_if(const auto& condition, const Indexable<E, direction>& y, const auto& i, const V& v) {
    if constexpr (V::lane_shape::lanes == 1)
        y.store_if(condition, i, cast<E>(v[0]));
    else
        y.store_if(condition, i, cast<E>(v));
}

/// Elements N * from ... of x to N * to ... of y, bit for bit.
template <int N>
void copy_lanes(const auto& y, const auto& to, const auto& x, const auto& from) {
    if constexpr (N == 1)
        y[to] = x[from];
    else
        y.template vec<N>(to) = x.template vec<N>(from);
}

/// body(Width<N>, i) for each vector of lanes_of<E> elements below n, then body(Width<1>, i) for each element that is
/// left over. The threads of the grid share the work along x, in blocks of one dimension.
template <class E, class Body>
void for_each_vec(const u32& n, Body&& body) {
    constexpr std::uint32_t N = lanes_of<E>;
    require_linear_blocks();
    for (auto i : grid_stride(n / N)) body(Width<N>{}, i);
    for (auto i : grid_stride(n % N)) body(Width<1>{}, value(n / N * N + i));
}

/// body(Width<N>) with the widest vectors of 16 or 4 bytes of which `columns` elements are a whole number, else of
/// single elements.
template <class E, class Body>
void with_width(const u32& columns, Body&& body) {
    constexpr int N = lanes_of<E>, M = sizeof(E) < 4 ? 4 / sizeof(E) : 1;
    const auto narrower = [&] {
        if constexpr (M > 1)
            if_(columns % std::uint32_t(M) == 0, [&] { body(Width<M>{}); }).else_([&] { body(Width<1>{}); });
        else
            body(Width<1>{});
    };
    if_(columns % std::uint32_t(N) == 0, [&] { body(Width<N>{}); }).else_(narrower);
}

/// How many vectors of N elements lie between vector number `i` of an array and the beginning of its line of 128 bytes,
/// or of what a warp takes at once if that is less. Where a row begins in the middle of a line, threads that begin so
/// much before it access whole lines.
template <int N, class E>
auto place_in_line(const auto& i) {
    return value(i % std::min<std::uint32_t>(128 / (N * sizeof(E)), 32));
}

/// The columns, in vectors of N elements, that thread number `thread` of `threads` takes of a row of `length` vectors
/// that begins at vector number `first` of its array. A round to a trip: a kernel has this loop in three widths, and
/// its registers decide how many blocks hide each other's waits.
template <int N, class E>
auto columns_of(const auto& first, const auto& length, const auto& thread, const auto& threads) {
    const auto before = value(min(place_in_line<N, E>(first), threads - 1u));
    return range(value(select(thread < before, thread + threads, thread) - before), length, threads).unroll(1);
}

}  // namespace ikat::stdlib
