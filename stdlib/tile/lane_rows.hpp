// SPDX-License-Identifier: Apache-2.0
// The accumulators of a warp or a warpgroup, row by row in registers: masks, reductions of rows, what depends on the
// row and the column.
//
//     WarpTiles<M, 32, 64> x(0.0f);                                       ... or WarpgroupTiles
//     mask(x, [&](const auto& row, const auto& column) { return column <= row; });            others are -infinity
//     const auto largest = row_max(x), scale = ...
//     each_number(x, [&](auto& v, std::uint32_t r, const auto&, const auto&) { v = exp(v - largest[r]); });
//     const auto total = row_sum(x);
//     scale_rows(x, [&](std::uint32_t r) { return 1.0f / total[r]; });
//
// A lane has numbers of `rows` rows: two of every eight columns. Four lanes share a row, and all four get the same
// result of a reduction. Rows and columns are those of the tiles, counted from 0.
#pragma once
#include <limits>

#include "dsl/threads/warp.hpp"
#include "stdlib/tile/warp_tiles.hpp"
#include "stdlib/tile/warpgroup_tiles.hpp"

namespace ikat::stdlib {

/// How a lane has the numbers of tiles: of WarpTiles or WarpgroupRows.
template <class Tiles>
struct LaneRows {
    static constexpr std::uint32_t rows = Tiles::m / 8, columns = Tiles::n / 8;
    /// Number c, 0 or 1, in columns 8 j and on, of the lane's row r.
    static auto& number(auto& tiles, std::uint32_t r, std::uint32_t j, std::uint32_t c) {
        return tiles(r / 2, j)[r % 2 * 2 + c];
    }
    static auto row(std::uint32_t r) { return value(lane_id() / 4u + (8 * (r % 2) + 16 * (r / 2))); }
};
/// Of a warpgroup, whose warps have 16 rows of every 64.
template <class W, std::uint32_t count>
struct LaneRows<WarpgroupTiles<W, count>> {
    static constexpr std::uint32_t rows = 2 * count, columns = W::n / 8;
    static auto& number(auto& tiles, std::uint32_t r, std::uint32_t j, std::uint32_t c) {
        return tiles[r / 2][4 * j + r % 2 * 2 + c];
    }
    static auto row(std::uint32_t r) {
        return value(warp_id() % 4u * 16u + lane_id() / 4u + (8 * (r % 2) + 64 * (r / 2)));
    }
};
template <class Tiles>
using LaneRowsOf = LaneRows<std::remove_cvref_t<Tiles>>;

/// A number for each row of a lane.
template <class Tiles>
using RowNumbers = Regs<Var<typename std::remove_cvref_t<Tiles>::Accumulator>, LaneRowsOf<Tiles>::rows>;

/// f of the four lanes that share a row.
auto over_row(const auto& v, auto&& f) {
    const auto two = value(f(v, shuffle_xor(v, 1)));
    return value(f(two, shuffle_xor(two, 2)));
}

/// f(v, column) for each number of this lane in its row r; columns are host numbers, counted from the lane's first one,
/// lane % 4 * 2.
template <class Tiles>
void each_of_row(Tiles& tiles, std::uint32_t r, auto&& f) {
    for (std::uint32_t j = 0; j < LaneRowsOf<Tiles>::columns; ++j)
        for (std::uint32_t c = 0; c < 2; ++c) f(LaneRowsOf<Tiles>::number(tiles, r, j, c), 8 * j + c);
}

/// f(v, r, row, column) for each number of this lane: r is the lane's row, a host number, row and column are u32.
template <class Tiles>
void each_number(Tiles& tiles, auto&& f) {
    const auto first = value(lane_id() % 4u * 2u);
    for (std::uint32_t r = 0; r < LaneRowsOf<Tiles>::rows; ++r) {
        const auto row = LaneRowsOf<Tiles>::row(r);
        each_of_row(tiles, r, [&](auto& v, std::uint32_t column) { f(v, r, row, value(first + column)); });
    }
}

/// All numbers become x.
template <class Tiles>
void fill(Tiles& tiles, const Incoming<typename Tiles::Accumulator>& x) {
    const Leaf<typename Tiles::Accumulator> v(x.value());
    for (std::uint32_t r = 0; r < LaneRowsOf<Tiles>::rows; ++r)
        each_of_row(tiles, r, [&](auto& each, std::uint32_t) { each = v; });
}

/// Numbers for which keep(row, column) does not hold become `otherwise`: f32, -infinity by default.
template <class Tiles>
void mask(Tiles& tiles, auto&& keep, float otherwise = -std::numeric_limits<float>::infinity()) {
    each_number(tiles, [&](auto& v, std::uint32_t, const auto& row, const auto& column) {
        v = select(keep(row, column), v, otherwise);
    });
}

/// f of all numbers of each row, from `start` on; f is associative and commutative: its order is not said.
template <class Tiles>
RowNumbers<Tiles> row_reduce(const Tiles& tiles, const Incoming<typename Tiles::Accumulator>& start, auto&& f) {
    const Leaf<typename Tiles::Accumulator> first(start.value());
    RowNumbers<Tiles> out;
    for (std::uint32_t r = 0; r < LaneRowsOf<Tiles>::rows; ++r) {
        Var<typename Tiles::Accumulator> all = first;
        each_of_row(tiles, r, [&](const auto& v, std::uint32_t) { all = f(value(all), v); });
        out[r] = over_row(value(all), f);
    }
    return out;
}
template <class Tiles>
RowNumbers<Tiles> row_sum(const Tiles& tiles) {
    return row_reduce(tiles, typename Tiles::Accumulator{}, [](auto&& a, auto&& b) { return a + b; });
}
/// NaNs are ignored.
template <class Tiles>
RowNumbers<Tiles> row_max(const Tiles& tiles) {
    using Limits = std::numeric_limits<typename Tiles::Accumulator>;
    constexpr auto lowest = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    return row_reduce(tiles, lowest, [](auto&& a, auto&& b) { return max(a, b); });
}

/// Each number times factor(r), where r is its row of the lane.
template <class Tiles>
void scale_rows(Tiles& tiles, auto&& factor) {
    for (std::uint32_t r = 0; r < LaneRowsOf<Tiles>::rows; ++r) {
        const auto by = value(factor(r));
        each_of_row(tiles, r, [&](auto& v, std::uint32_t) { v = v * by; });
    }
}

}  // namespace ikat::stdlib
