// SPDX-License-Identifier: Apache-2.0
// A warp's part of a product of tiles, on tensor cores: its accumulators, in registers, and where its operands are in
// shared memory.
//
//     using M = Mma<16, 8, 16, bfloat16, float>;
//     SharedTile<bfloat16, 3, 128, 64> a, b;                        A: 128 x 64 by rows; B: 64 x 128, 128 columns of 64
//     WarpTiles<M, 64, 32> accumulators(0.0f);                      64 x 32 of C, sixteen fragments
//     const LeftOperand<M, decltype(a), Major::K> left(a, row);     from row `row` of A
//     const RightOperand<M, decltype(b), Major::K> right(b, column);
//     accumulators.accumulate(left, right, a[stage], b[stage]);     accumulators += A * B, over all 64 of k
#pragma once
#include "dsl/threads/mma.hpp"
#include "stdlib/tile/shared_tile.hpp"

namespace ikat::stdlib {

/// Which dimension of an operand is contiguous: k, that of the sum, or its own, m of A and n of B.
enum class Major : std::uint8_t { K, MN };

namespace detail {

/// What A and B have in common. A step along k is 32 bytes of a row, or as many rows of the transpose.
template <class F, class Tile, Major major>
class SharedOperand {
protected:
    using T = typename Tile::element_type;
    using Register = typename F::element_type;
    static_assert(major == Major::K || sizeof(T) == 2, "only 16-bit elements are transposed on the way to registers");
    static constexpr std::uint32_t k_of_step = 32 / sizeof(T);

    SharedOperand(const Tile& tile, const Word& row, const Word& piece, const Where& where)
        : pieces_(tile, row, piece) {
        tile.check_matrices(where);
    }
    /// N matrices: `tiles` of 16 rows or columns of the operand further, `step` steps along k.
    template <int N>
    auto matrices(const TileStage<Tile>& stage, std::uint32_t tiles, std::uint32_t step) const {
        constexpr bool transposed = major == Major::MN;
        const auto place =
            transposed ? pieces_.at(stage, k_of_step * step, 2 * tiles) : pieces_.at(stage, 16 * tiles, 2 * step);
        if constexpr (transposed)
            return load_matrix_transposed<N>(place);
        else
            return load_matrix<N>(place);
    }

private:
    Pieces<Tile> pieces_;
};

}  // namespace detail

/// Where a warp's fragments of A are: rows `first` and on of m x k tiles, or, Major::MN, columns of k x m tiles.
template <class M, class Tile, Major major>
class LeftOperand : detail::SharedOperand<typename M::A, Tile, major> {
    using Base = detail::SharedOperand<typename M::A, Tile, major>;

public:
    static constexpr std::uint32_t k = major == Major::K ? Tile::columns : Tile::rows;
    LeftOperand(const Tile& tile, const Word& first, const Where& where = Where::current())
        : Base(tile,
               major == Major::K ? value(word(first) + lane_id() % 16u) : value(lane_id() / 16u * 8u + lane_id() % 8u),
               major == Major::K
                   ? value(lane_id() / 16u)
                   : value(word(first) / (16 / sizeof(typename Tile::element_type)) + lane_id() / 8u % 2u),
               where) {}

    /// The fragment `tile` * 16 rows further, `step` steps along k.
    typename M::A fragment(const TileStage<Tile>& stage, std::uint32_t tile, std::uint32_t step) const {
        const auto v = this->template matrices<4>(stage, tile, step);
        typename M::A out;
        for (int r = 0; r < 4; ++r) out[r] = bit_cast<typename Base::Register>(v.lane(std::size_t(r)));
        return out;
    }
    /// The fragments of a stage, for accumulate(); both must outlive them.
    auto of(const TileStage<Tile>& stage) const { return OfStage{*this, stage}; }

private:
    struct OfStage {
        const LeftOperand& left;
        const TileStage<Tile>& stage;
        static constexpr std::uint32_t k = LeftOperand::k;
        auto fragment(std::uint32_t tile, std::uint32_t step) const { return left.fragment(stage, tile, step); }
    };
};

/// Where a warp's fragments of B are: rows `first` and on of n x k tiles, or, Major::MN, columns of k x n tiles.
template <class M, class Tile, Major major>
class RightOperand : detail::SharedOperand<typename M::B, Tile, major> {
    using Base = detail::SharedOperand<typename M::B, Tile, major>;

public:
    static constexpr std::uint32_t k = major == Major::K ? Tile::columns : Tile::rows;
    RightOperand(const Tile& tile, const Word& first, const Where& where = Where::current())
        : Base(tile,
               major == Major::K ? value(word(first) + lane_id() / 16u * 8u + lane_id() % 8u) : value(lane_id() % 16u),
               major == Major::K ? value(lane_id() / 8u % 2u)
                                 : value(word(first) / (16 / sizeof(typename Tile::element_type)) + lane_id() / 16u),
               where) {}

