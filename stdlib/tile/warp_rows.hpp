// SPDX-License-Identifier: Apache-2.0
// Some rows of a matrix on their way into a stage of a SharedTile, by one warp: where warps work on slices of their
// own, they need not wait for each other.
//
//     const WarpRows<decltype(a)> rows(x, pitch, 16);
//     rows.load(a[stage], first, count);           from element `first` on; of a.rows rows `count` are there
//     copy_commit();
//     copy_wait<0>();
//     sync_warp();
#pragma once
#include <optional>
#include <vector>

#include "dsl/memory/async.hpp"
#include "dsl/threads/control.hpp"
#include "dsl/threads/simt.hpp"
#include "stdlib/tile/shared_tile.hpp"

namespace ikat::stdlib {

/// copy_async_if() of a number of bytes that the host chooses: 16, 8 or 4.
inline void copy_unit_if(std::uint32_t bytes, const pred& condition, const auto& to, const auto& from) {
    if (bytes == 16) copy_async_if<16>(condition, to, from);
    if (bytes == 8) copy_async_if<8>(condition, to, from);
    if (bytes == 4) copy_async_if<4>(condition, to, from);
}

namespace detail {

/// What all WarpRows of an element type have in common.
template <class T>
class WarpCopies {
    using U32 = Leaf<std::uint32_t>;
    using U64 = Leaf<std::uint64_t>;

protected:
    WarpCopies(const TileShape& tile, const Indexable<T, Direction::Read>& from, const Word& pitch, std::uint32_t bytes)
        : tile_(tile), elements_(from), pitch_(word(pitch)), bytes_(bytes) {}

    void load(const StageBytes& stage, const U64& first, const U32& to, const std::optional<U32>& from) const {
        if (bytes_ == 0) return load_elements(stage, first, to, from);
        const std::uint32_t together = tile_.rows_of_wavefront() * bytes_ / 4;
        const auto place = value(stage.first + tile_.place(row_, column_));
        const auto remaining = value(bit_cast<i32>(to - row_));  // how many rows further they end
        const auto bytes = elements_.template as<std::uint8_t>();
        auto source = value((first + mul_wide(row_, pitch_) + cast<u64>(column_)) * std::uint64_t(sizeof(T)));
        const auto step = value(mul_wide(pitch_, together * std::uint32_t(sizeof(T))));
        for (std::uint32_t down = 0; down < tile_.rows; down += together) {
            if (down > 0) source = value(source + step);
            // The bits of `down` are not in the lane's own row: it is swizzled by both.
            const auto target = stage.bytes.slice(value(place ^ tile_.turn(down) * 16));
            pred is_there = remaining > std::int32_t(down);
            if (from) is_there = is_there & (bit_cast<i32>(*from - row_) <= std::int32_t(down));
            for (std::uint32_t panel = 0; panel < panels(); ++panel)
                copy_unit_if(bytes_, is_there, target[down * tile_.panel_row() + panel * tile_.panel_bytes()],
                             bytes.slice(source)[panel * tile_.panel_row()]);
        }
    }

private:
    std::uint32_t panels() const { return tile_.row_bytes / tile_.swizzle; }
    /// Each lane takes a word of some panels at once.
    void load_elements(const StageBytes& stage, const U64& first, const U32& to, const std::optional<U32>& from) const {
        constexpr std::uint32_t each = 4 / sizeof(T);
        const std::uint32_t of_panel = tile_.panel_row() / sizeof(T);
        const std::uint32_t passes = panels() < 4 ? 4 : 1, together = tile_.rows_of_wavefront() * passes;
        const auto target = stage.bytes.template as<T>();
        for (auto begin : range(0u, tile_.rows, together)) {
            std::vector<U32> places;
            std::vector<Leaf<T>> loaded;
            for (std::uint32_t down = 0; down < together; down += tile_.rows_of_wavefront()) {
                const auto row = value(row_ + begin + down);
                const auto source = elements_.slice(value(first + mul_wide(row, pitch_) + cast<u64>(column_)));
                const auto place = value(stage.first + tile_.place(row, column_));
                pred is_there = row < to;
                if (from) is_there = is_there & (row >= *from);
                for (std::uint32_t panel = 0; panel < panels(); ++panel) {
                    places.push_back(value((place + panel * tile_.panel_bytes()) / std::uint32_t(sizeof(T))));
                    for (std::uint32_t k = 0; k < each; ++k)
                        loaded.push_back(source.load_if(is_there, panel * of_panel + k, T{}));
                }
            }
            for (std::uint32_t k = 0; k < loaded.size(); ++k) target[places[k / each] + k % each] = loaded[k];
        }
    }

    TileShape tile_;
    Indexable<T, Direction::Read> elements_;
    U32 pitch_;
    std::uint32_t bytes_;
    // What the lane copies in the first pass.
    std::uint32_t units_ = tile_.panel_row() / (bytes_ ? bytes_ : 4);
    U32 row_ = value(lane_id() / units_),
        column_ = value(lane_id() % units_ * std::uint32_t(tile_.panel_row() / units_ / sizeof(T)));
};

}  // namespace detail

/// Rows by one warp; tiles have 16 of them, or a multiple. In a pass lanes copy some rows of a panel, whole wavefronts:
///
///     lanes 0 ... 7  8 ... 15  16 ... 23  24 ... 31       by 16 bytes, panels of 128
///     row      0        1         2          3            of panel 0, then of panel 1 ...; then rows 4 to 7
template <class Tile>
class WarpRows : detail::WarpCopies<typename Tile::element_type> {
    using T = typename Tile::element_type;
    static_assert(Tile::rows % 16 == 0 && Tile::swizzle > 0, "WarpRows: 16 rows of 32 bytes, or multiples");

public:
    /// Rows are `pitch` elements apart. They, and what is loaded first, begin at multiples of `bytes` bytes, 16, 8 or
    /// 4, which are copied at once; 0: elements are loaded and stored.
    WarpRows(const Indexable<T, Direction::Read>& from, const Word& pitch, std::uint32_t bytes)
        : detail::WarpCopies<T>(Tile::shape, from, pitch, bytes) {}

    /// Begins to copy the rows from element `first` on, of which those before `to` are there, or from `from` to there;
    /// others are not read and become zeros.
    void load(const TileStage<Tile>& stage, const Leaf<std::uint64_t>& first, const Leaf<std::uint32_t>& to,
              const std::optional<Leaf<std::uint32_t>>& from = {}) const {
        detail::WarpCopies<T>::load(stage, first, to, from);
    }
};

}  // namespace ikat::stdlib
