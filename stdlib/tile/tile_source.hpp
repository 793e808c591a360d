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
//           rows after the last are copies of others, not to be kept       │  │  1  │  │
//
// Where the matrix begins, its pitch and its columns are multiples of 16, 8 or 4 bytes, threads copy as many at once by
// cp.async; of any others they load and store elements.
#pragma once
#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "dsl/kernel/expect.hpp"
#include "dsl/kernel/kernel.hpp"
#include "dsl/memory/async.hpp"
#include "dsl/threads/simt.hpp"
#include "stdlib/tile/shared_tile.hpp"

namespace ikat::stdlib {

/// The dimension along which slices follow each other.
enum class Along : std::uint8_t { Columns, Rows };

/// How a matrix is copied: by 16, 8 or 4 bytes of a row at once, or, 0, by elements; `transposed`, by elements only,
/// the tile is that of the transpose. `saves_registers`: Along::Rows, a thread keeps the pointer to the first of its
/// rows alone, and computes the others. `multiplies_rows`: Along::Rows, it keeps that to the matrix' first row alone,
/// and each copy multiplies its row with the pitch, which takes the fewest registers and instructions; the matrix has
/// fewer than 2^29 rows.
struct TileAccess {
    std::uint32_t bytes = 16;
    bool transposed = false;
    bool saves_registers = false;
    bool multiplies_rows = false;
};

/// Part `number` of `count` of a slice.
struct PartOfSlice {
    std::uint32_t number = 0, count = 1;
};
/// Begins to copy a part of a slice, by any source, see SourceFor: by one that copies only whole slices, with part 0.
void load_part(const auto& source, const auto& to, const auto& slice, const PartOfSlice& part,
               const Where& where = Where::current()) {
    if constexpr (requires { source.load(to, slice, part, where); })
        source.load(to, slice, part, where);
    else if (part.number == 0)
        source.load(to, slice);
}

namespace detail {

/// What all TileSources of an element type have in common.
template <class T>
class TileCopies {
    using U32 = Leaf<std::uint32_t>;

public:
    /// How many slices there are.
    U32 count() const {
        const bool of_columns = !is_along_rows() != access_.transposed;
        return slices_with(value(U32(x_.extent(of_columns))), is_along_rows() ? tile_.rows : tile_.columns());
    }

protected:
    TileCopies(const TileShape& tile, std::uint32_t threads, Along along, const In<T, 2>& x, const Word& first,
               const TileAccess& access, const Where& where)
        : tile_(tile), threads_(threads), along_(along), x_(x), first_(word(first)), access_(access), start_(start()) {
        if (is_by_elements()) return;
        const std::uint32_t width = access.bytes / sizeof(T);
        expect_access(where);
        const auto column = value(start_.unit * width);
        for (std::uint32_t pass = 0; pass < std::min(passes(), period()); ++pass)
            places_.push_back(tile_.place(value(start_.row + pass * rows_of_pass()), column));
        if (!is_along_rows()) {
            for (std::uint32_t pass = 0; pass < passes(); ++pass) {
                const auto row = row_of(value(start_.row + pass * rows_of_pass()));
                pointers_.push_back(x.row(row).slice(column).template as<std::uint8_t>());
            }
            slices_.push_back(slices_with(column, x.extent(1), tile_.columns()));
        } else if (multiplies_rows()) {
            const auto last = value(x.extent(1) - width);
            pointers_.push_back(x.row(0u).slice(min(first_ + column, last)).template as<std::uint8_t>());
        } else {
            const auto last = value(x.extent(1) - width);
            if (!is_stepped()) {
                // A slice's distance in bytes as one product, which is added to a pointer in one instruction: of rows
                // and a pitch in bytes, unless that has more than 32 bits.
                constexpr std::uint32_t size = sizeof(T);
                const auto is_far = value(x.pitch() > ~0u / size);
                steps_.push_back(value(select(is_far, tile_.rows * size, tile_.rows)));
                steps_.push_back(value(select(is_far, x.pitch(), x.pitch() * size)));
            }
            for (std::uint32_t pass = 0; pass < (is_stepped() ? 1 : passes()); ++pass) {
                const auto row = value(start_.row + pass * rows_of_pass());
                pointers_.push_back(x.row(row).slice(min(first_ + column, last)).template as<std::uint8_t>());
                slices_.push_back(slices_with(row, x.extent(0), tile_.rows));
            }
        }
    }

