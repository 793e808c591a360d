// SPDX-License-Identifier: Apache-2.0
// Tiles of matrices in shared memory, in stages, laid out so that neither rows of 16 bytes nor columns of them meet in
// a bank.
//
//     SharedTile<bfloat16, 3, 128, 64> a;          three stages of 128 x 64 elements
//     a[stage]                                     one of them
//     a[stage][i, j]                               an element of it
//
// A row is cut into panels of 128 bytes (or of 64, or 32, if it is not a multiple of that), which follow one
// another. In a panel of 128 bytes, the piece p of 16 bytes in row r lies at p ^ r % 8, in one of 64 at p ^ r / 2 % 4,
// in one of 32 at p ^ r / 4 % 2. So a box of a TensorMap with this swizzle fills a panel, and load_matrix and wgmma
// read it:
//
//     stage ┌─────────┬─────────┐  row 0  │ 0 1 2 3 4 5 6 7 │  of a panel: 8 pieces of 16 bytes
//           │ panel 0 │ panel 1 │      1  │ 1 0 3 2 5 4 7 6 │
//           └─────────┴─────────┘      2  │ 2 3 0 1 6 7 4 5 │ ...
//
//     PaddedTile<bfloat16, 1, 64, 128> b;          rows of 272 bytes, of which the last 16 are free
//
// A padded tile takes more memory and no TensorMap fills it. But all pieces of a row, and of rows below it, are a
// constant number of bytes from the first: a thread has one register for their places, of a swizzled tile four or
// eight.
#pragma once
#include <vector>

#include "dsl/lanes/layout.hpp"
#include "dsl/memory/memory.hpp"
#include "stdlib/tile/conflicts.hpp"

namespace ikat::stdlib {

/// Addresses in shared memory, by bytes.
using SharedBytes = Indexable<std::uint8_t, Direction::ReadWrite>;

/// A u32 that is recorded here.
inline Leaf<std::uint32_t> word(const Incoming<std::uint32_t>& v) { return value(Leaf<std::uint32_t>(v.value())); }
using Word = Incoming<std::uint32_t>;  // an argument: a u32 or a host number

struct StageNumber;
/// An error at capture: a tile, declared at `where`, has fewer stages than a pipeline or a ring gives it.
void check_stages(std::uint32_t stages, const StageNumber& given, const Where& where);

/// How many bytes of a row a SharedTile swizzles: 128, 64 or 32, or 0 where rows are odd multiples of 16 bytes, which
/// need it not.
constexpr std::uint32_t swizzle_of_rows(std::uint64_t row_bytes) {
    for (const std::uint32_t bytes : {128u, 64u, 32u})
        if (row_bytes % bytes == 0) return bytes;
    return 0;
}

/// The number of a stage as a pipeline or a ring of `count` stages gives it; it knows where that is.
struct StageNumber : Leaf<std::uint32_t> {
    StageNumber(const Leaf<std::uint32_t>& number, std::uint32_t count, const char* what, const Where& where)
        : Leaf(number), count(count), what(what), where(where) {}
    std::uint32_t count;
    const char* what;  // "pipeline"
    Where where;
};

/// A row of a tile, and a unit of it.
struct UnitOfRow {
    Leaf<std::uint32_t> row, unit;
};

/// Where the elements of a tile are. A tile's type knows all of this; what is computed on the device from it is
/// compiled once for all of them.
struct TileShape {
    std::uint32_t rows = 0, row_bytes = 0, swizzle = 0, element_bytes = 0;
    std::uint32_t padding = 0;  // bytes after each row, where rows are not swizzled

    constexpr std::uint32_t columns() const { return row_bytes / element_bytes; }
    /// A panel has this many bytes of each row, in pieces of 16.
    constexpr std::uint32_t panel_row() const { return swizzle ? swizzle : row_bytes + padding; }
    constexpr std::uint32_t panel_bytes() const { return rows * panel_row(); }
    constexpr std::uint32_t pieces_of_panel() const { return panel_row() / 16; }
    /// How many rows of a panel a wavefront has.
    constexpr std::uint32_t rows_of_wavefront() const { return swizzle ? 128 / swizzle : 1; }

