// SPDX-License-Identifier: Apache-2.0
// What a block of the wgmma kernels of flash_attention() works on, and where rows of it are in memory.
#pragma once
#include <functional>
#include <optional>

#include "dsl/kernel/tensor_map.hpp"
#include "stdlib/attention/scores.hpp"
#include "stdlib/attention/wgmma_kernels.hpp"
#include "stdlib/tile/warpgroup_tiles.hpp"

namespace ikat::stdlib {

/// Queries of a head, and the tiles of keys that some of them see.
struct WgmmaWork : QueriesPlace {
    Leaf<std::uint32_t> begin, end;
    std::optional<HeadScores> own{};
};

/// The work of all blocks.
template <class T>
struct WgmmaWorks {
    const WgmmaAttentionKernel& is;
    const WgmmaAttentionTile tile;
    const Scoring<T>& with;
    const Leaf<std::uint32_t>& tiles;

    /// Calls f for the work of this block: of a round of all blocks, which are in the opposite order in each second
    /// round, so that those with the most keys, the last of each head, are not always the same block's.
    void each(const std::function<void(const WgmmaWork&)>& f) const {
        const auto all = tiles, blocks = value(grid_dim().x);
        const auto of_head = is.has_offsets ? value(all / with.heads) : tiles_of(with.queries, tile.queries());
        u32 own = block_id().x;
        for (auto round : range(0u, all, blocks)) {
            const auto number = value(round + own);
            own = blocks - 1u - own;
            if_(number < all, [&] {
                const auto of_queries = value(of_head - 1u - number % of_head), plane = value(number / of_head);
                if (is.has_offsets) {
                    const auto found = sequence_of_block(with, of_queries, tile.queries());
                    if_(found.has_queries(), [&] { f(work_at(place_in_sequence(with, found, plane))); });
                    return;
                }
                const auto first_query = value(of_queries * tile.queries());
                const auto head = value(plane % with.heads), sequence = value(plane / with.heads);
                f(work_at({with.queries, with.keys, first_query, head, sequence, with.first, with.last}));
            });
        }
    }

    /// Calls f(number, number before) for the tiles of keys after the first; gives the last number.
    Leaf<std::uint32_t> each_after_first(
        const WgmmaWork& work,
        const std::function<void(const Leaf<std::uint32_t>&, const Leaf<std::uint32_t>&)>& f) const {
        const auto next = [&](const Leaf<std::uint32_t>& from) {
            return next_seen(*work.own, work, tile.queries(), tile.keys(), value(from + 1u), work.end);
        };
        u32 before = work.begin, number = next(work.begin);
        while_([&] { return number < work.end; },
               [&] {
                   f(value(number), value(before));
                   before = number;
                   number = next(value(number));
               });
        return value(before);
    }

private:
    /// If there are no tiles of keys, one of which no query sees a key: after all keys, where everything is zero.
    WgmmaWork work_at(const QueriesPlace& at) const {
        const std::uint32_t keys = tile.keys();
        const auto after_all = tiles_of(value(at.keys + at.queries), keys);
        auto begin = value(bit_cast<u32>(max(bit_cast<i32>(at.first_query) + at.first, 0)) / keys);
        auto end = tiles_of(at.keys, keys);
        if (is.has_after) {
            const auto after_last = value(bit_cast<i32>(min(at.first_query + tile.queries(), at.queries)));
            end = tiles_of(value(bit_cast<u32>(max(min(bit_cast<i32>(at.keys), after_last + at.last), 0))), keys);
        }
        const std::optional<HeadScores> own = at.own(with);
        if (is.own.has_sight()) begin = next_seen(*own, at, tile.queries(), keys, begin, end);
        const auto has_keys = value(begin < end);
        return {at, value(select(has_keys, begin, after_all)), value(select(has_keys, end, after_all + 1u)), own};
    }
};

/// The first coordinates of `count` rows of a head, from `row` of `all` of a sequence on; with offsets, `begin` is the
/// sequence's first row. A map has boxes of `count` rows, of which `count` follow each other then: those from
/// `begin` - `count` on, those from the next one on ... A box begins that far into one of them that nothing is left of
/// it after the sequence.
struct WgmmaRows {
    Leaf<std::uint32_t> sequence, head, row;
};
inline WgmmaRows wgmma_rows(const QueriesPlace& work, const Leaf<std::uint32_t>& head, const Leaf<std::uint32_t>& row,
                            const Leaf<std::uint32_t>& all, const std::optional<Leaf<std::uint32_t>>& begin,
                            std::uint32_t count) {
    if (!begin) return {work.sequence, head, row};
    const auto there = value(min(all - min(row, all), count));
    return {head, value(*begin + row + there), value(count - there)};
}
inline WgmmaRows wgmma_queries(const QueriesPlace& work, const Leaf<std::uint32_t>& first) {
    return wgmma_rows(work, work.head, first, work.queries, work.query_row, 64);
}

/// Where a panel of a stage begins.
template <class T>
auto panel_of(const StageBytes& stage, const Leaf<std::uint32_t>& panel) {
    const auto bytes = value(stage.first + panel * stage.tile.panel_bytes());
    return stage.bytes.as<T>()[bytes / std::uint32_t(sizeof(T))];
}
/// Copies rows of a tensor of four dimensions, whose boxes are panels. In a loop on the device: few registers are left
/// to the thread that copies.
template <class T>
void copy_panels(const StageBytes& to, const auto& map, const WgmmaRows& rows, const BarrierPlace& arrival) {
    const std::uint32_t of_panel = to.tile.panel_row() / sizeof(T), panels = to.tile.columns() / of_panel;
    for (auto panel : range(0u, panels)) {
        const auto place = panel_of<T>(to, panel);
        tma_load(place, map[rows.sequence, rows.head, rows.row, panel * of_panel], arrival);
    }
}

/// The accumulators of a warpgroup, rounded, to a stage that is its own, and from there to `to`: rows() gives which
/// rows of it. Its warps are done with the stage's elements before; when its first thread comes back, the stage is
/// free.
template <class T, class Tile>
void store_by_way_of(const Tile& tile, const Leaf<std::uint32_t>& number, const Leaf<std::uint32_t>& group,
                     const auto& accumulators, const auto& to, auto&& rows) {
    const auto stage = tile[number];
    sync_warpgroup(group);
    const auto row = value(warp_id() % 4u * 16u + lane_id() % 16u), right = value(lane_id() / 16u);
    const Pieces<Tile> pieces(tile, row, right);
    constexpr std::uint32_t columns = std::remove_cvref_t<decltype(accumulators)>::elements * 2;
    for (std::uint32_t column = 0; column < columns; column += 16) {
        Regs<u32, 4> v;
        for (std::uint32_t r = 0; r < 4; ++r) {
            const std::uint32_t e = column / 2 + 2 * r;
            v[r] = bit_cast<u32>(value(pack<Pair<T>>(accumulators[e], accumulators[e + 1])));
        }
        store_matrix<4>(pieces.at(stage, 0, column / 8), v);
    }
    fence_async_shared();
    sync_warpgroup(group);
    if_(thread_id().x % 128u == 0u, [&] {
        const WgmmaRows at = rows();
        constexpr std::uint32_t of_panel = Tile::panel_row / sizeof(T);
        for (auto panel : range(0u, Tile::columns / of_panel)) {
            const auto place = panel_of<T>(stage, panel);
            tma_store(to[at.sequence, at.head, at.row, panel * of_panel], place);
        }
        bulk_commit();
        bulk_wait_read<0>();
    });
}

}  // namespace ikat::stdlib
