// SPDX-License-Identifier: Apache-2.0
// The product that clusters of blocks make on sm_90a: one thread of each block copies boxes of A and B into a ring, two
// warpgroups multiply (wgmma), and blocks take tile after tile until all are done. The blocks of a cluster work on
// tiles one below the other, and share the columns of B: each copies a part of them to all.
//
//     ClusterProduct<bfloat16, ClusterTile{}, MatrixOrder::Rows, MatrixOrder::Columns>::run(A, B, m, n, k, planes,
//         [&](const auto& tile, const auto& accumulators) {    by each of the warpgroups, for its rows of a tile
//             each_row<8>(accumulators, tile.scratch, [&](const auto& i, const auto& j, const auto& v) {
//                 ... C[tile.plane, tile.row + i, tile.column + j] ...
//             });
//         });
#pragma once
#include <vector>

#include "dsl/kernel/tensor_map.hpp"
#include "stdlib/tile/block_product.hpp"
#include "stdlib/tile/block_schedule.hpp"
#include "stdlib/tile/ring_pipeline.hpp"
#include "stdlib/tile/turns.hpp"
#include "stdlib/tile/warp_specialised.hpp"
#include "stdlib/tile/warpgroup_tiles.hpp"

namespace ikat::stdlib {

/// A block makes m x n of C by two warpgroups, m / 2 rows each; slices of k are 128 bytes, `stages` of them in shared
/// memory. `blocks` are in a cluster. Or the warpgroups take turns: each makes every second tile alone, and while it
/// stores that, the other one multiplies (ping-pong).
struct ClusterTile {
    std::uint32_t m = 128, n = 256, stages = 3, blocks = 2;
    bool takes_turns = false;
    static constexpr std::uint32_t threads = specialised_threads(2);

    constexpr std::uint32_t rows_of_group() const { return takes_turns ? m : m / 2; }
    /// Bytes of shared memory.
    constexpr std::size_t stage_bytes() const { return stages * std::size_t{m + n} * 128; }
};

/// The product of a warpgroup of elements of T, n columns wide.
template <class T, std::uint32_t n>
using WarpgroupProductOf = Wgmma<64, int(n), 32 / sizeof(T), std::conditional_t<std::is_same_v<T, float>, tf32, T>,
                                 std::conditional_t<std::is_same_v<T, std::int8_t>, std::int32_t, float>>;

/// What a warpgroup has of a tile.
struct WarpgroupPlace {
    Leaf<std::uint32_t> plane, row, column;  // of C, where its accumulators begin
    Leaf<std::uint32_t> group;               // 0 or 1
    Leaf<std::uint32_t> part;                // of k
};

/// Tiles of C = A B by a cluster, with TMA and wgmma, on sm_90a. A and B are stored by rows or by columns.
template <class T, ClusterTile tile, MatrixOrder order_a, MatrixOrder order_b>
class ClusterProduct {
    static constexpr std::uint32_t k = 128 / sizeof(T);
    static constexpr Major major_a = order_a == MatrixOrder::Rows ? Major::K : Major::MN;
    static constexpr Major major_b = order_b == MatrixOrder::Columns ? Major::K : Major::MN;
    static_assert(sizeof(T) == 2 || (major_a == Major::K && major_b == Major::K),
                  "ClusterProduct: other elements than those of 16 bits are stored with k contiguous");
    static_assert(tile.rows_of_group() % 64 == 0 && tile.n % (64 * tile.blocks) == 0,
                  "ClusterProduct: 64 rows or more for each warpgroup, and whole boxes of B for each block");
    template <Major major, std::uint32_t extent>
    using Tile = std::conditional_t<major == Major::K, SharedTile<T, tile.stages, extent, k>,
                                    SharedTile<T, tile.stages, k, extent>>;
    /// A box is `extent` rows of 128 bytes, or, with Major::MN, k rows of a panel.
    template <Major major, std::uint32_t extent>
    using Map = TensorMap<T, std::conditional_t<major == Major::K, Box<1, extent, k>, Box<1, k, k>>, 128>;
    using W = WarpgroupProductOf<T, tile.n>;

public:
    using MapA = Map<major_a, tile.m>;
    using MapB = Map<major_b, tile.n / tile.blocks>;
    using Accumulators = WarpgroupTiles<W, tile.rows_of_group() / 64>;
    using Schedule = PersistentClusters<tile.blocks>;