    /// Where an element is in its stage, in bytes.
    Leaf<std::uint32_t> place(const Word& row, const Word& column) const;
    /// Where piece `piece` of 16 bytes of a row is.
    Leaf<std::uint32_t> piece_place(const Leaf<std::uint32_t>& row, const Leaf<std::uint32_t>& piece) const;
    /// What the pieces of a swizzled row are XORed with.
    auto turn(const auto& row) const { return row / (128 / panel_row()) % pieces_of_panel(); }
    /// Where a piece and those after it in the same panel are, as far as their places differ.
    std::vector<Leaf<std::uint32_t>> pieces(const Word& row, const Word& piece) const;
    /// Number `at` of the units of `bytes` bytes, 4, 8 or 16, of the first `count` rows, in an order in which
    /// neighbours fill whole wavefronts: along rows, or, where panels are narrower than that, first all of 128 bytes of
    /// one.
    UnitOfRow unit_of_row(const Leaf<std::uint32_t>& at, std::uint32_t bytes, std::uint32_t count) const;
    /// The places of a stage, in elements: the layout that conflicts are looked for in.
    SwizzledLayout layout() const;
};

template <class Tile>
class TileStage;

/// `stages` tiles of rows x columns elements in shared memory; `padding` bytes are free after each row.
template <class T, std::uint32_t stages_, std::uint32_t rows_, std::uint32_t columns_,
          std::uint32_t swizzle_ = swizzle_of_rows(columns_ * sizeof(T)), std::uint32_t padding_ = 0>
class SharedTile {
public:
    using element_type = T;
    static constexpr std::uint32_t stages = stages_, rows = rows_, columns = columns_, swizzle = swizzle_;
    static constexpr TileShape shape{rows, columns * sizeof(T), swizzle, sizeof(T), padding_};
    static constexpr std::uint32_t row_bytes = shape.row_bytes, stage_bytes = rows * (row_bytes + padding_);
    static constexpr std::uint32_t panel_row = shape.panel_row(), panel_bytes = shape.panel_bytes();
    static constexpr std::uint32_t pieces_of_panel = shape.pieces_of_panel();
    static constexpr std::uint32_t rows_of_wavefront = shape.rows_of_wavefront();
    static_assert(stages > 0 && rows > 0 && columns > 0, "SharedTile: a tile has stages, rows and columns");
    static_assert(rows % 8 == 0, "SharedTile: rows come in eights");
    static_assert(row_bytes % 16 == 0, "SharedTile: a row is a multiple of 16 bytes");
    static_assert(swizzle == 0 || swizzle == 32 || swizzle == 64 || swizzle == 128,
                  "SharedTile: 0, 32, 64 or 128 bytes are swizzled");
    static_assert(swizzle == 0 || row_bytes % swizzle == 0, "SharedTile: a row is a whole number of swizzled panels");
    static_assert(padding_ % 16 == 0 && (padding_ == 0 || swizzle == 0),
                  "SharedTile: rows that are not swizzled are padded by a multiple of 16 bytes");

    explicit SharedTile(const Where& where = Where::current())
        : bytes_(Shared<std::uint8_t, std::size_t{stages} * stage_bytes>(where).flat()), where_(where) {}

    static SwizzledLayout layout() { return shape.layout(); }
    /// From now on its accesses may take more time than they need to.
    void conflicts_allowed() { conflicts_ = true; }

    /// A stage, by its number.
    TileStage<SharedTile> operator[](const Word& stage) const { return {*this, value(word(stage) * stage_bytes)}; }
    /// The same; an error at capture if the tile has fewer than there are.
    TileStage<SharedTile> operator[](const StageNumber& stage) const {
        if (stage.count > stages) check_stages(stages, stage, where_);
        return (*this)[Word(stage)];
    }

