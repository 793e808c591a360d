// SPDX-License-Identifier: Apache-2.0
// Schedules as parts of kernels, see TileSchedule: each(f) calls f(work) for what a block does.
//
//     const TileGrid grid{tiles_of(m, tile.m), tiles_of(n, tile.n)};
//     PersistentBlocks(grid, planes).each([&](const auto& work) {
//         const Product product(A, B, work.at.row * tile.m, work.at.column * tile.n, {16, 16}, work.part);
//         ...
//     });
#pragma once
#include "stdlib/tile/hilbert.hpp"
#include "stdlib/tile/parts.hpp"
#include "stdlib/tile/raster.hpp"

namespace ikat::stdlib {

/// Planes of rows x columns tiles, in the order of a raster.
struct TileGrid {
    Leaf<std::uint32_t> rows, columns;
    Raster raster = Raster::grouped;
    /// Where tile number `number` is.
    TilePlace at(const Word& number) const {
        return raster == Raster::hilbert ? hilbert_raster(number, rows, columns)
                                         : grouped_raster(number, rows, columns);
    }
    /// How many tiles `planes` planes have.
    Leaf<std::uint32_t> tiles(const Word& planes) const { return value(rows * columns * word(planes)); }
};

/// A tile, and which slices of k are added up for it; all, if there is no `part`.
struct TileWork {
    TilePlace at;
    std::optional<PartOfK> part{};
};

/// A block for each tile.
class BlockPerTile {
public:
    using Work = TileWork;
    explicit BlockPerTile(const TileGrid& grid) : grid_(grid) {}
    /// Calls f(work) once.
    void each(auto&& f) const { f(Work{grid_.at(block_id().x)}); }

private:
    TileGrid grid_;
};

/// Any number of blocks, which take the tiles of all planes in turn.
class PersistentBlocks {
public:
    using Work = TileWork;
    PersistentBlocks(const TileGrid& grid, const Word& planes) : grid_(grid), tiles_(grid.tiles(planes)) {}
    /// Calls f(work) for the tiles of this block.
    void each(auto&& f) const {
        each_tile(tiles_, [&](const auto& number) {
            f(Work{grid_.at(number)});
            sync_block();
        });
    }

private:
    TileGrid grid_;
    Leaf<std::uint32_t> tiles_;
};

/// Split-k: a block for each of `parts` parts of each tile. The sums of part p of plane q are plane q * parts + p.
class SplitBlocks {
public:
    struct Work {
        TilePlace at;
        PartOfK part;
        Leaf<std::uint32_t> sums;  // which plane of them
    };
    SplitBlocks(const TileGrid& grid, const Word& slices, const Word& parts)
        : grid_(grid), slices_(word(slices)), parts_(word(parts)) {}
    /// Calls f(work) once.
    void each(auto&& f) const {
        const TilePlace at = grid_.at(block_id().x);
        const auto plane = value(at.plane / parts_), part = value(at.plane % parts_);
        f(Work{{at.row, at.column, plane}, part_of_k(slices_, part, parts_), at.plane});
    }

private:
    TileGrid grid_;
    Leaf<std::uint32_t> slices_, parts_;
};

/// Stream-k by the blocks of the grid, of `tiles` tiles, see StreamK.
class StreamBlocks {
public:
    struct Work {
        TilePlace at;
        PartOfK part;
        Leaf<bool> is_whole;
        Leaf<std::uint32_t> sums;  // number of the sums, if it is not whole
    };
    StreamBlocks(const TileGrid& grid, const Word& tiles, const Word& streamed, const Word& slices)
        : grid_(grid), tiles_(word(tiles)), streamed_(word(streamed)), slices_(word(slices)) {}
    /// Calls f(work) for the shares of this block.
    void each(auto&& f) const {
        const auto worker = value(block_id().x), workers = value(grid_dim().x);
        StreamK(streamed_, slices_, workers).each(worker, tiles_, [&](const TileShare& share) {
            f(Work{grid_.at(share.tile), share.part, share.is_whole, share.number});
            sync_block();
        });
    }

private:
    TileGrid grid_;
    Leaf<std::uint32_t> tiles_, streamed_, slices_;
};

/// Persistent clusters of `blocks` blocks, each with tiles one below the other, so that its last ones may be below C.
/// With `parts`, they take each part of k of each tile. `grid` has the tiles of C.
template <std::uint32_t blocks>
class PersistentClusters {
public:
    struct Work {
        TilePlace at;  // of this block's tile
        PartOfK part;
        Leaf<std::uint32_t> number;  // of the part
    };
    PersistentClusters(const TileGrid& grid, const Word& slices, const Word& planes,
                       const std::optional<Leaf<std::uint32_t>>& parts)
        : slices_(word(slices)),
          down_{value((grid.rows + (blocks - 1)) / blocks), grid.columns, grid.raster},
          tiles_(parts ? value(down_.tiles(planes) * *parts) : down_.tiles(planes)),
          rank_(value(cluster_rank() % blocks)),
          parts_(parts) {}
    /// All slices of k.
    const Leaf<std::uint32_t>& slices() const { return slices_; }
    /// Number `turn` of `turns`, who take the tiles of this block in turn.
    PersistentClusters taking_turns(const Leaf<std::uint32_t>& turn, std::uint32_t turns) const {
        PersistentClusters out(*this);
        out.turn_ = turn, out.turns_ = turns;
        return out;
    }
    /// Calls f(work) for the tiles of this block. Blocks do not meet.
    void each(auto&& f) const {
        const auto clusters = value(grid_dim().x / blocks), cluster = value(block_id().x / blocks);
        const auto first = turn_ ? value(cluster + *turn_ * clusters) : cluster;
        for (auto number : range(first, tiles_, value(clusters * turns_))) {
            const TilePlace of_cluster = down_.at(number);
            const auto row = value(of_cluster.row * blocks + rank_);
            if (parts_) {
                const auto part = value(of_cluster.plane % *parts_), plane = value(of_cluster.plane / *parts_);
                f(Work{{row, of_cluster.column, plane}, part_of_k(slices_, part, *parts_), part});
            } else {
                f(Work{{row, of_cluster.column, of_cluster.plane}, {value(0u), slices_}, value(0u)});
            }
        }
    }

private:
    Leaf<std::uint32_t> slices_;
    TileGrid down_;  // of clusters
    Leaf<std::uint32_t> tiles_, rank_;
    std::optional<Leaf<std::uint32_t>> parts_, turn_{};
    std::uint32_t turns_ = 1;
};

}  // namespace ikat::stdlib
