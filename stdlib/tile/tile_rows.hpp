// SPDX-License-Identifier: Apache-2.0
// The accumulators of a warp, row by row: lanes of fragments exchange them by way of shared memory, so that each has
// some that follow each other in a row and can be stored at once.
//
//     each_row<8>(accumulators, scratch, [&](const auto& row, const auto& column, const auto& v) {    v: eight lanes
//         C.vec<8>(first_row + row, (first_column + column) / 8) = cast<bf16>(v);
//     });
//
// Or, rounded to 16 bits, by way of rows of a tile that are the warp's own:
//
//     put_rows(accumulators, a[stage], warp_row);
//     each_piece(a[stage], warp_row, 64, [&](const auto& row, const auto& column, const auto& v) { ... });
#pragma once
#include <functional>

#include "dsl/lanes/registers.hpp"
#include "dsl/threads/control.hpp"
#include "dsl/threads/simt.hpp"
#include "dsl/threads/warp.hpp"
#include "stdlib/tile/warp_tiles.hpp"

namespace ikat::stdlib {

/// Rows of `n` accumulators in shared memory: eight words, or 24, more than a multiple of all banks, so that pairs of
/// four rows are in different ones.
constexpr std::uint32_t scratch_pitch(std::uint32_t n) { return n + (n % 16 == 0 ? 8 : 0); }
/// How many numbers of shared memory each warp needs to exchange 16 rows of its accumulators.
template <class Accumulators>
inline constexpr std::uint32_t row_scratch = 16 * scratch_pitch(Accumulators::n);

namespace detail {

/// A group of neighbours in a row of the scratch memory, and where it is.
struct RowGroup {
    Leaf<std::uint32_t> row, column, place;
};

/// How many words the last eight rows begin further, where lanes read groups in pairs of rows, see exchange_rows().
constexpr std::uint32_t row_shift(std::uint32_t n, std::uint32_t count) { return count == 8 && n % 32 == 0 ? 4 : 0; }

template <std::uint32_t n, std::uint32_t count>
RowGroup row_group(const Leaf<std::uint32_t>& at) {
    constexpr std::uint32_t pitch = scratch_pitch(n), groups = n / count;
    if constexpr (row_shift(n, count) > 0) {
        constexpr std::uint32_t half_rows = 8 * pitch + row_shift(n, count);
        const auto half = value(at / 4u % 2u), row = value(at / (2 * groups));
        const auto column = value((at / 8u % (groups / 4) * 4u + at % 4u) * count);
        return {value(row + half * 8u), column, value(row * pitch + half * half_rows + column)};
    } else {
        const auto row = value(at / groups), column = value(at % groups * count);
        return {row, column, value(row * pitch + column)};
    }
}

}  // namespace detail

/// 16 rows of `n` columns, of which pair(j, half) are the lane's two accumulators in columns 8 j and on, in row lane /
/// 4 of the upper or the lower half: calls f(row, column, values) for `count` of them, 4 or 8, that follow each other
/// in a row, until all have been passed. `scratch` has 16 * scratch_pitch(n) numbers for this warp.
///
/// Lanes read four words at a time. For eight columns each of them leaves four out, which another lane reads at the
/// same time: of eight lanes, four have groups of a row, and four the same groups eight rows further, which begin four
/// words further in the banks.
template <class Accumulator, std::uint32_t n, std::uint32_t count, class Scratch>
void exchange_rows(const Scratch& scratch, auto&& pair, auto&& f) {
    constexpr std::uint32_t pitch = scratch_pitch(n), groups = n / count, all = 16 * groups;
    static_assert(n % count == 0 && count % 4 == 0, "a row is a whole number of groups, each of 4 or 8 columns");
    constexpr std::uint32_t shift = detail::row_shift(n, count);
    const auto lane = value(lane_id());
    for (std::uint32_t j = 0; j < n / 8; ++j)
        for (std::uint32_t half = 0; half < 2; ++half) {
            const auto place = value((lane / 4u + 8 * half) * pitch + half * shift + 8 * j + lane % 4u * 2u);
            scratch.template vec<2>(place / 2u) = pair(j, half);
        }
    sync_warp();
    for (auto begin : range(0u, all, 32u)) {  // on the device: f may be long
        const auto at = value(begin + lane);
        const auto read = [&] {
            const detail::RowGroup group = detail::row_group<n, count>(at);
            LaneValues<Accumulator, LaneShape<count>> values;
            for (std::uint32_t k = 0; k < count; k += 4) {
                const auto four = scratch.template vec<4>((group.place + k) / 4u);
                for (std::uint32_t e = 0; e < 4; ++e) values.set(k + e, four.lane(e).recorded());
            }
            f(group.row, group.column, values);
        };
        if constexpr (all % 32 == 0)
            read();
        else
            if_(at < all, read);
    }
    sync_warp();  // what is there has been read
}

/// Calls f(row, column, values) for `count` accumulators, 4 or 8, in columns of a row of the warp's part that follow
/// each other, until all have been passed. `scratch` has row_scratch numbers for this warp.
template <std::uint32_t count, class M, std::uint32_t m, std::uint32_t n, class Scratch>
void each_row(const WarpTiles<M, m, n>& accumulators, const Scratch& scratch,
              const std::function<void(const Leaf<std::uint32_t>& row, const Leaf<std::uint32_t>& column,
                                       const LaneValues<typename M::C::element_type, LaneShape<count>>& values)>& f) {
    using Accumulator = typename WarpTiles<M, m, n>::Accumulator;
    for (std::uint32_t i = 0; i < m / 16; ++i)
        exchange_rows<Accumulator, n, count>(
            scratch,
            [&](std::uint32_t j, std::uint32_t half) {
                return Vec<Accumulator, 2>(accumulators(i, j)[2 * half], accumulators(i, j)[2 * half + 1]);
            },
            [&](const auto& row, const auto& column, const auto& values) { f(value(row + 16 * i), column, values); });
}

namespace detail {

/// f(place, v, w) for each two neighbours of a lane's accumulators, and for the byte of a stage of elements of 16 bits
/// where they are in rows `first` and on.
template <class Tile, class Tiles>
void each_pair(Tiles& accumulators, const Word& first, const Word& of_lane, auto&& f) {
    static_assert(sizeof(typename Tile::element_type) == 2 && Tiles::n == Tile::columns,
                  "put_rows and get_rows: of a tile of 16-bit elements, as wide as the accumulators");
    const auto lane = word(of_lane), row = value(word(first) + lane / 4u);
    for (std::uint32_t i = 0; i < Tiles::m / 16; ++i)
        for (std::uint32_t half = 0; half < 2; ++half)
            for (std::uint32_t j = 0; j < Tiles::n / 8; ++j) {
                auto& fragment = accumulators(i, j);
                const auto place = Tile::place(value(row + (16 * i + 8 * half)), value(lane % 4u * 2u + 8 * j));
                f(place, fragment[2 * half], fragment[2 * half + 1]);
            }
}

}  // namespace detail

/// The accumulators, each rounded to an element of 16 bits, to rows `first` and on of a stage. Afterwards the warp sees
/// them. `lane` is lane_id(), computed anew where no register is to keep it until here.
template <class M, std::uint32_t m, std::uint32_t n, class Tile>
void put_rows(const WarpTiles<M, m, n>& accumulators, const TileStage<Tile>& stage, const Word& first,
              const Word& lane = lane_id()) {
    using Pair = ikat::Pair<typename Tile::element_type>;
    const auto pairs = stage.tile().bytes().template as<Pair>();
    detail::each_pair<Tile>(accumulators, first, lane, [&](const auto& place, const auto& v, const auto& w) {
        pairs[(stage.first() + place) / 4u] = pack<Pair>(v, w);
    });
    sync_warp();
}

/// The inverse: the accumulators become rows `first` and on of a stage of elements of 16 bits, which the warp sees.
template <class M, std::uint32_t m, std::uint32_t n, class Tile>
void get_rows(WarpTiles<M, m, n>& accumulators, const TileStage<Tile>& stage, const Word& first) {
    using Accumulator = typename WarpTiles<M, m, n>::Accumulator;
    const auto pairs = stage.tile().bytes().template as<ikat::Pair<typename Tile::element_type>>();
    detail::each_pair<Tile>(accumulators, first, lane_id(), [&](const auto& place, auto& v, auto& w) {
        const auto two = value(pairs[(stage.first() + place) / 4u]);
        v = cast<Var<Accumulator>>(two[0]);
        w = cast<Var<Accumulator>>(two[1]);
    });
}

/// Calls f(row, column, values) for the 16 bytes from each such column on, of rows `first` to `first + rows - 1` of a
/// stage: a warp's own; `lane` as of put_rows().
template <class Tile>
void each_piece(const TileStage<Tile>& stage, const Word& first, std::uint32_t rows, auto&& f,
                const Word& of_lane = lane_id()) {
    using T = typename Tile::element_type;
    constexpr std::uint32_t count = 16 / sizeof(T), of_row = Tile::columns / count;
    const auto lane = word(of_lane);
    const auto elements = stage.tile().bytes().template as<T>();
    for (std::uint32_t begin = 0; begin < rows * of_row; begin += 32) {
        const auto at = value(begin + lane);
        const auto read = [&] {
            const auto [row, piece] = Tile::shape.unit_of_row(at, 16, rows);
            const auto column = value(piece * count);
            const auto place = value(stage.first() + Tile::place(value(word(first) + row), column));
            f(row, column, elements.template vec<int(count)>(place / 16u));
        };
        if (rows * of_row - begin < 32)
            if_(at < rows * of_row, read);
        else
            read();
    }
}

}  // namespace ikat::stdlib
