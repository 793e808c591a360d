// SPDX-License-Identifier: Apache-2.0
// Which tiles of a result a block makes, and which slices of k it adds up for them.
//
//     a block for each tile     grouped_raster(block_id().x, rows, columns)
//     persistent blocks         each_tile(tiles, [&](const auto& number) { ... grouped_raster(number, ...) ... });
//     split-k                   part_of_k(slices, part, parts): several blocks for each tile
//     stream-k                  StreamK(tiles, slices).each(...): as many blocks as the device runs at once, with
//                               equally many slices each
#pragma once
#include "dsl/threads/control.hpp"
#include "dsl/threads/simt.hpp"
#include "stdlib/tile/shared_tile.hpp"

namespace ikat::stdlib {

/// A tile by its numbers, from 0; `plane` is the rest.
struct TilePlace {
    Leaf<std::uint32_t> row, column, plane;
};

/// Tile number `number` of planes of rows x columns tiles. Tiles follow each other down in groups of at most `group`
/// rows, so that those at work at the same time use the same rows and columns, which are then in the L2 cache:
///
///     0 2 4 6     group 2
///     1 3 5 7
///     8 9 ...
inline TilePlace grouped_raster(const Word& number, const Word& rows, const Word& columns, std::uint32_t group = 8) {
    const auto down = word(rows), across = word(columns), tiles = value(down * across);
    const auto plane = value(word(number) / tiles), rest = value(word(number) % tiles);
    const auto of_group = value(across * group), first = value(rest / of_group * group);
    const auto height = value(min(down - first, group)), within = value(rest % of_group);
    return {value(first + within % height), value(within / height), plane};
}

/// How many tiles of this many elements cover a number of elements.
inline Leaf<std::uint32_t> tiles_of(const Word& elements, std::uint32_t extent) {
    const auto all = word(elements);
    return value(all / extent + select(all % extent != 0, 1u, 0u));
}

/// A part of k: slices `first` to `first + count - 1`.
struct PartOfK {
    Leaf<std::uint32_t> first, count;
};

/// Consecutive shares of `all`, for `count` who get equally many, or one more for the first of them:
///
///     0 1 2 3 │ 4 5 6 │ 7 8 9     all 10, count 3
class EqualShares {
public:
    EqualShares(const Leaf<std::uint32_t>& all, const Leaf<std::uint32_t>& count);
    /// Where a share begins; that of number `count` after the last.
    Leaf<std::uint32_t> begin(const Word& number) const;
    /// Whose share something is in.
    Leaf<std::uint32_t> owner(const Word& of) const;

private:
    Leaf<std::uint32_t> each_, more_;
};

/// Split-k: part number `part` of `parts` parts of `slices` slices, equally many or one more. None is empty if there
/// are as many slices as parts.
PartOfK part_of_k(const Word& slices, const Word& part, const Word& parts);

/// Calls f(number) for each of the tiles that a persistent block makes: those of the grid take them in turn.
void each_tile(const Word& tiles, auto&& f) {
    for (auto number : range(block_id().x, word(tiles), grid_dim().x)) f(value(number));
}

/// What a block does next: slices of a tile.
struct TileShare {
    Leaf<std::uint32_t> tile;
    PartOfK part;
    Leaf<bool> is_whole;         // all slices of the tile
    Leaf<std::uint32_t> number;  // of the sums, if it is not whole, among those of all workers
};

/// The shares of a tile, in the order of its slices.
struct SharesOfTile {
    Leaf<std::uint32_t> first_worker, count, first_number;
    /// The number of the sums of share i, if there are several.
    Leaf<std::uint32_t> number(const Word& i) const;
};

/// Stream-k: the slices of the first `streamed` tiles, one tile after the other, are shared out equally among the
/// workers; then these take the other tiles in turn. A worker has all slices of a tile, or the last ones of its first,
/// or the first ones of its last.
///
///     tiles    │   0   │   1   │   2   │         three tiles of four slices, five workers:
///     slices    0 1 2 3 0 1 2 3 0 1 2 3          the sums of tile 1 are made of those of workers 1, 2 and 3
///     workers  │0    │1    │2  │3  │4  │
///
/// Each worker leaves sums of at most two shares of tiles: numbers 2 w and 2 w + 1. Those of a tile are added in the
/// order of its slices, and so always give the same bits. There are less than 2^32 streamed slices.
class StreamK {
public:
    StreamK(const Word& streamed, const Word& slices, const Word& workers);

    /// Calls f(share) for all that worker number `worker` does, of `tiles` tiles.
    void each(const Word& worker, const Word& tiles, auto&& f) const {
        const Work work(*this, word(worker), word(tiles));
        for (auto i : range(work.count())) f(work.share(value(i)));
    }
    /// The same one by one, for loops that have no registers to keep what each() does: how many there are, and number
    /// i.
    Leaf<std::uint32_t> count(const Word& worker, const Word& tiles) const {
        return Work(*this, word(worker), word(tiles)).count();
    }
    TileShare share(const Word& worker, const Word& tiles, const Word& i) const {
        return Work(*this, word(worker), word(tiles)).share(word(i));
    }
    /// The shares of a streamed tile.
    SharesOfTile shares_of(const Word& tile) const;

private:
    class Work {
    public:
        Work(const StreamK& of, const Leaf<std::uint32_t>& worker, const Leaf<std::uint32_t>& tiles);
        Leaf<std::uint32_t> count() const { return value(shared_ + whole_); }
        TileShare share(const Leaf<std::uint32_t>& i) const;

    private:
        const StreamK& of_;
        Leaf<std::uint32_t> worker_, begin_, end_, first_tile_, last_tile_, next_;
        Leaf<std::uint32_t> shared_, whole_;  // how many tiles
    };

    Leaf<std::uint32_t> streamed_, slices_, workers_;
    EqualShares shares_;
};

}  // namespace ikat::stdlib
