// SPDX-License-Identifier: Apache-2.0
// What the parts of a matmul are asked for, so that any of them may be one of your own:
//
//     schedule    which tiles a block makes, and of which slices of k       block_schedule.hpp
//     source      slices of A and of B, copied to shared memory             tile_source.hpp
//     product     multiplies them, and has the accumulators of a tile       block_product.hpp, cluster_product.hpp
//     epilogue    f(i, j, values): what becomes of them
//
//     schedule.each([&](const auto& work) {
//         const BlockProduct<T, tile, order_a, order_b, A, B> product(a, b, row, column, work.part);    a, b: sources
//         product.template each<8>(f);
//     });
#pragma once
#include <concepts>
#include <optional>

#include "stdlib/tile/schedule.hpp"
#include "stdlib/tile/shared_tile.hpp"

namespace ikat::stdlib {

/// Slices of a matrix for stages of `Tile`. source.load(stage, slice), by all threads of the block, begins to copy
/// number `slice` from 0 of source.count() to a stage, by copy_async or by plain stores; threads see it after
/// copy_commit(), copy_wait() and sync_block(). Beyond its last slice, and beyond k in that one, it stores zeros. Rows
/// of A or columns of B that are not there may be anything. It may also have load(stage, slice, PartOfSlice), see
/// load_part().
template <class S, class Tile>
concept SourceFor = requires(const S& source, const TileStage<Tile>& to, const Leaf<std::uint32_t>& slice) {
    { source.count() } -> std::convertible_to<Leaf<std::uint32_t>>;
    source.load(to, slice);
};

/// The accumulators of a tile, of type P::Accumulator: product.each<count>(f) calls f(i, j, values) for `count`, 4 or
/// 8, that begin at row i and column j, a multiple of `count`, of C, until all have been passed; also for those beyond
/// C. By all threads that have them.
template <class P>
concept TileProduct = requires(const P& product, void (*f)(...)) {
    typename P::Accumulator;
    product.template each<4>(f);
    product.template each<8>(f);
};

/// What a block does: `at` is the tile, and `part` the slices of k, a PartOfK, or, std::optional, all of them.
template <class W>
concept ScheduledWork = requires(const W& work) {
    { work.at } -> std::convertible_to<TilePlace>;
    { work.part } -> std::convertible_to<std::optional<PartOfK>>;
};

/// schedule.each(f), by all threads of the block, calls f(work) for each tile, with a const S::Work&. Where there are
/// several, the block meets between them, so that shared memory may be used again.
template <class S>
concept TileSchedule = ScheduledWork<typename S::Work> &&
    requires(const S& schedule, void (*f)(const typename S::Work&)) {
    schedule.each(f);
};

}  // namespace ikat::stdlib
