// SPDX-License-Identifier: Apache-2.0
// Rows of quantised blocks on their way to tensor cores: slices of them in shared memory, and a block's tile of Y.
#pragma once
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "stdlib/quantised/tensor_product.hpp"
#include "stdlib/quantised/tensor_units.hpp"
#include "stdlib/tile/schedule.hpp"
#include "stdlib/tile/warp_tiles.hpp"

namespace ikat::stdlib {

/// The slices of `rows` rows in shared memory: one is multiplied, one is on its way. A row begins as many bytes after a
/// multiple of 16 as in global memory.
template <SliceShape slice, std::uint32_t rows>
class Slices {
    using U = blocks::U;
    static constexpr std::uint32_t all = slice.shared_bytes(rows), row_bytes = slice.row_bytes();

public:
    Slices() {
        for (std::uint32_t i = 0; i < 2; ++i)
            memory_.vec<4>(value(u32((i * all + rows * row_bytes) / 16))) = Regs<u32, 4>(0u).lanes();
    }
    const blocks::Memory& memory() const { return memory_; }
    static U place(const U& number, const U& row) { return value(number % 2u * all + row * row_bytes); }

private:
    blocks::Memory memory_ = Shared<std::uint32_t, 2 * all / 4>().flat();
};

/// Rows in global memory, from `first` on: byte `begin` is that of row 0, and `pitch` bytes are from a row to the next.
struct RowsOfBlocks {
    Indexable<std::uint8_t, Direction::Read> array;
    blocks::U begin, pitch, bytes, rows, first;
};

/// The rows of one matrix or of two, from `first` on.
inline std::vector<RowsOfBlocks> rows_of_blocks(const std::vector<TensorProductArguments::Weights>& weights,
                                                const u32& rows, bool are_aligned, const blocks::U& first) {
    std::vector<RowsOfBlocks> out;
    for (const auto& [w, begin, pitch, bytes] : weights)
        out.push_back({w.as<std::uint8_t>(), are_aligned ? blocks::U(value(u32(0u))) : blocks::U(value(begin)),
                       value(pitch), value(bytes), value(rows), first});
    return out;
}

/// Copies of rows into slices: two threads have a row, and pieces of it that are both in a sector of 32 bytes. Eight
/// threads have four rows of which no pieces are in the same banks: every second one. Of two matrices, 16 rows of the
/// one and the same 16 of the other take turns, so that a warp has both.
template <SliceShape slice, std::uint32_t rows, std::uint32_t threads = 128>
class RowCopies {
    using U = blocks::U;
    static constexpr std::uint32_t pieces = slice.pieces(), at_once = threads / 2;

public:
    explicit RowCopies(std::vector<RowsOfBlocks> of) : of_(std::move(of)) {}

    const std::vector<RowsOfBlocks>& of() const { return of_; }
    /// The byte of its array where the slice of a row of a matrix begins.
    static U begin_of(const RowsOfBlocks& of, const U& row, const U& number) {
        return value(of.begin + (of.first + row) * of.pitch + number * slice.bytes);
    }
    /// Whole pieces of 16 bytes, as far as there are any. Rows after the last are copies of it.
    void load(const Slices<slice, rows>& to, const U& number) const {
        for (std::uint32_t first = 0; first < rows; first += at_once) {
            const U pair = value(thread_id().x / 2u);
            const U row = value(first + pair / 8u * 8u + pair % 4u * 2u + pair / 4u % 2u),
                    place = to.place(number, row);
            const auto load_it = [&] {
                if (of_.size() == 1) return load_row(to, of_[0], row, place, number);
                const U of_matrix = value(row / 32u * 16u + row % 16u);
                if_(row / 16u % 2u == 0u, [&] { load_row(to, of_[0], of_matrix, place, number); }).else_([&] {
                    load_row(to, of_[1], of_matrix, place, number);
                });
            };
            if (first + at_once <= rows)
                load_it();
            else
                if_(row < rows, load_it);
        }
    }

private:
    static void load_row(const Slices<slice, rows>& to, const RowsOfBlocks& of, const U& row, const U& place,
                         const U& number) {
        const auto bytes = to.memory().template as<std::uint8_t>();
        const U side = value(thread_id().x % 2u), last = value(of.rows - 1u - of.first);
        const U from = value(begin_of(of, value(min(row, last)), number) / 16u * 16u);
        if_(from + pieces * 16u <= of.bytes, [&] {
            // Of a slice that begins in the middle of a sector, the first piece is alone.
            const U first = value(side - from / 16u % 2u), to_first = value(place + first * 16u),
                    from_first = value(from + first * 16u);
            for (std::uint32_t piece = 0; piece <= pieces; piece += 2) {
                const auto copy = [&] {
                    copy_async<16>(bytes[to_first + piece * 16u], of.array[from_first + piece * 16u]);
                };
                if (piece != 0 && piece + 1 < pieces)
                    copy();
                else
                    if_(first + piece < pieces, copy);
            }
        }).else_([&] {  // where the array ends
            for (auto e : range(side, pieces * 16, 2u).unroll(1))
                bytes[place + e] = of.array.load_if(from + e < of.bytes, from + e, std::uint8_t{});
        });
    }