    /// All stages.
    const SharedBytes& bytes() const { return bytes_; }
    // See TileShape.
    static Leaf<std::uint32_t> place(const Word& row, const Word& column) { return shape.place(row, column); }
    static Leaf<std::uint32_t> piece_place(const Leaf<std::uint32_t>& row, const Leaf<std::uint32_t>& piece) {
        return shape.piece_place(row, piece);
    }
    static auto turn(const auto& row) { return shape.turn(row); }

    /// An error at capture if eight rows of 16 bytes, as load_matrix reads them at once, meet in a bank.
    void check_matrices(const Where& where) const {
        if (!conflicts_) require_no_conflicts(layout(), sizeof(T), where);
    }

private:
    SharedBytes bytes_;
    Where where_;
    bool conflicts_ = false;
};

/// The same, padded in place of swizzled: rows are an odd multiple of 16 bytes apart.
template <class T, std::uint32_t stages, std::uint32_t rows, std::uint32_t columns>
using PaddedTile = SharedTile<T, stages, rows, columns, 0, columns * sizeof(T) % 32 == 0 ? 16 : 0>;

/// A stage as bytes of its tile's memory: what TileStages of all types have in common.
struct StageBytes {
    const SharedBytes& bytes;          // of all stages
    const Leaf<std::uint32_t>& first;  // the byte at which this one begins
    const TileShape& tile;

    /// Element (i, j), to read or to store.
    template <class T>
    auto element(const Word& i, const Word& j) const {
        return bytes.as<T>()[(first + tile.place(i, j)) / std::uint32_t(sizeof(T))].in_rows(tile.panel_row(),
                                                                                            tile.swizzle);
    }
};

/// One of a tile's stages.
template <class Tile>
class TileStage {
public:
    using tile_type = Tile;
    using element_type = typename Tile::element_type;
    TileStage(const Tile& tile, const Leaf<std::uint32_t>& first) : tile_(&tile), first_(first) {}

    /// Element (i, j), to read or to store.
    auto operator[](const Word& i, const Word& j) const { return StageBytes(*this).element<element_type>(i, j); }
    const Tile& tile() const { return *tile_; }
    /// The byte of the tile's memory at which it begins.
    const Leaf<std::uint32_t>& first() const { return first_; }
    /// For as long as this is there.
    operator StageBytes() const { return {tile_->bytes(), first_, Tile::shape}; }

private:
    const Tile* tile_;
    Leaf<std::uint32_t> first_;
};

/// The places of a lane's rows of 16 bytes in all stages of a tile: from a row and a piece on, by host numbers further
/// down, in eights of rows, and to the right. What does not depend on the stage is computed once, here. How many pieces
/// further must not carry: with `piece` 4 to 7, at most 3 within a panel.
template <class Tile>
class Pieces {
    static constexpr std::uint32_t distinct = Tile::swizzle ? Tile::pieces_of_panel : 1;

public:
    Pieces(const Tile& tile, const Word& first_row, const Word& first_piece)
        : tile_(&tile), places_(Tile::shape.pieces(first_row, first_piece)) {}

    /// A place of 16 bytes, for load_matrix.
    auto at(const TileStage<Tile>& stage, std::uint32_t rows_further, std::uint32_t pieces_further) const {
        std::uint32_t further = rows_further * Tile::panel_row;
        if constexpr (Tile::swizzle == 0)
            further += pieces_further * 16;
        else
            further += pieces_further / distinct * Tile::panel_bytes;
        return tile_->bytes().slice(places_[pieces_further % distinct])[stage.first() + further];
    }

private:
    const Tile* tile_;
    std::vector<Leaf<std::uint32_t>> places_;
};

}  // namespace ikat::stdlib