    /// For each tile of m x n accumulators over k, for each of the planes, calls finish(place, accumulators) by each
    /// warpgroup, with WarpgroupPlace and Accumulators. The grid is any number of clusters. A and B are maps of planes
    /// as they are stored. With `parts`, at most as many as there are slices, for each tile of each part of k.
    static void run(const MapA& A, const MapB& B, const Word& m, const Word& n, const Word& all_k, const Word& planes,
                    auto&& finish, const std::optional<Leaf<std::uint32_t>>& parts = {},
                    Raster raster = Raster::grouped) {
        if (tile.takes_turns && parts)
            throw Error("ClusterProduct: warpgroups that take turns, and parts of k", "they take turns at whole tiles");
        run(A, B, Schedule({tiles_of(m, tile.m), tiles_of(n, tile.n), raster}, tiles_of(all_k, k), planes, parts),
            finish);
    }
    /// The same for the tiles of a schedule, whose Work has the `number` of a part of k, too. Where warpgroups take
    /// turns, it is a PersistentClusters without parts of k.
    template <TileSchedule S>
    static void run(const MapA& A, const MapB& B, const S& schedule, auto&& finish) {
        require_linear_blocks();
        ClusterProduct product;
        warp_specialised<2>([&] { product.copy(A, B, schedule); },
                            [&](const auto& group) { product.multiply(group, schedule, finish); });
    }

private:
    ClusterProduct() = default;

    /// Copies slices of all tiles into the ring.
    void copy(const MapA& A, const MapB& B, const auto& schedule) {
        RingPlace<tile.stages> at;
        schedule.each([&](const auto& work) {
            const auto row = value(work.at.row * tile.m), column = value(work.at.column * tile.n);
            const PartOfK& slices = work.part;
            for (auto slice : range(slices.first, slices.first + slices.count))
                ring_.fill(at, std::uint32_t(Tile<major_a, tile.m>::stage_bytes + Tile<major_b, tile.n>::stage_bytes),
                           [&](const auto& stage, const auto& arrival) {
                               load<major_a, tile.m, 1>(a_[stage], A, work.at.plane, row, slice * k, value(0u),
                                                        arrival);
                               load<major_b, tile.n, tile.blocks>(b_[stage], B, work.at.plane, column, slice * k, rank_,
                                                                  arrival);
                           });
        });
        if constexpr (tile.blocks > 1) ring_.drain(at);
    }
    /// Begins to copy the part of a tile that this block copies, one of `parts`, to all blocks of the cluster.
    template <Major major, std::uint32_t extent, std::uint32_t parts>
    static void load(const auto& to, const auto& from, const auto& plane, const auto& first, const auto& first_k,
                     const auto& part, const auto& arrival) {
        using Tile_ = Tile<major, extent>;
        constexpr std::uint32_t of_part = extent / parts;
        const auto begin = value(to.first() + part * (Tile_::stage_bytes / parts));
        const auto copy = [&](std::uint32_t further, const auto& box) {
            const auto place = to.tile().bytes().template as<T>()[(begin + further) / std::uint32_t(sizeof(T))];
            if constexpr (parts == 1)
                tma_load(place, box, arrival);
            else
                tma_load(place, box, arrival, std::uint16_t((1u << parts) - 1));
        };
        const auto at = value(first + part * of_part);
        if constexpr (major == Major::K)
            copy(0, from[plane, at, first_k]);
        else
            for (std::uint32_t panel = 0; panel < of_part / k; ++panel)
                copy(panel * Tile_::panel_bytes, from[plane, first_k, at + panel * k]);
    }

    /// Multiplies what is in the ring. One group of products is in flight while the next is begun; then the stage of
    /// the one before is free.
    void multiply(const Leaf<std::uint32_t>& group, const auto& schedule, auto&& finish) {
        constexpr std::uint32_t rows_of_next = tile.takes_turns ? 0 : tile.m / 2;
        const WarpgroupOperand<W, Tile<major_a, tile.m>, major_a> left(a_, group * rows_of_next);
        const WarpgroupOperand<W, Tile<major_b, tile.n>, major_b> right(b_, 0u);
        RingPlace<tile.stages> at;
        const auto make = [&](const auto& work, auto&& all_begun) {
            const auto row = value(work.at.row * tile.m), column = value(work.at.column * tile.n);
            Accumulators accumulators(typename Accumulators::Accumulator{});
            pipeline_products(
                ring_, at, work.part.count,
                [&](const auto& stage, const auto&) { accumulators.begin(left, right, a_[stage], b_[stage]); },
                all_begun);
            finish(WarpgroupPlace{work.at.plane, value(row + group * rows_of_next), column, group, work.number},
                   accumulators);
        };
        if constexpr (tile.takes_turns) {
            Turn turn(turns_, group);
            at.skip(group * schedule.slices());  // those of the other's first tile
            schedule.taking_turns(group, 2).each([&](const auto& work) {
                turn.begin();
                make(work, [&] { turn.end(); });
                at.skip(schedule.slices());
            });
        } else {
            schedule.each([&](const auto& work) { make(work, [] {}); });
        }
    }

