// SPDX-License-Identifier: Apache-2.0
// Tiles of matrices in shared memory, in stages, laid out so that neither rows of 16 bytes nor columns of them meet in
// a bank.
//
//     SharedTile<bfloat16, 3, 128, 64> a;          three stages of 128 x 64 elements
//     a[stage]                                     one of them
//     a[stage][i, j]                               an element of it
//
// A row is cut into panels of 128 bytes (or of 64, or 32, if it is not a multiple of that), which stand one behind the
// other. In a panel of 128 bytes, the piece p of 16 bytes in row r lies at p ^ r % 8, in one of 64 at p ^ r / 2 % 4, in
// one of 32 at p ^ r / 4 % 2. So a box of a TensorMap with this swizzle fills a panel, and load_matrix and wgmma read
// it:
//
//     stage ┌─────────┬─────────┐  row 0  │ 0 1 2 3 4 5 6 7 │  of a panel: 8 pieces of 16 bytes
//           │ panel 0 │ panel 1 │      1  │ 1 0 3 2 5 4 7 6 │
//           └─────────┴─────────┘      2  │ 2 3 0 1 6 7 4 5 │ ...
#pragma once
#include <bit>
#include <vector>

#include "dsl/lanes/layout.hpp"
#include "dsl/memory/memory.hpp"
#include "stdlib/tile/conflicts.hpp"

namespace ikat::stdlib {

/// Addresses in shared memory, by bytes.
using SharedBytes = Indexable<std::uint8_t, trace::Direction::ReadWrite>;

/// A u32 that is recorded here.
inline Leaf<std::uint32_t> word(const Incoming<std::uint32_t>& v) { return value(Leaf<std::uint32_t>(v.value())); }
using Word = Incoming<std::uint32_t>;  // an argument: a u32 or a host number

struct StageNumber;
/// An error at capture: a tile, declared at `where`, has fewer stages than a pipeline or a ring gives it.
void check_stages(std::uint32_t stages, const StageNumber& given, const trace::Where& where);

/// How many bytes of a row a SharedTile swizzles: 128, 64 or 32, or 0 where rows are odd multiples of 16 bytes, which
/// need it not.
constexpr std::uint32_t swizzle_of_rows(std::uint64_t row_bytes) {
    for (const std::uint32_t bytes : {128u, 64u, 32u})
        if (row_bytes % bytes == 0) return bytes;
    return 0;
}

/// The number of a stage as a pipeline or a ring of `count` stages gives it; it knows where that is.
struct StageNumber : Leaf<std::uint32_t> {
    StageNumber(const Leaf<std::uint32_t>& number, std::uint32_t count, const char* what, const trace::Where& where)
        : Leaf(number), count(count), what(what), where(where) {}
    std::uint32_t count;
    const char* what;  // "pipeline"
    trace::Where where;
};

template <class Tile>
class TileStage;

/// `stages` tiles of rows x columns elements in shared memory.
template <class T, std::uint32_t stages_, std::uint32_t rows_, std::uint32_t columns_,
          std::uint32_t swizzle_ = swizzle_of_rows(columns_ * sizeof(T))>
class SharedTile {
public:
    using element_type = T;
    static constexpr std::uint32_t stages = stages_, rows = rows_, columns = columns_, swizzle = swizzle_;
    static constexpr std::uint32_t row_bytes = columns * sizeof(T), stage_bytes = rows * row_bytes;
    /// A panel has so many bytes of each row, in pieces of 16.
    static constexpr std::uint32_t panel_row = swizzle ? swizzle : row_bytes, panel_bytes = rows * panel_row;
    static constexpr std::uint32_t pieces_of_panel = panel_row / 16;
    /// How many rows of a panel a wavefront has.
    static constexpr std::uint32_t rows_of_wavefront = swizzle ? 128 / swizzle : 1;
    static_assert(stages > 0 && rows > 0 && columns > 0, "SharedTile: a tile has stages, rows and columns");
    static_assert(rows % 8 == 0, "SharedTile: rows come in eights");
    static_assert(row_bytes % 16 == 0, "SharedTile: a row is a multiple of 16 bytes");
    static_assert(swizzle == 0 || swizzle == 32 || swizzle == 64 || swizzle == 128,
                  "SharedTile: 0, 32, 64 or 128 bytes are swizzled");
    static_assert(swizzle == 0 || row_bytes % swizzle == 0, "SharedTile: a row is a whole number of swizzled panels");

    explicit SharedTile(const trace::Where& where = trace::Where::current())
        : bytes_(Shared<std::uint8_t, std::size_t{stages} * stage_bytes>(where).flat()), where_(where) {}

