// SPDX-License-Identifier: Apache-2.0
// Products of tiles of f32 without tensor cores, by fused multiply-adds: what WarpTiles, the operands and
// RegisterOperand are of Mma, they are of FmaProduct, so that a kernel reads the same for all types.
//
//     using M = FmaProduct;
//     WarpTiles<M, 16, 64> scores(0.0f);                          a lane has two rows and sixteen columns of them
//     scores.accumulate(left, right, q[0], k[0]);                 rows of Q by rows of K, Major::K
//     const RegisterOperand<M, 16, 64> weights(scores);           not rounded
//     accumulators.accumulate(weights, right_v, v[0]);            by columns of V, Major::MN
//
// A lane's accumulators are where Mma<16, 8, 16, ...> has them: rows lane / 4 and 8 further, columns 2 (lane % 4) and
// the next. Loops over k are loops of the device.
#pragma once
#include "dsl/threads/control.hpp"
#include "dsl/threads/warp.hpp"
#include "stdlib/tile/register_operand.hpp"

namespace ikat::stdlib {

/// Stands for an Mma: 16 x 8 accumulators, four elements of k at once.
struct FmaProduct {
    static constexpr int m = 16, n = 8, k = 4;
    struct A {};
    struct B {};
    struct C {
        using element_type = float;
    };
};

namespace detail {

/// Four elements of a row of a stage, from a place in bytes and a host number of bytes further.
template <int N, class Tile>
auto lanes_at(const TileStage<Tile>& stage, const Leaf<std::uint32_t>& place, std::uint32_t further) {
    static_assert(std::is_same_v<typename Tile::element_type, float>, "FmaProduct: of tiles of f32");
    const auto from = stage.tile().bytes().slice(value(stage.first() + place)).template as<float>();
    return value(from.template vec<N>(further / (4 * N)));
}

}  // namespace detail

/// Where a warp's rows of A are: rows `first` and on of m x k tiles. `first` is a multiple of eight.
template <class Tile>
class LeftOperand<FmaProduct, Tile, Major::K> {
public:
    static constexpr std::uint32_t k = Tile::columns;
    LeftOperand(const Tile&, const Word& first) : row_(value(word(first) + lane_id() / 4u)) {}

    /// Elements 4 * piece and on of the lane's row, and a multiple of eight rows further.
    Leaf<std::uint32_t> place(const Leaf<std::uint32_t>& piece) const { return Tile::piece_place(row_, piece); }
    auto lanes(const TileStage<Tile>& stage, const Leaf<std::uint32_t>& place, std::uint32_t rows_further) const {
        return detail::lanes_at<4>(stage, place, rows_further * Tile::panel_row);
    }
    /// The rows of a stage, for accumulate(); both must outlive them.
    auto of(const TileStage<Tile>& stage) const { return OfStage{*this, stage}; }

private:
    struct OfStage {
        const LeftOperand& left;
        const TileStage<Tile>& stage;
        static constexpr std::uint32_t k = LeftOperand::k;
        Leaf<std::uint32_t> place(const Leaf<std::uint32_t>& piece) const { return left.place(piece); }
        auto lanes(const Leaf<std::uint32_t>& at, std::uint32_t rows_further) const {
            return left.lanes(stage, at, rows_further);
        }
    };
    Leaf<std::uint32_t> row_;
};

/// Where a warp's columns of B are: rows `first` and on of n x k tiles. `first` is a multiple of eight.
template <class Tile>
class RightOperand<FmaProduct, Tile, Major::K> {
public:
    static constexpr std::uint32_t k = Tile::columns;
    RightOperand(const Tile&, const Word& first) : row_(value(word(first) + lane_id() % 4u * 2u)) {}

