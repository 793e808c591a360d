// SPDX-License-Identifier: Apache-2.0
// Slices of a matrix in global memory, each as large as a tile, on their way into the stages of a SharedTile. All
// threads of the block copy together.
//
//     TileSource<decltype(a), 256, Along::Columns> rows(A, 128 * block_id().y, 16);     A: 128 rows from there on
//     rows.load(a[stage], slice);              columns slice * a.columns on; beyond the last column are zeros
//     copy_commit();
//
//            columns →                                                      Along::Rows:
//           ┌─────┬─────┬─────┬──┐                                         ┌──┬─────┬──┐
//     first │  0  │  1  │  2  │ 3│0   a slice is a tile                    │  │  0  │  │
//      rows └─────┴─────┴─────┴──┘                                         │  ├─────┤  │
//           the last row is repeated, of which nothing is kept             │  │  1  │  │
//
// Where the matrix begins, its pitch and its columns are multiples of 16, 8 or 4 bytes, threads copy as many at once by
// cp.async; of any others they load and store elements.
#pragma once
#include <vector>

#include "dsl/kernel/kernel.hpp"
#include "dsl/memory/async.hpp"
#include "dsl/threads/simt.hpp"
#include "stdlib/tile/shared_tile.hpp"

namespace ikat::stdlib {

/// The dimension along which slices follow each other.
enum class Along : std::uint8_t { Columns, Rows };

/// How a matrix is copied: by 16, 8 or 4 bytes of a row at once, or, 0, by elements; `transposed`, by elements only,
/// the tile is that of the transpose.
struct TileAccess {
    std::uint32_t bytes = 16;
    bool transposed = false;
};

/// A matrix whose slices `threads` threads copy: all those of the block.
template <class Tile, std::uint32_t threads, Along along>
class TileSource {
    using T = typename Tile::element_type;
    using U32 = Leaf<std::uint32_t>;

public:
    /// The tiles begin at row `first` of x, or, Along::Rows, at column `first`. x is not empty.
    TileSource(const In<T, 2>& x, const Word& first, const TileAccess& access)
        : x_(x), first_(word(first)), access_(access) {
        if (access.bytes == 0) return;
        for (std::uint32_t pass = 0; pass < passes(); ++pass) {
            const auto [row, unit] = place_of(pass);
            const std::uint32_t width = access.bytes / sizeof(T);
            const auto column = value(unit * width);
            places_.push_back(Tile::place(row, column));
            if constexpr (along == Along::Columns) {
                const auto last = value(x.extent(0) - 1u);
                pointers_.push_back(x.row(min(first_ + row, last)).slice(column).template as<std::uint8_t>());
                slices_.push_back(slices_with(column, x.extent(1), Tile::columns));
            } else {
                const auto last = value(x.extent(1) - width);
                pointers_.push_back(x.row(row).slice(min(first_ + column, last)).template as<std::uint8_t>());
                slices_.push_back(slices_with(row, x.extent(0), Tile::rows));
            }
        }
    }

    /// How many slices there are.
    U32 count() const {
        const bool of_columns = (along == Along::Columns) != access_.transposed;
        constexpr std::uint32_t extent = along == Along::Columns ? Tile::columns : Tile::rows;
        return slices_with(value(U32(x_.extent(of_columns))), extent);
    }

