// SPDX-License-Identifier: Apache-2.0
// The rows of a block of incremental_attention() by tensor cores, one warp's part.
#pragma once
#include <optional>
#include <vector>

#include "stdlib/attention/incremental/sight.hpp"
#include "stdlib/tile/register_operand.hpp"

namespace ikat::stdlib {

/// 16 rows of d elements of 16 bits, and chunks of 16 keys in stages of `Chunks`.
template <class Chunks>
class DecodeByMma {
    using T = typename Chunks::element_type;
    using U32 = Leaf<std::uint32_t>;
    static constexpr std::uint32_t d = Chunks::columns, rows = 16, keys = Chunks::rows;
    static constexpr bool keeps_queries = d <= 128;
    using M = Mma<16, 8, 16, T, float>;
    using Scores = WarpTiles<M, rows, keys>;

public:
    using Queries = SharedTile<T, 1, rows, d>;
    DecodeByMma(const DecodeKernel&, const DecodeSight& sight, const Queries& queries, const Chunks& chunks)
        : sight_(sight), queries_(queries[0]), left_(queries, 0), right_k_(chunks, 0), right_v_(chunks, 0) {
        for (std::uint32_t r = 0; r < Softmax::rows; ++r)
            sight.with_sink(row_of_lane(r), value(pred(true)),
                            [&](const auto& exponent) { softmax_.begin_with(r, exponent); });
    }

    /// Whether some row of the warp may see a key of the chunk from `first` on, as far as sees() tells.
    Leaf<bool> may_see(const U32& first) const { return sight_.may_see(own_, first, keys); }
    /// The queries are there.
    void begin() {
        if constexpr (keeps_queries) kept_.emplace(left_, queries_);
    }
    /// A chunk, from key `first` on.
    void take(const TileStage<Chunks>& k, const TileStage<Chunks>& v, const U32& first) {
        Scores scores(0.0f);
        if constexpr (keeps_queries)
            scores.accumulate(*kept_, right_k_, k);
        else
            scores.accumulate(left_.of(queries_), right_k_, k);
        const auto key = value(bit_cast<i32>(first + lane_id() % 4u * 2u));  // the lane's first
        for (std::uint32_t r = 0; r < Softmax::rows; ++r) {
            const auto seen = sight_.of_row(row_of_lane(r), key, own_.empty() ? nullptr : &own_[r]);
            each_of_row(scores, r, [&](auto& score, std::uint32_t column) { sight_.finish(score, seen, column); });
        }
        softmax_.take(scores, sight_.factor(), sums_);
        const RegisterOperand<M, rows, keys> weights(scores);
        sums_.accumulate(weights, right_v_, v);
    }
    /// Rows of sums, `pitch` apart, to a warp's own; of each row its offset and total by store(row, offset, total).
    void put(const SharedNumbers& to, std::uint32_t pitch, auto&& store) {
        softmax_.add_up();
        const auto lane = value(lane_id());
        for (std::uint32_t half = 0; half < 2; ++half) {
            const auto row = value(lane / 4u + 8 * half), first = value(row * pitch + lane % 4u * 2u);
            for (std::uint32_t j = 0; j < d / 8; ++j) {
                const auto& fragment = sums_(0, j);
                to.template vec<2>((first + 8 * j) / 2u) = Vec<float, 2>(fragment[2 * half], fragment[2 * half + 1]);
            }
            if_(lane % 4u == 0u, [&] { store(row, softmax_.offset(half), softmax_.total(half)); });
        }
    }

private:
    using Softmax = OnlineSoftmax<rows>;
    static U32 row_of_lane(std::uint32_t r) { return value(lane_id() / 4u + 8 * r); }

    const DecodeSight& sight_;
    std::vector<DecodeSight::Own> own_ = sight_.own_of({row_of_lane(0), row_of_lane(1)});
    TileStage<Queries> queries_;
    LeftOperand<M, Queries, Major::K> left_;
    RightOperand<M, Chunks, Major::K> right_k_;
    RightOperand<M, Chunks, Major::MN> right_v_;
    std::optional<RegisterOperand<M, rows, d>> kept_;
    Softmax softmax_;
    WarpTiles<M, rows, d> sums_{0.0f};
};

}  // namespace ikat::stdlib
