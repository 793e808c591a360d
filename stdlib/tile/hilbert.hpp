// SPDX-License-Identifier: Apache-2.0
// Tiles along a Hilbert curve: each is beside the one before, and any number of consecutive ones lie close together.
// Blocks that take tile after tile then go on with the rows and columns that they, or their neighbours, have just used.
//
//      0  1 14 15      hilbert_raster(number, 4, 4)
//      3  2 13 12
//      4  7  8 11
//      5  6  9 10
#pragma once
#include "stdlib/tile/schedule.hpp"

namespace ikat::stdlib {

/// Tile number `number` of planes of rows x columns tiles along a Hilbert curve that is generalised to any rectangle:
/// none is left out, and none is passed twice. A tile and the next one have a side in common, or, once in a rectangle
/// whose longer side is odd and whose shorter one is even, a corner.
///
/// A loop divides the rectangle, at most twice for each time that its longer side can be halved. Call it once for a
/// tile, not in a loop over k.
TilePlace hilbert_raster(const Word& number, const Word& rows, const Word& columns);

}  // namespace ikat::stdlib