    /// Begins to copy a slice; beyond the last one are zeros. Threads see it behind copy_commit(), copy_wait() and
    /// sync_block().
    void load(const TileStage<Tile>& to, const Word& slice, const trace::Where& where = trace::Where::current()) const {
        if (access_.bytes == 0) return load_elements(to, word(slice));
        const auto number = word(slice);
        const auto further = offset(number);
        for (std::uint32_t pass = 0; pass < passes(); ++pass) {
            const auto copy = [&] {
                const auto target = to.tile().bytes().slice(places_[is_regular() ? 0 : pass]);
                const auto place = target[to.first() + (is_regular() ? pass * rows_of_pass() * Tile::panel_row : 0)];
                const auto source = pointers_[pass][further];
                const auto is_there = value(number < slices_[pass]);
                if (access_.bytes == 16) copy_async_if<16>(is_there, place, source, where);
                if (access_.bytes == 8) copy_async_if<8>(is_there, place, source, where);
                if (access_.bytes == 4) copy_async_if<4>(is_there, place, source, where);
            };
            if ((pass + 1) * threads > units())
                if_(thread_id().x < units() - pass * threads, copy);
            else
                copy();
        }
    }

private:
    std::uint32_t units_of_row() const { return Tile::row_bytes / access_.bytes; }
    std::uint32_t units() const { return Tile::rows * units_of_row(); }
    std::uint32_t passes() const { return (units() + threads - 1) / threads; }
    std::uint32_t rows_of_pass() const { return threads / units_of_row(); }
    /// Whether a thread's rows are multiples of eight apart: then so are its places, whatever the swizzle.
    bool is_regular() const { return threads % units_of_row() == 0 && rows_of_pass() % 8 == 0; }

    /// The row of the tile, and the unit of it, that this thread copies.
    std::pair<U32, U32> place_of(std::uint32_t pass) const {
        const auto thread = value(thread_id().x);
        if (threads % units_of_row() == 0)
            return {value(thread / units_of_row() + pass * rows_of_pass()), value(thread % units_of_row())};
        const auto unit = value(thread + pass * threads);
        return {value(unit / units_of_row()), value(unit % units_of_row())};
    }
    /// How many slices of `extent` have what is `at` in the first one.
    static U32 slices_with(const U32& at, const U32& all, std::uint32_t extent) {
        return value(select(all > at, (all - at - 1u) / extent + 1u, 0u));
    }
    static U32 slices_with(const U32& all, std::uint32_t extent) { return slices_with(value(0u), all, extent); }
    /// The bytes from the first slice to another.
    Leaf<std::uint64_t> offset(const U32& slice) const {
        if constexpr (along == Along::Columns)
            return value(mul_wide(slice, Tile::row_bytes));
        else
            return value(mul_wide(slice * Tile::rows, x_.pitch()) * std::uint64_t(sizeof(T)));
    }

    /// Element by element: each thread takes a word of a row of the tile, and those further down.
    void load_elements(const TileStage<Tile>& to, const U32& slice) const {
        constexpr std::uint32_t words = Tile::row_bytes / 4, each = 4 / sizeof(T), all = Tile::rows * words;
        const auto thread = value(thread_id().x);
        for (auto begin : range(0u, all, threads)) {
            const auto at = value(begin + thread);
            // Neighbours take the words of a row; of the transpose, eight rows of four words, which use all banks.
            const auto quad = value(at / 32u), lane = value(at % 32u);
            const auto row = access_.transposed ? value(quad / (words / 4) * 8u + lane % 8u) : value(at / words);
            const auto word = access_.transposed ? value(quad % (words / 4) * 4u + lane / 8u) : value(at % words);
            const auto take = [&] {
                for (std::uint32_t k = 0; k < each; ++k) {
                    const auto column = value(word * each + k);
                    const auto down = along == Along::Rows ? value(slice * Tile::rows + row) : value(first_ + row);
                    const auto across =
                        along == Along::Rows ? value(first_ + column) : value(slice * Tile::columns + column);
                    const auto i = access_.transposed ? across : down, j = access_.transposed ? down : across;
                    to[row, column] = x_.load_if((i < x_.extent(0)) & (j < x_.extent(1)), i, j, T{});
                }
            };
            if constexpr (all % threads == 0)
                take();
            else
                if_(at < all, take);
        }
    }

    In<T, 2> x_;
    U32 first_;
    TileAccess access_;
    std::vector<U32> places_, slices_;
    std::vector<Indexable<std::uint8_t, trace::Direction::Read>> pointers_;
};

}  // namespace ikat::stdlib