    /// `count` fragments of 8 columns of B each, 1 or 2, the first one 16 * `pair` columns further. A fragment's
    /// registers come from one instruction and follow each other, as mma wants them: no moves.
    void fragments(const TileStage<Tile>& stage, std::uint32_t pair, std::uint32_t step, typename M::B* out,
                   std::uint32_t count) const {
        const auto take = [&](const auto& v) {
            for (std::uint32_t r = 0; r < 2 * count; ++r)
                out[r / 2][r % 2] = bit_cast<typename Base::Register>(v.lane(std::size_t(r)));
        };
        if (count == 2)
            take(this->template matrices<4>(stage, pair, step));
        else
            take(this->template matrices<2>(stage, pair, step));
    }
};

/// m x n of C by one warp.
template <class M, std::uint32_t m_, std::uint32_t n_>
class WarpTiles {
    static_assert(M::m == 16 && M::n == 8, "WarpTiles: of products of 16 x 8");
    static_assert(m_ % 16 == 0 && n_ % 8 == 0, "WarpTiles: 16 rows and 8 columns, or multiples");

public:
    using product = M;
    static constexpr std::uint32_t m = m_, n = n_, rows = m / 16, columns = n / 8;
    using Accumulator = typename M::C::element_type;
    explicit WarpTiles(Accumulator start, const Where& where = Where::current()) {
        for (auto& fragment : accumulators_) fragment = typename M::C::Incoming(start, where);
    }

    /// The operands of one step along k.
    struct Step {
        typename M::A rows_of_a[rows];
        typename M::B columns_of_b[columns];
    };
    /// Where the operands of a step are: step number `step` of a stage of each.
    template <class Left, class TileA, class Right, class TileB>
    struct StepOf {
        const Left& left;
        const Right& right;
        const TileStage<TileA>& a;
        const TileStage<TileB>& b;
        std::uint32_t step;
        void load_columns(Step& to) const {
            for (std::uint32_t j = 0; j < columns; j += 2)
                right.fragments(b, j / 2, step, to.columns_of_b + j, columns - j > 1 ? 2 : 1);
        }
        void load_rows(Step& to, std::uint32_t i) const { to.rows_of_a[i] = left.fragment(a, i, step); }
        void load(Step& to) const {
            load_columns(to);
            for (std::uint32_t i = 0; i < rows; ++i) load_rows(to, i);
        }
    };
    template <class Left, class TileA, class Right, class TileB>
    static auto step_of(const Left& left, const Right& right, const TileStage<TileA>& a, const TileStage<TileB>& b,
                        std::uint32_t step) {
        return StepOf<Left, TileA, Right, TileB>{left, right, a, b, step};
    }
    /// accumulators += A * B, of a step along k. `next` is loaded meanwhile, to `to`: rows of A as soon as those of
    /// this step, in whose place they are, are not needed any more.
    void accumulate(Step& step, const auto& next, Step& to) {
        next.load_columns(to);
        for (std::uint32_t i = 0; i < rows; ++i) {
            for (std::uint32_t j = 0; j < columns; ++j)
                (*this)(i, j) = mma(step.rows_of_a[i], step.columns_of_b[j], (*this)(i, j));
            next.load_rows(to, i);
        }
    }

    /// accumulators += A * B for a stage of each, over all of its k.
    template <class A, class TileA, Major majorA, class B, class TileB, Major majorB>
    void accumulate(const LeftOperand<A, TileA, majorA>& left, const RightOperand<B, TileB, majorB>& right,
                    const TileStage<TileA>& a, const TileStage<TileB>& b) {
        using Left = LeftOperand<A, TileA, majorA>;
        static_assert(Left::k == RightOperand<B, TileB, majorB>::k, "accumulate: both tiles have the same k");
        static_assert(Left::k % M::k == 0, "accumulate: k of a tile is a multiple of the product's");
        for (std::uint32_t step = 0; step < Left::k / M::k; ++step) {
            typename M::B columns_of_b[columns];
            for (std::uint32_t j = 0; j < columns; j += 2)
                right.fragments(b, j / 2, step, columns_of_b + j, columns - j > 1 ? 2 : 1);
            for (std::uint32_t i = 0; i < rows; ++i) {
                const auto rows_of_a = left.fragment(a, i, step);
                for (std::uint32_t j = 0; j < columns; ++j)
                    (*this)(i, j) = mma(rows_of_a, columns_of_b[j], (*this)(i, j));
            }
        }
    }

    /// The same with fewer registers: each fragment of B is used as soon as it is there. `left` is a RegisterOperand,
    /// or LeftOperand::of(stage).
    template <class Left, class B, class TileB, Major majorB>
    requires requires(const Left& left) { left.fragment(0u, 0u); }
    void accumulate(const Left& left, const RightOperand<B, TileB, majorB>& right, const TileStage<TileB>& b) {
        static_assert(Left::k == RightOperand<B, TileB, majorB>::k, "accumulate: both operands have the same k");
        static_assert(Left::k % M::k == 0, "accumulate: k of a tile is a multiple of the product's");
        for (std::uint32_t step = 0; step < Left::k / M::k; ++step) {
            typename M::A rows_of_a[rows];
            for (std::uint32_t i = 0; i < rows; ++i) rows_of_a[i] = left.fragment(i, step);
            for (std::uint32_t j = 0; j < columns; j += 2) {
                typename M::B pair[2];
                const std::uint32_t count = columns - j > 1 ? 2 : 1;
                right.fragments(b, j / 2, step, pair, count);
                for (std::uint32_t i = 0; i < rows; ++i)
                    for (std::uint32_t c = 0; c < count; ++c)
                        (*this)(i, j + c) = mma(rows_of_a[i], pair[c], (*this)(i, j + c));
            }
        }
    }

    /// The fragment of 16 rows and 8 columns.
    auto& operator()(std::uint32_t i, std::uint32_t j) { return accumulators_[i * columns + j]; }
    const auto& operator()(std::uint32_t i, std::uint32_t j) const { return accumulators_[i * columns + j]; }

private:
    typename M::C accumulators_[rows * columns];
};

}  // namespace ikat::stdlib
