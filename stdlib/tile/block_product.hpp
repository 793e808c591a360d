// SPDX-License-Identifier: Apache-2.0
// The product that a block makes: some rows of A by some columns of B, on tensor cores, by way of shared memory.
//
//     BlockProduct<bfloat16, TensorTile{}, MatrixOrder::Rows, MatrixOrder::Columns> product(A, B, row, column, {});
//     product.each<8>([&](const auto& i, const auto& j, const auto& sums) {        C(i, j), C(i, j + 1) ... C(i, j + 7)
//         if_((i < m) & (j + 7 < n), [&] { C.vec<8>(i, j / 8) = cast<bf16>(sums); });
//     });
#pragma once
#include <compare>
#include <optional>

#include "stdlib/tile/matrix_order.hpp"
#include "stdlib/tile/pipeline.hpp"
#include "stdlib/tile/schedule.hpp"
#include "stdlib/tile/tile_rows.hpp"
#include "stdlib/tile/tile_source.hpp"
#include "stdlib/tile/warp_tiles.hpp"

namespace ikat::stdlib {

/// A block makes m x n of C, its warps warp_m x warp_n each; slices of k are 128 bytes, of which `stages` are in shared
/// memory.
struct TensorTile {
    std::uint32_t m = 128, n = 128, warp_m = 64, warp_n = 32, stages = 3;
    constexpr std::uint32_t threads() const { return 32 * (m / warp_m) * (n / warp_n); }
};

/// The product of elements of T, of half, bfloat16, float, which is multiplied as tf32, or std::int8_t.
template <class T>
using ProductOf = Mma<16, 8, 32 / sizeof(T), std::conditional_t<std::is_same_v<T, float>, tf32, T>,
                      std::conditional_t<std::is_same_v<T, std::int8_t>, std::int32_t, float>>;

/// By how many bytes the matrices may be accessed, see TileAccess.
struct ProductAccess {
    std::uint32_t a = 16, b = 16;
    auto operator<=>(const ProductAccess&) const = default;
};

/// A tile of C = A B by a block, on tensor cores of any device from sm_80 on. A and B are stored by rows or by columns.
template <class T, TensorTile tile, MatrixOrder order_a, MatrixOrder order_b>
class BlockProduct {
    // Elements of 16 bits are transposed on the way to registers, others on the way to shared memory.
    static constexpr bool turns = sizeof(T) == 2;
    static constexpr Major major_a = order_a == MatrixOrder::Columns && turns ? Major::MN : Major::K;
    static constexpr Major major_b = order_b == MatrixOrder::Rows && turns ? Major::MN : Major::K;
    static constexpr bool transposes_a = order_a == MatrixOrder::Columns && !turns;
    static constexpr bool transposes_b = order_b == MatrixOrder::Rows && !turns;
    static constexpr std::uint32_t threads = tile.threads();
    template <Major major, std::uint32_t extent>
    using Tile = std::conditional_t<major == Major::K, SharedTile<T, tile.stages, extent, 128 / sizeof(T)>,
                                    SharedTile<T, tile.stages, 128 / sizeof(T), extent>>;
    template <Major major, std::uint32_t extent>
    using Source = TileSource<Tile<major, extent>, threads, major == Major::K ? Along::Columns : Along::Rows>;

public:
    using Sums = WarpTiles<ProductOf<T>, tile.warp_m, tile.warp_n>;
    using Sum = typename Sums::Sum;

    /// Rows `row` to `row + tile.m - 1` of A by as many columns of B from `column` on, all of k; neither matrix is
    /// empty. By all threads of the block, tile.threads(). A and B are as they are stored: k x m and n x k by columns.
    /// A block that goes on to another tile, in a loop, meets at a sync_block() before that.
    BlockProduct(const In<T, 2>& A, const In<T, 2>& B, const Word& row, const Word& column, const ProductAccess& access,
                 const std::optional<PartOfK>& part = {}, const Where& where = Where::current())
        : row_(word(row)), column_(word(column)) {
        require_linear_blocks();
        require_threads(threads);
        const Source<major_a, tile.m> from_a(A, row_, {transposes_a ? 0 : access.a, transposes_a}, where);
        const Source<major_b, tile.n> from_b(B, column_, {transposes_b ? 0 : access.b, transposes_b}, where);
        const LeftFactor<ProductOf<T>, Tile<major_a, tile.m>, major_a> left(a_, warp_row_);
        const RightFactor<ProductOf<T>, Tile<major_b, tile.n>, major_b> right(b_, warp_column_);
        pipeline<tile.stages>(
            part ? part->count : from_a.count(),
            [&](const auto& stage, const auto& slice) {
                const auto number = part ? value(part->first + slice) : slice;
                from_a.load(a_[stage], number);
                from_b.load(b_[stage], number);
            },
            [&](const auto& stage) { sums_.accumulate(left, right, a_[stage], b_[stage]); });
    }

    /// Calls f(i, j, sums) for sums (i, j) to (i, j + count - 1), `count` lanes, of which each thread has some; count
    /// is 4 or 8. Sums beyond the matrices are passed, too.
    template <std::uint32_t count>
    void each(auto&& f) const {
        constexpr std::uint32_t scratch = row_scratch<Sums>;
        static_assert(threads / 32 * scratch * sizeof(Sum) <= tile.stages * Tile<major_a, tile.m>::stage_bytes,
                      "BlockProduct: 16 rows of each warp's sums have room where A was");
        each_row<count>(sums_, a_.bytes().template as<Sum>().slice(warp_id() * scratch),
                        [&](const auto& i, const auto& j, const auto& sums) {
                            f(value(row_ + warp_row_ + i), value(column_ + warp_column_ + j), sums);
                        });
    }

private:
    static constexpr std::uint32_t across = tile.n / tile.warp_n;
    Leaf<std::uint32_t> row_, column_;
    Leaf<std::uint32_t> warp_row_ = value(warp_id() / across * tile.warp_m);
    Leaf<std::uint32_t> warp_column_ = value(warp_id() % across * tile.warp_n);
    Tile<major_a, tile.m> a_;
    Tile<major_b, tile.n> b_;
    Sums sums_{Sum{}};
};

}  // namespace ikat::stdlib