    /// Elements 4 * piece and on of the lane's column `c`, 0 or 1, and a multiple of eight columns further.
    Leaf<std::uint32_t> place(const Leaf<std::uint32_t>& piece, std::uint32_t c) const {
        return Tile::piece_place(value(row_ + c), piece);
    }
    auto lanes(const TileStage<Tile>& stage, const Leaf<std::uint32_t>& place, std::uint32_t columns_further) const {
        return detail::lanes_at<4>(stage, place, columns_further * Tile::panel_row);
    }

private:
    Leaf<std::uint32_t> row_;
};

/// ... or columns of k x n tiles, from the first on.
template <class Tile>
class RightOperand<FmaProduct, Tile, Major::MN> {
    /// This many fragments of eight columns further is a panel further.
    static constexpr std::uint32_t distinct = Tile::swizzle ? Tile::pieces_of_panel / 2 : 1;

public:
    static constexpr std::uint32_t k = Tile::rows;
    RightOperand(const Tile&, const Word& first) {
        static_cast<void>(first);  // 0
    }

    /// The lane's columns of the first fragments, in row `row` of the tile.
    std::vector<Leaf<std::uint32_t>> places(const Leaf<std::uint32_t>& row) const {
        std::vector<Leaf<std::uint32_t>> out;
        const auto half = value(lane_id() % 4u / 2u), rest = value(lane_id() % 2u * 8u);
        for (std::uint32_t j = 0; j < distinct; ++j)
            out.push_back(value(Tile::piece_place(row, value(half + 2 * j)) + rest));
        return out;
    }
    /// Two elements of fragment j, a multiple of eight rows further.
    auto lanes(const TileStage<Tile>& stage, const std::vector<Leaf<std::uint32_t>>& places, std::uint32_t j,
               std::uint32_t rows_further) const {
        const std::uint32_t of_fragments = Tile::swizzle ? j / distinct * Tile::panel_bytes : j * 32;
        return detail::lanes_at<2>(stage, places[j % distinct], of_fragments + rows_further * Tile::panel_row);
    }
};

/// Accumulators as A of the next product; they stay as they are.
template <std::uint32_t m_, std::uint32_t k_>
class RegisterOperand<FmaProduct, m_, k_> {
    static_assert(m_ % 16 == 0 && k_ % 8 == 0, "RegisterOperand: 16 rows and 8 columns of accumulators, or multiples");

public:
    static constexpr std::uint32_t m = m_, k = k_;
    explicit RegisterOperand(const WarpTiles<FmaProduct, m, k>& accumulators) {
        for (std::uint32_t i = 0; i < m / 16; ++i)
            for (std::uint32_t j = 0; j < k / 8; ++j)
                for (std::uint32_t e = 0; e < 4; ++e) numbers_.push_back(value(accumulators(i, j)[e]));
    }
    /// Of row `half` * 8 + lane / 4 of 16 rows, in column 8 j + 2 quad + c, in all four lanes of the row.
    auto operator()(std::uint32_t i, std::uint32_t j, std::uint32_t half, std::uint32_t c,
                    const Leaf<std::uint32_t>& quad) const {
        return value(shuffle_idx(numbers_[(i * (k / 8) + j) * 4 + 2 * half + c], value(lane_id() / 4u * 4u + quad)));
    }

private:
    std::vector<Leaf<float>> numbers_;
};

template <std::uint32_t m_, std::uint32_t n_>
class WarpTiles<FmaProduct, m_, n_> {
    static_assert(m_ % 16 == 0 && n_ % 8 == 0, "WarpTiles: 16 rows and 8 columns, or multiples");

public:
    using product = FmaProduct;
    using Accumulator = float;
    static constexpr std::uint32_t m = m_, n = n_, rows = m / 16, columns = n / 8;
    explicit WarpTiles(float start, const Where& where = Where::current()) {
        for (auto& fragment : accumulators_) fragment = typename Regs<f32, 4>::Incoming(start, where);
    }