    std::vector<RowsOfBlocks> of_;
};

/// By stream-k, what a block does of a tile: computed, where it is called.
using Share = std::function<TileShare()>;

/// A block's tile of Y, 128 rows of weights, of which a warp has 32 or 16, and `tokens` tokens; and its part of the
/// slices: there are as many tiles after each other as parts. Of two matrices there are 64 rows of each, 16 in a warp.
/// By stream-k a block has a tile after the other, of one matrix: for each of its shares it makes a new one of these.
template <SliceShape slice, std::uint32_t tokens, std::uint32_t rows_of_warp = 32>
class ProductTile {
    using U = blocks::U;
    using F = blocks::F;
    static constexpr std::uint32_t tile_rows = TensorProductKernel::rows, rows_of_lane = rows_of_warp / 8;

public:
    ProductTile(std::uint32_t matrices, const U& all_rows, const U& all_tokens, const U& slices,
                const U& slices_of_part)
        : all_rows_(all_rows),
          all_tokens_(all_tokens),
          row_(value(warp_id() * (rows_of_warp / matrices) + lane_id() / 4u)),
          row_of_slices_(value(warp_id() * rows_of_warp + lane_id() / 4u)) {
        const std::uint32_t rows = tile_rows / matrices;
        const U down = value((all_rows + (rows - 1)) / rows), across = value((all_tokens + (tokens - 1)) / tokens);
        const U of_part = value(block_id().x % (down * across));
        part_.emplace(value(block_id().x / (down * across)));
        first_row_.emplace(value(of_part % down * rows));
        first_token_.emplace(value(of_part / down * tokens));
        first_slice_.emplace(value(*part_ * slices_of_part));
        end_slice_.emplace(value(min(*first_slice_ + slices_of_part, slices)));
    }
    ProductTile(const U& all_rows, const U& all_tokens, const TileShare& share)
        : all_rows_(all_rows),
          all_tokens_(all_tokens),
          row_(value(warp_id() * rows_of_warp + lane_id() / 4u)),
          row_of_slices_(row_) {
        const U down = tiles_of(all_rows, tile_rows);
        part_.emplace(value(u32(0u)));
        first_row_.emplace(value(share.tile % down * tile_rows));
        first_token_.emplace(value(share.tile / down * tokens));
        first_slice_.emplace(share.part.first);
        end_slice_.emplace(value(share.part.first + share.part.count));
    }
    /// Calls f(share) for what the block does by stream-k, with a Share. The loop of a product has no registers for
    /// that. So the numbers that all follows from are in shared memory, and it is computed where it is needed.
    static void each_share(const U& all_rows, const U& all_tokens, const U& slices, const u32& streamed, auto&& f) {
        const Shared<std::uint32_t, 6> kept;
        const auto is_first = [] { return value(thread_id().x == 0u); };
        if_(is_first(), [&] {
            kept[0u] = streamed, kept[1u] = slices, kept[2u] = grid_dim().x, kept[3u] = block_id().x;
            kept[4u] = tiles_of(all_rows, tile_rows) * tiles_of(all_tokens, tokens), kept[5u] = 0u;
        });
        sync_block();
        const auto number = [&](std::uint32_t i) { return U(value(kept[i])); };
        const auto stream = [&] { return StreamK(number(0), number(1), number(2)); };
        while_([&] { return value(number(5) < stream().count(number(3), number(4))); },
               [&] {
                   f([&] { return stream().share(number(3), number(4), number(5)); });
                   sync_block();
                   if_(is_first(), [&] { kept[5u] = kept[5u] + 1u; });
                   sync_block();
               });
    }

    const U& first_row() const { return *first_row_; }
    const U& first_token() const { return *first_token_; }
    const U& first_slice() const { return *first_slice_; }
    const U& end_slice() const { return *end_slice_; }
    const U& q() const { return q_; }