    void load(const StageBytes& to, const Word& slice, const PartOfSlice& part, const Where& where) const {
        if (is_by_elements()) return part.number == 0 ? load_elements(to, word(slice)) : void();
        const auto number = word(slice);
        const bool is_for_all = rows_of_pass() * units_of_row() == threads_;
        const auto all_passes = [&] { copy_passes(to, number, part, where); };
        if (is_for_all)
            all_passes();
        else
            if_(start_.row < rows_of_pass(), all_passes);
    }

private:
    bool is_along_rows() const { return along_ == Along::Rows; }
    /// An error of a launch whose matrix cannot be accessed by this many bytes.
    void expect_access(const Where& where) const {
        Expected expected{
            .multiple = access_.bytes,
            .what = "a TileSource copies " + std::to_string(access_.bytes) + " bytes of a row at once",
            .hint = "rows begin at such multiples, and are as long: otherwise copy by fewer bytes, or, 0, by elements"};
        expect_aligned(x_, expected, where);
        expected.multiple /= sizeof(T);
        expect_multiple(x_.pitch(), expected, where);
        expect_multiple(x_.extent(1), expected, where);
    }

    UnitOfRow start() const {
        const auto thread = value(thread_id().x);
        return is_by_elements() ? UnitOfRow{thread, thread} : tile_.unit_of_row(thread, access_.bytes, rows_of_pass());
    }
    std::uint32_t units_of_row() const { return access_.bytes ? tile_.row_bytes / access_.bytes : 0; }
    /// Also where there are not enough threads to copy a row.
    bool is_by_elements() const { return access_.bytes == 0 || units_of_row() > threads_; }
    /// In a pass, threads copy this many rows: eights of them, or, of long rows, 4, 2 or 1.
    std::uint32_t rows_of_pass() const {
        const std::uint32_t rows = threads_ / units_of_row();
        return rows >= 8 ? rows / 8 * 8 : std::bit_floor(rows);
    }
    std::uint32_t passes() const { return (tile_.rows + rows_of_pass() - 1) / rows_of_pass(); }
    /// After this many passes a thread is multiples of eight rows further: its places are, too, whatever the swizzle.
    std::uint32_t period() const { return rows_of_pass() >= 8 ? 1 : 8 / rows_of_pass(); }

    bool is_stepped() const { return is_along_rows() && access_.saves_registers; }
    bool multiplies_rows() const { return is_along_rows() && access_.multiplies_rows; }

    /// The row of the matrix that is row `row` of a tile. After the last one these are any of the tile's others: if
    /// all were the same, all blocks would wait for one place of the cache.
    U32 row_of(const U32& row) const {
        const auto last = value(x_.extent(0) - 1u);
        const auto first = value(min(first_, last)), count = value(last - first + 1u);
        return value(first + select(row < count, row, mul_hi(row * 0x9e3779b9u, count)));
    }

    void copy_passes(const StageBytes& to, const U32& number, const PartOfSlice& part, const Where& where) const {
        const auto row = value(number * tile_.rows + start_.row);
        const std::uint32_t first = passes() * part.number / part.count;
        const std::uint32_t end = passes() * (part.number + 1) / part.count;
        if (multiplies_rows()) return copy_rows(to, row, first, end, where);
        const auto step = value(mul_wide(x_.pitch(), rows_of_pass() * std::uint32_t(sizeof(T))));
        std::vector<Leaf<std::uint64_t>> further{offset(number)};
        for (std::uint32_t pass = 0; pass < end; ++pass) {
            if (is_stepped() && pass > 0) further.push_back(value(further.back() + step));
            if (pass < first) continue;
            copy_pass(to, pass, pointers_[is_stepped() ? 0 : pass], further.back(), where, [&] {
                return is_stepped() ? value(row + pass * rows_of_pass() < x_.extent(0))
                                    : value(number < slices_[is_along_rows() ? pass : 0]);
            });
        }
    }
    /// A row's number and their count are multiplied by an element's bytes, so that one product of 64 bits is a row's
    /// distance from the first.
    void copy_rows(const StageBytes& to, const U32& row, std::uint32_t first, std::uint32_t end,
                   const Where& where) const {
        constexpr std::uint32_t size = sizeof(T);
        const auto start = value(row * size), all = value(x_.extent(0) * size);
        for (std::uint32_t pass = first; pass < end; ++pass) {
            const auto at = value(start + pass * rows_of_pass() * size);
            copy_pass(to, pass, pointers_[0], value(mul_wide(at, x_.pitch())), where, [&] { return value(at < all); });
        }
    }
    /// What a thread copies in a pass, `offset` bytes from a pointer, if is_there().
    void copy_pass(const StageBytes& to, std::uint32_t pass, const Indexable<std::uint8_t, Direction::Read>& pointer,
                   const Leaf<std::uint64_t>& offset, const Where& where, auto&& is_there) const {
        const std::uint32_t down = pass * rows_of_pass();
        const auto copy = [&] {
            const auto target = to.bytes.slice(places_[pass % period()]);
            const auto place = target[to.first + (down - pass % period() * rows_of_pass()) * tile_.panel_row()];
            const auto source = pointer[offset];
            const auto condition = is_there();
            if (access_.bytes == 16) copy_async_if<16>(condition, place, source, where);
            if (access_.bytes == 8) copy_async_if<8>(condition, place, source, where);
            if (access_.bytes == 4) copy_async_if<4>(condition, place, source, where);
        };
        if (down + rows_of_pass() > tile_.rows)
            if_(start_.row < tile_.rows - down, copy);
        else
            copy();
    }

