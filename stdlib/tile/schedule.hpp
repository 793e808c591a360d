// SPDX-License-Identifier: Apache-2.0
// Which tile of a result a block makes.
#pragma once
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

/// How many tiles of so many elements cover a number of elements.
inline Leaf<std::uint32_t> tiles_of(const Word& elements, std::uint32_t extent) {
    const auto all = word(elements);
    return value(all / extent + select(all % extent != 0, 1u, 0u));
}

}  // namespace ikat::stdlib