    /// The lane's rows in a slice, eight apart, four or two, or two of each matrix. Each begins some bytes after a
    /// multiple of 16: as many, or eight more if the pitch is odd.
    std::vector<blocks::LaneRow> rows_of(const Slices<slice, tile_rows>& in, const auto& copies,
                                         const U& number) const {
        const U first = in.place(number, row_of_slices_);
        std::vector<blocks::LaneRow> out;
        for (std::uint32_t r = 0; r < rows_of_lane; ++r) {
            const RowsOfBlocks& of = copies.of()[copies.of().size() == 1 ? 0 : r / 2];
            const U none = value(u32(0u));
            const U further = slice.is_aligned()       ? none
                              : slice.rows_are_aligned ? U(value(number * slice.bytes % 16u))
                                                       : U(value(copies.begin_of(of, row_, number) % 16u));
            const U shift = slice.is_aligned() ? none : U(value(further % 4u * 8u));
            // Tiles of two matrices have no register left for what is known to be 0.
            const bool is_shifted = !slice.pitch_is_even || copies.of().size() == 1;
            const bool is_like_first = slice.rows_are_aligned || r % 2 == 0 || !is_shifted;
            const U begin = is_like_first ? further : U(value((further + of.pitch * 8u) % 16u));
            const U word = value((first + begin) / 4u + r * 8 * slice.row_bytes() / 4);
            out.emplace_back(in.memory(), word, shift, q_, slice.is_aligned());
        }
        return out;
    }
    /// finish(condition, token, row, total) for all that the lane has: the token's number is that among the tokens of
    /// all parts. of_token(condition, token) is what a total is multiplied with.
    void store(const auto& totals, auto&& of_token, auto&& finish) const {
        each_token([&](const auto& is_there, const U& token, std::uint32_t j, std::uint32_t e) {
            const std::optional<F> factor = of_token(is_there, token);
            const U place = value(*part_ * all_tokens_ + token);
            for (std::uint32_t r = 0; r < rows_of_lane; ++r) {
                const U row = value(*first_row_ + row_ + 8 * r);
                const auto total = totals(r / 2, j)[int(r % 2 * 2 + e)];
                finish(value(is_there & (row < all_rows_)), place, row, scaled(total, factor));
            }
        });
    }
    /// By stream-k: the results of a whole tile go where they belong, and others are sums with the number of the share:
    /// of each token of a tile, of 128 rows.
    void store_share(const Share& computed, const auto& totals, auto&& of_token, auto&& finish,
                     const Out<float>& sums) const {
        const TileShare share = computed();
        const ProductTile tile(all_rows_, all_tokens_, share);
        if_(share.is_whole, [&] { tile.store(totals, of_token, finish); }).else_([&] {
            const U first = value(share.number * tokens);
            tile.store(totals, of_token, [&](const auto& condition, const U& token, const U& row, const F& total) {
                const U of_tile = value(first + (token - tile.first_token()));
                sums.store_if(condition, of_tile * tile_rows + (row - tile.first_row()), total);
            });
        });
    }
    /// The same for both matrices: finish(condition, token, row, total of the first, total of the second).
    void store_pairs(const auto& totals, auto&& of_token, auto&& finish) const {
        each_token([&](const auto& is_there, const U& token, std::uint32_t j, std::uint32_t e) {
            const std::optional<F> factor = of_token(is_there, token);
            for (std::uint32_t r = 0; r < 2; ++r) {
                const U row = value(*first_row_ + row_ + 8 * r);
                const auto total = [&](std::uint32_t matrix) {
                    return scaled(totals(matrix, j)[int(r * 2 + e)], factor);
                };
                finish(value(is_there & (row < all_rows_)), token, row, total(0), total(1));
            }
        });
    }

private:
    static F scaled(const auto& total, const std::optional<F>& factor) {
        return factor ? F(value(total * *factor)) : F(value(total));
    }
    void each_token(auto&& work) const {
        for (std::uint32_t j = 0; j < tokens / 8; ++j)
            for (std::uint32_t e = 0; e < 2; ++e) {
                const U token = value(*first_token_ + 8 * j + q_ * 2u + e);
                const auto is_there = value(token < all_tokens_);
                work(is_there, token, j, e);
            }
    }

    U all_rows_, all_tokens_, row_, row_of_slices_;
    std::optional<U> part_, first_row_, first_token_, first_slice_, end_slice_;
    U q_ = value(lane_id() % 4u);
};

}  // namespace ikat::stdlib
