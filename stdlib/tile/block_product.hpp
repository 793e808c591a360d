// SPDX-License-Identifier: Apache-2.0
// The product that a block makes: some rows of A by some columns of B, on tensor cores, by way of shared memory.
//
//     BlockProduct<bfloat16, TensorTile{}, MatrixOrder::Rows, MatrixOrder::Columns> product(A, B, row, column, {});
//     product.each<8>([&](const auto& i, const auto& j, const auto& values) {      C(i, j), C(i, j + 1) ... C(i, j + 7)
//         if_((i < m) & (j + 7 < n), [&] { C.vec<8>(i, j / 8) = cast<bf16>(values); });
//     });
#pragma once
#include <compare>
#include <optional>

#include "stdlib/tile/matrix_order.hpp"
#include "stdlib/tile/parts.hpp"
#include "stdlib/tile/pipeline.hpp"
#include "stdlib/tile/tile_rows.hpp"
#include "stdlib/tile/tile_source.hpp"
#include "stdlib/tile/warp_tiles.hpp"

namespace ikat::stdlib {

/// A block makes m x n of C, its warps warp_m x warp_n each; slices of k are k_bytes, 128 or 64, of which `stages` are
/// in shared memory.
struct TensorTile {
    std::uint32_t m = 128, n = 128, warp_m = 64, warp_n = 32, stages = 3, k_bytes = 128;
    constexpr std::uint32_t threads() const { return 32 * (m / warp_m) * (n / warp_n); }
    constexpr std::uint32_t shared_bytes() const { return stages * k_bytes * (m + n); }
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

/// What a BlockProduct has of A and B in shared memory: the tiles A and B, with as many rows or columns of the matrix
/// as the block needs and 128 bytes of k, and the sources of matrices for these.
template <class T, TensorTile tile, MatrixOrder order_a, MatrixOrder order_b>
struct BlockTiles {
    // Elements of 16 bits are transposed on the way to registers, others on the way to shared memory.
    static constexpr bool turns = sizeof(T) == 2;
    static constexpr Major major_a = order_a == MatrixOrder::Columns && turns ? Major::MN : Major::K;
    static constexpr Major major_b = order_b == MatrixOrder::Rows && turns ? Major::MN : Major::K;
    static constexpr bool transposes_a = order_a == MatrixOrder::Columns && !turns;
    static constexpr bool transposes_b = order_b == MatrixOrder::Rows && !turns;
    template <Major major, std::uint32_t extent>
    using Tile = std::conditional_t<major == Major::K, SharedTile<T, tile.stages, extent, tile.k_bytes / sizeof(T)>,
                                    SharedTile<T, tile.stages, tile.k_bytes / sizeof(T), extent>>;
    template <Major major, std::uint32_t extent>
    using Source = TileSource<Tile<major, extent>, tile.threads(), major == Major::K ? Along::Columns : Along::Rows>;
    using A = Tile<major_a, tile.m>;
    using B = Tile<major_b, tile.n>;
    using SourceA = Source<major_a, tile.m>;
    using SourceB = Source<major_b, tile.n>;
};

/// A tile of C = A B by a block, on tensor cores of any device from sm_80 on. A and B are stored by rows or by columns,
/// or come from sources of your own, for the tiles TileA and TileB: m x k and n x k, or, of 16-bit elements whose order
/// is not along k, k x m and k x n.
template <class T, TensorTile tile, MatrixOrder order_a, MatrixOrder order_b,
          SourceFor<typename BlockTiles<T, tile, order_a, order_b>::A> SourceA_ =
              typename BlockTiles<T, tile, order_a, order_b>::SourceA,
          SourceFor<typename BlockTiles<T, tile, order_a, order_b>::B> SourceB_ =
              typename BlockTiles<T, tile, order_a, order_b>::SourceB>
class BlockProduct {
    using Tiles = BlockTiles<T, tile, order_a, order_b>;
    static constexpr std::uint32_t threads = tile.threads();
    // Sums and two steps' fragments of a warp take up most of a thread's 255.
    static constexpr bool saves_registers = tile.m * tile.n > 128 * 128;

public:
    using TileA = typename Tiles::A;
    using TileB = typename Tiles::B;
    using SourceA = SourceA_;
    using SourceB = SourceB_;
    using Accumulators = WarpTiles<ProductOf<T>, tile.warp_m, tile.warp_n>;
    using Accumulator = typename Accumulators::Accumulator;

