// SPDX-License-Identifier: Apache-2.0
// A warpgroup's part of a product of tiles (wgmma, sm_90a): its accumulators in registers, its operands in shared
// memory.
//
//     using W = Wgmma<64, 256, 16, bfloat16, float>;
//     SharedTile<bfloat16, 4, 128, 64> a;                   A: 128 x 64 by rows
//     SharedTile<bfloat16, 4, 256, 64> b;                   B: 64 x 256, 256 columns of 64
//     WarpgroupTiles<W, 1> accumulators(0.0f);              64 x 256 of C
//     const WarpgroupOperand<W, decltype(a), Major::K> left(a, 64 * warpgroup);
//     const WarpgroupOperand<W, decltype(b), Major::K> right(b, 0);
//     wgmma_fence();
//     accumulators.begin(left, right, a[stage], b[stage]);  accumulators += A * B, over all 64 of k, in flight
//     wgmma_commit();
#pragma once
#include "dsl/threads/wgmma.hpp"
#include "stdlib/tile/tile_rows.hpp"

namespace ikat::stdlib {

/// Where one of the operands of a warpgroup's product is: rows `first` and on of A in m x k tiles, of B in n x k tiles,
/// or, Major::MN, columns of k x m or k x n tiles. `first` is a multiple of 64, or with Major::MN of a panel.
template <class W, class Tile, Major major>
class WarpgroupOperand {
    using T = typename Tile::element_type;
    static_assert(Tile::swizzle > 0, "WarpgroupOperand: of tiles with a swizzle");
    static_assert(major == Major::K || sizeof(T) == 2, "WarpgroupOperand: only 16-bit elements can be Major::MN");

public:
    static constexpr std::uint32_t k = major == Major::K ? Tile::columns : Tile::rows;
    WarpgroupOperand(const Tile& tile, const Word& first) : matrix_(matrix_at(tile, word(first))) {}

    /// The matrix for `step` steps along k, `further` rows of 64 (of A) further on.
    auto at(const TileStage<Tile>& stage, std::uint32_t step, std::uint32_t further = 0) const {
        return further_on(of(stage), step, further);
    }
    /// The same in two steps, of which the first is done once for a stage.
    auto of(const TileStage<Tile>& stage) const { return matrix_.offset(stage.first()); }
    static auto further_on(const auto& matrix, std::uint32_t step, std::uint32_t further = 0) {
        constexpr std::uint32_t down =
            major == Major::K ? 64 * Tile::panel_row : 128 / Tile::swizzle * Tile::panel_bytes;
        std::uint32_t along = step * (32 / sizeof(T)) * Tile::panel_row;
        if constexpr (major == Major::K)
            along = step * 32 / Tile::panel_row * Tile::panel_bytes + step * 32 % Tile::panel_row;
        return matrix.offset(along + further * down);
    }

private:
    static auto matrix_at(const Tile& tile, const Leaf<std::uint32_t>& first) {
        if constexpr (major == Major::K) {
            return k_major<int(Tile::swizzle)>(tile.bytes()[first * Tile::panel_row]);
        } else {
            constexpr std::uint32_t of_panel = Tile::panel_row / sizeof(T);
            return mn_major<int(Tile::swizzle)>(tile.bytes()[first / of_panel * Tile::panel_bytes], Tile::panel_bytes);
        }
    }
    decltype(matrix_at(std::declval<const Tile&>(), std::declval<const Leaf<std::uint32_t>&>())) matrix_;
};

/// 64 * count rows and W::n columns of C by a warpgroup.
template <class W, std::uint32_t count_>
class WarpgroupTiles {
public:
    using product = W;
    static constexpr std::uint32_t count = count_, m = 64 * count, n = W::n;
    using Accumulator = typename W::C::element_type;

    explicit WarpgroupTiles(Accumulator start, const Where& where = Where::current()) {
        for (auto& fragment : accumulators_) fragment = typename W::C::Incoming(start, where);
    }