    /// How many slices of `extent` have what is `at` in the first one.
    static U32 slices_with(const U32& at, const U32& all, std::uint32_t extent) {
        return value(select(all > at, (all - at - 1u) / extent + 1u, 0u));
    }
    static U32 slices_with(const U32& all, std::uint32_t extent) { return slices_with(value(0u), all, extent); }
    /// The bytes from the first slice to another.
    Leaf<std::uint64_t> offset(const U32& slice) const {
        if (!is_along_rows()) return value(mul_wide(slice, tile_.row_bytes));
        return is_stepped() ? value(mul_wide(slice * tile_.rows, x_.pitch()) * std::uint64_t(sizeof(T)))
                            : value(mul_wide(slice * steps_[0], steps_[1]));
    }

    /// Element by element: each thread takes a word of a row of the tile, and those further down.
    void load_elements(const StageBytes& to, const U32& slice) const {
        constexpr std::uint32_t each = 4 / sizeof(T);
        const std::uint32_t words = tile_.row_bytes / 4, all = tile_.rows * words;
        const auto thread = value(thread_id().x);
        for (auto begin : range(0u, all, threads_)) {
            const auto at = value(begin + thread);
            // Neighbours take the words of a row; of the transpose, eight rows of four words, which use all banks.
            const auto quad = value(at / 32u), lane = value(at % 32u);
            const auto row = access_.transposed ? value(quad / (words / 4) * 8u + lane % 8u) : value(at / words);
            const auto word = access_.transposed ? value(quad % (words / 4) * 4u + lane / 8u) : value(at % words);
            const auto take = [&] {
                for (std::uint32_t k = 0; k < each; ++k) {
                    const auto column = value(word * each + k);
                    const auto down = is_along_rows() ? value(slice * tile_.rows + row) : value(first_ + row);
                    const auto across =
                        is_along_rows() ? value(first_ + column) : value(slice * tile_.columns() + column);
                    const auto i = access_.transposed ? across : down, j = access_.transposed ? down : across;
                    to.element<T>(row, column) = x_.load_if((i < x_.extent(0)) & (j < x_.extent(1)), i, j, T{});
                }
            };
            if (all % threads_ == 0)
                take();
            else
                if_(at < all, take);
        }
    }

    TileShape tile_;
    std::uint32_t threads_;
    Along along_;
    In<T, 2> x_;
    U32 first_;
    TileAccess access_;
    UnitOfRow start_;  // what the thread copies first of a tile
    std::vector<U32> places_, slices_;
    std::vector<U32> steps_;  // Along::Rows: their product is a slice's distance in bytes
    std::vector<Indexable<std::uint8_t, Direction::Read>> pointers_;
};

}  // namespace detail

/// A matrix whose slices `threads` threads copy: all those of the block.
template <class Tile, std::uint32_t threads, Along along>
class TileSource : public detail::TileCopies<typename Tile::element_type> {
    using T = typename Tile::element_type;
    static_assert(threads >= Tile::row_bytes / 16, "TileSource: there is a thread for each 16 bytes of a row, or more");

public:
    /// The tiles begin at row `first` of x, or, Along::Rows, at column `first`. x is not empty.
    TileSource(const In<T, 2>& x, const Word& first, const TileAccess& access, const Where& where = Where::current())
        : detail::TileCopies<T>(Tile::shape, threads, along, x, first, access, where) {}

    /// Begins to copy a slice; beyond the last one are zeros. Threads see it after copy_commit(), copy_wait() and
    /// sync_block().
    void load(const TileStage<Tile>& to, const Word& slice, const Where& where = Where::current()) const {
        load(to, slice, {}, where);
    }
    /// A part of it.
    void load(const TileStage<Tile>& to, const Word& slice, const PartOfSlice& part,
              const Where& where = Where::current()) const {
        detail::TileCopies<T>::load(to, slice, part, where);
    }
};

}  // namespace ikat::stdlib