    struct NoTurns {};
    Leaf<std::uint32_t> rank_ = value(cluster_rank() % tile.blocks);
    Tile<major_a, tile.m> a_;
    Tile<major_b, tile.n> b_;
    [[no_unique_address]] std::conditional_t<tile.takes_turns, Turns, NoTurns> turns_;
    Ring<tile.stages> ring_{tile.takes_turns ? 4u : 8u, tile.blocks};  // freed by the warps that multiply
};

/// The accumulators of a warpgroup as a TileProduct: its `scratch`, of warpgroup_scratch accumulators, is the warp's
/// own.
template <class Tiles, class Scratch>
class WarpgroupProduct {
public:
    using Accumulator = typename Tiles::Accumulator;
    WarpgroupProduct(const WarpgroupPlace& at, const Tiles& accumulators, const Scratch& scratch)
        : at_(at), accumulators_(accumulators), scratch_(scratch) {}

    /// Calls f(i, j, values) for groups of `count` accumulators, 4 or 8.
    template <std::uint32_t count>
    void each(auto&& f) const {
        each_row<count>(accumulators_, scratch_, [&](const auto& i, const auto& j, const auto& v) {
            const auto row = value(at_.row + i), column = value(at_.column + j);
            f(row, column, v);
        });
    }

private:
    const WarpgroupPlace& at_;
    const Tiles& accumulators_;
    const Scratch& scratch_;
};

/// The accumulators of a warpgroup, with f(v) for each, to the tensor that a map is of, by way of a SharedTile with
/// stages of 64 rows for each warpgroup, whose panels are boxes. A stage has all of their columns, or some: then the
/// stages of a warpgroup are filled in turn, each again when it has been copied.
template <class W, std::uint32_t fragments, class Tile, class Map>
void store_by_boxes(const WarpgroupTiles<W, fragments>& accumulators, const WarpgroupPlace& at, const Tile& tile,
                    const Map& to, auto&& f) {
    using Out = typename Tile::element_type;
    constexpr std::uint32_t of_box = Tile::panel_row / sizeof(Out);
    constexpr std::uint32_t of_group = Tile::stages / 2;
    static_assert(
        Tile::rows == 64 && Tile::stages % 2 == 0 && std::uint32_t(W::n) * fragments % (Tile::columns * of_group) == 0,
        "store_by_boxes: stages of 64 rows, and the columns of the accumulators or a whole part of them, as "
        "many for each of two warpgroups");
    std::vector<TileStage<Tile>> stages;
    for (std::uint32_t stage = 0; stage < of_group; ++stage) stages.push_back(tile[at.group * of_group + stage]);
    const auto is_first = value(thread_id().x % 128u == 0u);
    const auto row = value(warp_id() % 4u * 16u);
    const auto fill = [&](const auto& mine, std::uint32_t i, std::uint32_t first) {  // with the columns from `first` on
        const auto sum = [&](std::uint32_t e) { return value(cast<Var<Out>>(f(accumulators[i][e]))); };
        for (std::uint32_t j = 0; j < Tile::columns; j += 16) {
            const std::uint32_t e = (first + j) / 2;
            if constexpr (sizeof(Out) == 2) {
                Regs<Pair<Out>, 4> v;
                for (std::uint32_t h = 0; h < 4; ++h)
                    v[h] = pack<Pair<Out>>(f(accumulators[i][e + 2 * h]), f(accumulators[i][e + 2 * h + 1]));
                store_matrix<4>(mine[row + lane_id() % 16u, j + lane_id() / 16u * 8u], v);
            } else {
                for (std::uint32_t h = 0; h < 4; ++h) {
                    const auto place = value(mine.first() + Tile::place(row + lane_id() / 4u + h % 2 * 8,
                                                                        j + h / 2 * 8 + lane_id() % 4u * 2u));
                    tile.bytes().template as<Out>().template vec<2>(place / 8u) = {sum(e + 2 * h), sum(e + 2 * h + 1)};
                }
            }
        }
    };
    const auto store = [&](std::uint32_t i, std::uint32_t first) {
        const auto& mine = stages[(i * std::uint32_t(W::n) + first) / Tile::columns % of_group];
        if_(is_first, [&] { bulk_wait_read<int(of_group) - 1>(); });  // what was in this stage has been copied
        sync_warpgroup(at.group);
        fill(mine, i, first);
        fence_async_shared();
        sync_warpgroup(at.group);
        if_(is_first, [&] {
            for (std::uint32_t j = 0; j < Tile::columns; j += of_box)
                tma_store(to[at.plane, at.row + 64 * i, at.column + (first + j)],
                          tile.bytes().template as<Out>()[(mine.first() + j / of_box * Tile::panel_bytes) /
                                                          std::uint32_t(sizeof(Out))]);
            bulk_commit();
        });
    };
    for (std::uint32_t i = 0; i < fragments; ++i)
        for (std::uint32_t first = 0; first < std::uint32_t(W::n); first += Tile::columns) store(i, first);
}
/// At the end, by the threads that have stored: until all has been written.
inline void wait_for_boxes() {
    if_(thread_id().x % 128u == 0u, [&] { bulk_wait<0>(); });
}

}  // namespace ikat::stdlib
