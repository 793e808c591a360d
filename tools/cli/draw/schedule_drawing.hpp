// SPDX-License-Identifier: Apache-2.0
// What runs when and where, as tables and pictures: the stages of pipeline() (stdlib/tile/pipeline.hpp), and the tiles
// of a grid by a raster and each_tile() (stdlib/tile/schedule.hpp, hilbert.hpp). A small kernel that calls these
// functions runs on the emulator and notes what they do, so the drawings show what kernels get.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "stdlib/tile/raster.hpp"

namespace ikat::cli {

/// pipeline<stages>(slices, ask, work).
class PipelineDrawing {
public:
    /// Throws Error unless there are 2 to 6 stages and 1 to 64 slices.
    PipelineDrawing(std::uint32_t stages, std::uint32_t slices);

    /// A line for each iteration: which slice each stage has, and whether it is copied or worked on.
    std::string table() const;
    /// A row for each stage, a column for each iteration.
    std::string svg() const;

private:
    /// A slice in its stage: asked for in one iteration, worked on in another. 0 is before the loop.
    struct Slice {
        std::uint32_t stage = 0, asked = 0, worked = 0;
    };
    std::string title() const;

    std::uint32_t stages_;
    std::vector<Slice> slices_;
};

/// The tiles of a result, and the blocks that make them.
class RasterDrawing {
public:
    /// In groups of `group` rows, or along a Hilbert curve; `blocks` is how many blocks there are, 0: one for each
    /// tile. Throws Error unless there are tiles, at most 4096, and a group has rows.
    RasterDrawing(stdlib::Raster raster, std::uint32_t rows, std::uint32_t columns, std::uint32_t group,
                  std::uint32_t blocks);

    /// A table of the numbers of the tiles and one of the blocks.
    std::string table() const;
    /// A box for each tile, with its number and block; blocks have colours.
    std::string svg() const;

private:
    std::string title() const;

    stdlib::Raster raster_;
    std::uint32_t rows_, columns_, group_, blocks_;
    std::vector<std::uint32_t> number_, block_;  // of the tile at row * columns + column
};

}  // namespace ikat::cli