    /// Begins accumulators += A * B for a stage of each, over all of its k.
    template <class TileA, Major major_a, class TileB, Major major_b>
    void begin(const WarpgroupOperand<W, TileA, major_a>& left, const WarpgroupOperand<W, TileB, major_b>& right,
               const TileStage<TileA>& a, const TileStage<TileB>& b) {
        using Left = WarpgroupOperand<W, TileA, major_a>;
        static_assert(Left::k == WarpgroupOperand<W, TileB, major_b>::k, "begin: both tiles have the same k");
        for (std::uint32_t step = 0; step < Left::k / W::k; ++step)
            for (std::uint32_t i = 0; i < count; ++i) wgmma(accumulators_[i], left.at(a, step, i), right.at(b, step));
    }

    /// The accumulators of 64 rows.
    auto& operator[](std::uint32_t i) { return accumulators_[i]; }
    const auto& operator[](std::uint32_t i) const { return accumulators_[i]; }

private:
    typename W::C accumulators_[count];
};

/// One of the warpgroups that multiply waits for its threads; `group` is its number among these.
inline void sync_warpgroup(const Leaf<std::uint32_t>& group) { sync_block(group + 1u, 128u); }

/// A warp's 16 rows of the accumulators of a warpgroup, a W::C, as WarpTiles has them: rows(0, j)[e] is one of the
/// lane's four in columns 8 j and on.
template <class Fragment>
class WarpgroupRows {
public:
    static constexpr std::uint32_t m = 16, n = Fragment::layout::product::n, columns = n / 8;
    explicit WarpgroupRows(Fragment& accumulators) : accumulators_(&accumulators) {}

    struct Four {
        Fragment* accumulators;
        std::uint32_t first;
        auto& operator[](std::uint32_t e) const { return (*accumulators)[first + e]; }
    };
    Four operator()(std::uint32_t, std::uint32_t j) const { return {accumulators_, 4 * j}; }

private:
    Fragment* accumulators_;
};

/// A product's A of 64 rows in registers: the accumulators of another one, a W::C, rounded.
template <class W, class Fragment>
class WarpgroupFragments {
public:
    static constexpr std::uint32_t steps = Fragment::layout::product::n / 16;
    /// The elements become these accumulators.
    void take(const Fragment& accumulators) {
        using Pair = typename W::A::element_type;
        for (std::uint32_t step = 0; step < steps; ++step)
            for (std::uint32_t r = 0; r < 4; ++r) {
                const std::uint32_t e = 8 * step + 2 * r;
                fragments_[step][r] = pack<Pair>(accumulators[e], accumulators[e + 1]);
            }
    }
    /// All elements become 0.
    void clear() {
        const f32 zero = 0.0f;
        for (auto& fragment : fragments_)
            for (std::uint32_t r = 0; r < 4; ++r) fragment[r] = pack<typename W::A::element_type>(zero, zero);
    }
    const typename W::A& operator[](std::uint32_t step) const { return fragments_[step]; }

private:
    typename W::A fragments_[steps];
};

/// How many numbers of shared memory each warp needs for each_row().
inline constexpr std::uint32_t warpgroup_scratch = 16 * scratch_pitch(64);

/// Calls f(row, column, values) for `count` accumulators, 4 or 8, in columns of a row of the warpgroup's part that
/// follow each other, until all have been passed. `scratch` has warpgroup_scratch numbers for this warp.
template <std::uint32_t count, class W, std::uint32_t fragments, class Scratch>
void each_row(const WarpgroupTiles<W, fragments>& accumulators, const Scratch& scratch, auto&& f) {
    using Accumulator = typename WarpgroupTiles<W, fragments>::Accumulator;
    static_assert(W::n % 64 == 0, "each_row: of a warpgroup, columns come in 64");
    const auto first = value(warp_id() % 4u * 16u);
    for (std::uint32_t i = 0; i < fragments; ++i)
        for (std::uint32_t left = 0; left < std::uint32_t(W::n); left += 64)
            exchange_rows<Accumulator, 64, count>(
                scratch,
                [&](std::uint32_t j, std::uint32_t half) {
                    const std::uint32_t at = left / 2 + 4 * j + 2 * half;
                    return Vec<Accumulator, 2>(accumulators[i][at], accumulators[i][at + 1]);
                },
                [&](const auto& row, const auto& column, const auto& values) {
                    f(value(row + first + 64 * i), value(column + left), values);
                });
}

}  // namespace ikat::stdlib
