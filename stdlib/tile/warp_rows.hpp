// SPDX-License-Identifier: Apache-2.0
// Some rows of a matrix on their way into a stage of a SharedTile, by one warp: where warps work on slices of their
// own, they need not wait for each other.
//
//     const WarpRows<decltype(a)> rows(x, pitch);
//     rows.load(a[stage], first, count);           from byte `first` on; of a.rows rows `count` are there
//     copy_commit();
//     copy_wait<0>();
//     sync_warp();
#pragma once
#include <numeric>
#include <optional>
#include <vector>

#include "dsl/memory/async.hpp"
#include "dsl/threads/simt.hpp"
#include "stdlib/tile/shared_tile.hpp"

namespace ikat::stdlib {

/// Rows that begin at multiples of 16 bytes, by one warp; tiles have 16 of them, or a multiple.
template <class Tile>
class WarpRows {
    using U32 = Leaf<std::uint32_t>;
    using I32 = Leaf<std::int32_t>;
    using U64 = Leaf<std::uint64_t>;
    using T = typename Tile::element_type;
    static constexpr std::uint32_t pieces = Tile::row_bytes / 16, passes = Tile::rows * pieces / 32;
    // After `period` passes a lane is at the same piece of a row again, `down` rows further.
    static constexpr std::uint32_t period = pieces / std::gcd(pieces, 32u), down = 32 / std::gcd(pieces, 32u);
    static_assert(down % 8 == 0 || (8 % down == 0 && Tile::swizzle == 128),
                  "WarpRows: a lane's rows are eights apart, or of panels of 128 bytes");

public:
    /// Rows are `pitch` elements apart.
    WarpRows(const Indexable<T, trace::Direction::Read>& from, const Word& pitch)
        : from_(from.template as<std::uint8_t>()),
          step_(value(mul_wide(word(pitch), down * std::uint32_t(sizeof(T))))) {
        const auto lane = value(lane_id()), elements = word(pitch);
        for (std::uint32_t pass = 0; pass < period; ++pass) {
            const auto at = value(lane + 32 * pass), row = value(at / pieces), piece = value(at % pieces);
            places_.push_back(Tile::piece_place(row, piece));
            rows_.push_back(row);
            offsets_.push_back(value(mul_wide(row, elements) * std::uint64_t(sizeof(T)) + cast<u64>(piece * 16u)));
        }
    }

    /// Begins to copy the rows from byte `first` on, of which those before `to` are there, or from `from` to there;
    /// others are not read and become zeros.
    void load(const TileStage<Tile>& stage, const U64& first, const U32& to,
              const std::optional<U32>& from = {}) const {
        std::vector<U64> source;
        std::vector<U32> place;
        std::vector<I32> before, behind;  // how many rows further they begin and end
        for (std::uint32_t pass = 0; pass < period; ++pass) {
            source.push_back(value(first + offsets_[pass]));
            place.push_back(value(stage.first() + places_[pass]));
            if (from) before.push_back(value(bit_cast<i32>(*from - rows_[pass])));
            behind.push_back(value(bit_cast<i32>(to - rows_[pass])));
        }
        for (std::uint32_t pass = 0; pass < passes; ++pass) {
            const std::uint32_t number = pass % period, further = pass / period * down;
            if (pass >= period) source[number] = value(source[number] + step_);
            // The bits of `further` below eight are not in the lane's own row: it is swizzled by both.
            const auto target = stage.tile().bytes().slice(value(place[number] ^ further % 8 * 16));
            pred is_there = behind[number] > std::int32_t(further);
            if (from) is_there = is_there & (before[number] <= std::int32_t(further));
            copy_async_if<16>(is_there, target[further * Tile::panel_row], from_[source[number]]);
        }
    }

private:
    Indexable<std::uint8_t, trace::Direction::Read> from_;
    U64 step_;
    std::vector<U32> places_, rows_;
    std::vector<U64> offsets_;
};

}  // namespace ikat::stdlib