    /// Rows `row` to `row + tile.m - 1` of A by as many columns of B from `column` on, all of k; neither matrix is
    /// empty. By all threads of the block, tile.threads(). A and B are as they are stored: k x m and n x k by columns.
    /// A block that continues with another tile, in a loop, meets at a sync_block() before that.
    BlockProduct(const In<T, 2>& A, const In<T, 2>& B, const Word& row, const Word& column, const ProductAccess& access,
                 const std::optional<PartOfK>& part = {}, const Where& where = Where::current())
        : row_(word(row)), column_(word(column)) {
        require_block();
        const SourceA from_a(A, row_, {Tiles::transposes_a ? 0 : access.a, Tiles::transposes_a, saves_registers},
                             where);
        const SourceB from_b(B, column_, {Tiles::transposes_b ? 0 : access.b, Tiles::transposes_b, saves_registers},
                             where);
        multiply(from_a, from_b, part);
    }
    /// The same of any sources: those of A of rows `row` and on, those of B of columns `column` and on.
    BlockProduct(const SourceA& from_a, const SourceB& from_b, const Word& row, const Word& column,
                 const std::optional<PartOfK>& part = {})
        : row_(word(row)), column_(word(column)) {
        require_block();
        multiply(from_a, from_b, part);
    }

    /// Calls f(i, j, values) for accumulators (i, j) to (i, j + count - 1), `count` lanes, of which each thread has
    /// some; count is 4 or 8. Accumulators beyond the matrices are passed, too.
    template <std::uint32_t count>
    void each(auto&& f) const {
        constexpr std::uint32_t scratch = row_scratch<Accumulators>;
        static_assert(threads / 32 * scratch * sizeof(Accumulator) <= tile.stages * TileA::stage_bytes,
                      "BlockProduct: 16 rows of each warp's accumulators have room where A was");
        each_row<count>(accumulators_, a_.bytes().template as<Accumulator>().slice(warp_id() * scratch),
                        [&](const auto& i, const auto& j, const auto& values) {
                            f(value(row_ + warp_row_ + i), value(column_ + warp_column_ + j), values);
                        });
    }

private:
    static void require_block() {
        require_linear_blocks();
        require_threads(threads);
    }
    void multiply(const SourceA& from_a, const SourceB& from_b, const std::optional<PartOfK>& part) {
        const LeftOperand<ProductOf<T>, TileA, Tiles::major_a> left(a_, warp_row_);
        const RightOperand<ProductOf<T>, TileB, Tiles::major_b> right(b_, warp_column_);
        typename Accumulators::Step operands[2];
        constexpr std::uint32_t steps = tile.k_bytes / 32;
        pipeline_in_steps<tile.stages, steps>(
            part ? part->count : Leaf<std::uint32_t>(from_a.count()),
            [&](const auto& stage, const auto& slice, std::uint32_t of_slice) {
                const auto number = part ? value(part->first + slice) : slice;
                load_part(from_a, a_[stage], number, {of_slice, steps - 1});
                load_part(from_b, b_[stage], number, {of_slice, steps - 1});
            },
            [&](const auto& stage) { Accumulators::step_of(left, right, a_[stage], b_[stage], 0).load(operands[0]); },
            [&](std::uint32_t step, const auto& stage, std::uint32_t next) {
                accumulators_.accumulate(operands[step % 2],
                                         Accumulators::step_of(left, right, a_[stage], b_[stage], next),
                                         operands[next % 2]);
            });
    }

    static constexpr std::uint32_t across = tile.n / tile.warp_n;
    Leaf<std::uint32_t> row_, column_;
    Leaf<std::uint32_t> warp_row_ = value(warp_id() / across * tile.warp_m);
    Leaf<std::uint32_t> warp_column_ = value(warp_id() % across * tile.warp_n);
    TileA a_;
    TileB b_;
    Accumulators accumulators_{Accumulator{}};
};

}  // namespace ikat::stdlib