    /// Where the elements of a stage are, in elements: the layout that conflicts are looked for in.
    static SwizzledLayout layout() {
        constexpr std::uint32_t width = panel_row / sizeof(T);
        Layout::Mode across{{width, 1}};
        if (width < columns) across.push_back({columns / width, std::uint64_t{rows} * width});
        const Layout plain({{{rows, width}}, across});
        constexpr unsigned base = std::countr_zero(16 / sizeof(T)), bits = swizzle ? std::countr_zero(swizzle / 16) : 0;
        return {Swizzle(bits, base, 3), plain};
    }
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
    /// Where an element is in its stage, in bytes.
    static Leaf<std::uint32_t> place(const Word& row, const Word& column) {
        const auto byte = value(word(column) * std::uint32_t(sizeof(T)));
        return value(piece_place(word(row), value(byte / 16u)) + byte % 16u);
    }
    /// Where piece `piece` of 16 bytes of a row is.
    static Leaf<std::uint32_t> piece_place(const Leaf<std::uint32_t>& row, const Leaf<std::uint32_t>& piece) {
        if constexpr (swizzle == 0)
            return value(row * row_bytes + piece * 16u);
        else
            return value(row * panel_row + piece / pieces_of_panel * panel_bytes +
                         (piece % pieces_of_panel ^ turn(row)) * 16u);
    }
    /// What a row's pieces are XORed with.
    static auto turn(const auto& row) { return row / (128 / panel_row) % pieces_of_panel; }

    /// An error at capture if eight rows of 16 bytes, as load_matrix reads them at once, meet in a bank.
    void check_matrices(const trace::Where& where) const {
        if (!conflicts_) require_no_conflicts(layout(), sizeof(T), where);
    }

private:
    SharedBytes bytes_;
    trace::Where where_;
    bool conflicts_ = false;
};

/// A row of a tile, and a unit of it.
struct UnitOfRow {
    Leaf<std::uint32_t> row, unit;
};
/// Number `at` of the units of `bytes` bytes, 4, 8 or 16, of a tile's first `count` rows, in an order in which
/// neighbours fill whole wavefronts: along rows, or, where panels are narrower than that, first all of 128 bytes of
/// one.
template <class Tile>
UnitOfRow unit_of_row(const Leaf<std::uint32_t>& at, std::uint32_t bytes, std::uint32_t count) {
    const std::uint32_t of_row = Tile::row_bytes / bytes, of_panel = Tile::panel_row / bytes;
    constexpr std::uint32_t rows = Tile::rows_of_wavefront;
    if (rows == 1 || count % rows != 0) return {value(at / of_row), value(at % of_row)};
    const auto in_rows = value(at % (rows * of_row)), in_panel = value(in_rows % (rows * of_panel));
    return {value(at / (rows * of_row) * rows + in_panel / of_panel),
            value(in_rows / (rows * of_panel) * of_panel + in_panel % of_panel)};
}

/// One of a tile's stages.
template <class Tile>
class TileStage {
public:
    using tile_type = Tile;
    using element_type = typename Tile::element_type;
    TileStage(const Tile& tile, const Leaf<std::uint32_t>& first) : tile_(&tile), first_(first) {}

    /// Element (i, j), to read or to store.
    auto operator[](const Word& i, const Word& j) const {
        const auto out =
            tile_->bytes()
                .template as<element_type>()[(first_ + Tile::place(i, j)) / std::uint32_t(sizeof(element_type))];
        trace::Slot slot = out.slot();
        slot.rows = {.bytes = Tile::panel_row, .swizzle = Tile::swizzle};
        return Subscript<element_type, trace::Direction::ReadWrite>(slot);
    }
    const Tile& tile() const { return *tile_; }
    /// The byte of the tile's memory at which it begins.
    const Leaf<std::uint32_t>& first() const { return first_; }

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
    Pieces(const Tile& tile, const Word& first_row, const Word& first_piece) : tile_(&tile) {
        const auto row = word(first_row), piece = word(first_piece);
        if constexpr (Tile::swizzle == 0) {
            places_.push_back(Tile::piece_place(row, piece));
        } else {
            constexpr std::uint32_t in_panel = Tile::pieces_of_panel;
            const auto start = value(row * Tile::panel_row + piece / in_panel * Tile::panel_bytes);
            const auto turned = value(piece % in_panel ^ Tile::turn(row));
            for (std::uint32_t j = 0; j < distinct; ++j) places_.push_back(value(start + (turned ^ j) * 16u));
        }
    }

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