    /// accumulators += A * B over all of k; `left` is LeftOperand::of(stage).
    template <class Left, class TileB>
    void accumulate(const Left& left, const RightOperand<FmaProduct, TileB, Major::K>& right,
                    const TileStage<TileB>& b) {
        static_assert(Left::k == TileB::columns, "accumulate: both operands have the same k");
        for (auto piece : range(0u, Left::k / 4)) {
            const auto at = value(piece), row = left.place(at);
            const Leaf<std::uint32_t> column[] = {right.place(at, 0), right.place(at, 1)};
            std::vector<decltype(left.lanes(row, 0))> of_a;
            for (std::uint32_t r = 0; r < 2 * rows; ++r) of_a.push_back(left.lanes(row, 8 * r));
            for (std::uint32_t j = 0; j < columns; ++j)
                for (std::uint32_t c = 0; c < 2; ++c) {
                    const auto of_b = right.lanes(b, column[c], 8 * j);
                    for (std::uint32_t r = 0; r < 2 * rows; ++r) {
                        auto& sum = (*this)(r / 2, j)[r % 2 * 2 + c];
                        for (std::size_t e = 0; e < 4; ++e) sum = fma(of_a[r].lane(e), of_b.lane(e), sum);
                    }
                }
        }
    }
    /// The same of tiles that are both in shared memory.
    template <class TileA, class TileB>
    void accumulate(const LeftOperand<FmaProduct, TileA, Major::K>& left,
                    const RightOperand<FmaProduct, TileB, Major::K>& right, const TileStage<TileA>& a,
                    const TileStage<TileB>& b) {
        accumulate(left.of(a), right, b);
    }
    /// By columns of B, of accumulators that have become an operand.
    template <std::uint32_t k, class TileB>
    void accumulate(const RegisterOperand<FmaProduct, m_, k>& left,
                    const RightOperand<FmaProduct, TileB, Major::MN>& right, const TileStage<TileB>& b) {
        static_assert(k == TileB::rows, "accumulate: both operands have the same k");
        for (auto number : range(0u, 4u))
            for (std::uint32_t c = 0; c < 2; ++c) {
                const auto quad = value(number);
                const auto places = right.places(value(quad * 2u + c));
                for (std::uint32_t t = 0; t < k / 8; ++t) {
                    std::vector<Leaf<float>> of_a;
                    for (std::uint32_t r = 0; r < 2 * rows; ++r) of_a.push_back(left(r / 2, t, r % 2, c, quad));
                    for (std::uint32_t j = 0; j < columns; ++j) {
                        const auto of_b = right.lanes(b, places, j, 8 * t);
                        for (std::uint32_t r = 0; r < 2 * rows; ++r)
                            for (std::uint32_t e = 0; e < 2; ++e) {
                                auto& sum = (*this)(r / 2, j)[r % 2 * 2 + e];
                                sum = fma(of_a[r], of_b.lane(e), sum);
                            }
                    }
                }
            }
    }

    /// The numbers of 16 rows and 8 columns: 2 h + c is in row lane / 4 + 8 h, column lane % 4 * 2 + c.
    auto& operator()(std::uint32_t i, std::uint32_t j) { return accumulators_[i * columns + j]; }
    const auto& operator()(std::uint32_t i, std::uint32_t j) const { return accumulators_[i * columns + j]; }

private:
    Regs<f32, 4> accumulators_[rows * columns];
};

/// put_rows() of accumulators that are elements.
template <std::uint32_t m, std::uint32_t n, class Tile>
void put_rows(const WarpTiles<FmaProduct, m, n>& accumulators, const TileStage<Tile>& stage, const Word& first,
              const Word& of_lane = lane_id()) {
    static_assert(std::is_same_v<typename Tile::element_type, float> && n == Tile::columns,
                  "put_rows: to a tile of f32, as wide as the accumulators");
    const auto lane = word(of_lane), row = value(word(first) + lane / 4u);
    const auto elements = stage.tile().bytes().template as<float>();
    for (std::uint32_t i = 0; i < m / 16; ++i)
        for (std::uint32_t half = 0; half < 2; ++half)
            for (std::uint32_t j = 0; j < n / 8; ++j) {
                const auto down = value(row + (16 * i + 8 * half)), across = value(lane % 4u * 2u + 8 * j);
                const auto place = Tile::place(down, across);
                const auto& fragment = accumulators(i, j);
                elements.template vec<2>((stage.first() + place) / 8u) =
                    Vec<float, 2>(fragment[2 * half], fragment[2 * half + 1]);
            }
    sync_warp();
}

/// The product of elements of T with accumulators in f32.
template <class T>
using ProductInF32 = std::conditional_t<std::is_same_v<T, float>, FmaProduct, Mma<16, 8, 16, T, float>>;

}  // namespace ikat::stdlib
