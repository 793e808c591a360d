// SPDX-License-Identifier: Apache-2.0
// What all kernels of attention_backward() do with a tile of products S of queries and keys, and of products dP of dO
// and V:
//
//     P = exp(score - log_sum), score = what the forward pass makes of S       weights
//     dS = P * (dP - sum of dO * O) * the derivative of the score by S
//
// Rows of a tile are queries and columns keys or, of blocks that own keys, the other way round: then P and dS are, in
// registers, what the sums of keys and values multiply from the left.
#pragma once
#include <optional>
#include <vector>

#include "stdlib/attention/scores.hpp"
#include "stdlib/attention_backward/kernels.hpp"

namespace ikat::stdlib::gradient {

using U32 = Leaf<std::uint32_t>;
using I32 = Leaf<std::int32_t>;

/// Of a query: minus its log_sum, to base 2, and minus its sum of dO * O.
struct QuerySums {
    Leaf<float> log_sum, product;
};

/// The sums of the queries of a head, from its first one on.
template <class T>
auto sums_of_head(const auto& sums, const GradientKernel& is, const Scoring<T>& with, const QueriesPlace& at) {
    constexpr std::uint32_t rows = GradientKernel::rows;
    const auto first = [&] {
        if (!is.has_offsets) return value((at.sequence * with.heads + at.head) * tiles_of(with.queries, rows));
        return value(at.head * (with.queries / rows + with.sequences) + *at.query_row / rows + *at.number);
    };
    return sums.slice(value(mul_wide(first(), GradientKernel::numbers_of_two / 2 * rows)));
}
/// Where those of a query are.
inline U32 place_of_sums(const U32& query) { return value(query / 2u * GradientKernel::numbers_of_two + query % 2u); }
/// Of a query; it is one of those that a block of Rows has.
inline QuerySums sums_of_query(const auto& of_head, const U32& query) {
    const auto at = place_of_sums(query);
    return {value(of_head[at + 4u]), value(of_head[at])};
}

/// Of a stage of tiles of `tile` queries, the sums of column 8 j + c of the lane's rows r, as number
/// (2 j + r % 2) * 2 + c: a row has the registers that a product begins with.
inline std::vector<QuerySums> sums_of_columns(const auto& sums, const U32& stage, std::uint32_t tile) {
    constexpr std::uint32_t of_two = GradientKernel::numbers_of_two;
    std::vector<QuerySums> out;
    const auto first = value(stage * (tile / 2) + lane_id() % 4u);
    for (std::uint32_t j = 0; j < tile / 8; ++j) {
        const auto two = value((first + 4 * j) * (of_two / 4));
        const auto products = value(sums.flat().template vec<4>(two));
        const auto log_sums = value(sums.flat().template vec<2>(two * 2u + 2u));
        for (std::uint32_t n = 0; n < 4; ++n) out.push_back({log_sums.lane(n % 2), products.lane(n)});
    }
    return out;
}

/// Where a tile of scores is.
struct GradientPlace {
    U32 first_query, first_key;  // of the tile
    U32 lane_row, lane_column;   // the lane's first ones, among all queries and keys
};

/// One tile after the other of a head. `Tiles` are WarpTiles of products, `are_keys`: their rows.
template <class T, class Tiles, bool are_keys>
class ScoreGradients {
    static constexpr std::uint32_t rows = LaneRowsOf<Tiles>::rows, columns = LaneRowsOf<Tiles>::columns;

public:
    /// `tile` is the size of tiles of all warps together.
    ScoreGradients(const GradientKernel& is, const Scoring<T>& with, const QueriesPlace& at, std::uint32_t queries,
                   std::uint32_t keys)
        : is_(is), with_(with), at_(at), own_(at.own(with)), queries_(queries), keys_(keys) {
        if (is.has_cap) inverse_cap_.emplace(value(1.0f / with.cap));
    }

    const QueriesPlace& at() const { return at_; }
    const HeadScores& own() const { return *own_; }
    /// Whether scores are more than products times a number and a bias.
    bool has_slope() const { return is_.has_cap || is_.own.has_scores(); }
    bool has_sight() const { return is_.own.has_sight(); }
    ScoresPlace place(const GradientPlace& tile) const { return {tile.first_query, tile.first_key, queries_, keys_}; }

    /// Whether some query of a tile may see a key of it.
    auto is_possible(const GradientPlace& tile) const {
        const auto first_query = bit_cast<i32>(tile.first_query), first_key = bit_cast<i32>(tile.first_key);
        pred is_possible = tile.first_key < at_.keys;
        if (is_.has_before)
            is_possible = is_possible & (first_key + std::int32_t(keys_ - 1) >= first_query + at_.first);
        if (is_.has_after)
            is_possible = is_possible & (first_key <= first_query + at_.last + std::int32_t(queries_ - 1));
        if (has_sight()) is_possible = is_possible & sight_of(*own_, at_, place(tile)).possibly;
        return value(is_possible);
    }

    /// Products dP begin with minus the sums of dO * O; sums(r, j, c) are those of an element's query: of the lane's
    /// row r, of columns 8 j and on, number c.
    void begin(Tiles& slopes, auto&& sums) const {
        each(slopes,
             [&](std::uint32_t r, std::uint32_t j, std::uint32_t c, auto& slope) { slope = sums(r, j, c).product; });
    }
    /// The same of products that began with 0.
    void add(Tiles& slopes, auto&& sums) const {
        each(slopes, [&](std::uint32_t r, std::uint32_t j, std::uint32_t c, auto& slope) {
            slope = slope + sums(r, j, c).product;
        });
    }
    /// Scores become P, and slopes dS; `hides`: some query may not see a key of the tile, or not be there.
    void finish(Tiles& scores, Tiles& slopes, const GradientPlace& tile, auto&& sums, bool hides = true) const {
        each(scores, [&](std::uint32_t r, std::uint32_t j, std::uint32_t c, auto& score) {
            const std::uint32_t column = 8 * j + c;
            const auto of_query = sums(r, j, c);
            if (!has_slope()) {
                score = exp2_or_zero(exponent_of(value(score), tile, r, column, of_query, nullptr));
                return;
            }
            std::optional<Leaf<float>> slope;
            const auto exponent = exponent_of(value(score), tile, r, column, of_query, &slope);
            auto& of_score = LaneRowsOf<Tiles>::number(slopes, r, j, c);
            score = exp2_or_zero(exponent);
            if (slope) of_score = of_score * *slope;
            if (!hides) return;
            const auto sees = is_seen(tile, r, column);
            score = select(sees, score, 0.0f);
            if (slope) of_score = select(sees, of_score, 0.0f);
        });
        if (hides && !has_slope()) hide(scores, tile);
        each(scores, [&](std::uint32_t r, std::uint32_t j, std::uint32_t c, auto& weight) {
            auto& slope = LaneRowsOf<Tiles>::number(slopes, r, j, c);
            slope = slope * weight;
        });
    }

private:
    static void each(Tiles& tiles, auto&& f) {
        for (std::uint32_t r = 0; r < rows; ++r)
            for (std::uint32_t j = 0; j < columns; ++j)
                for (std::uint32_t c = 0; c < 2; ++c) f(r, j, c, LaneRowsOf<Tiles>::number(tiles, r, j, c));
    }

    static U32 row_of(const GradientPlace& tile, std::uint32_t r) { return value(tile.lane_row + 8 * r); }
    static U32 column_of(const GradientPlace& tile, std::uint32_t c) { return value(tile.lane_column + c); }
    static U32 query_of(const GradientPlace& tile, std::uint32_t r, std::uint32_t column) {
        return are_keys ? column_of(tile, column) : row_of(tile, r);
    }
    static U32 key_of(const GradientPlace& tile, std::uint32_t r, std::uint32_t column) {
        return are_keys ? row_of(tile, r) : column_of(tile, column);
    }

    /// log2(P), and the derivative of the score where it has one: the gradient of a bias is that after the cap.
    Leaf<float> exponent_of(const Leaf<float>& product, const GradientPlace& tile, std::uint32_t r,
                            std::uint32_t column, const QuerySums& sums, std::optional<Leaf<float>>* slope) const {
        constexpr float log2e = std::numbers::log2e_v<float>;
        if (!is_.has_cap && !is_.has_bias && !is_.own.has_scores())
            return value(fma(product, with_.factor, sums.log_sum));
        const auto score = [&] {
            if (!is_.has_cap)
                return is_.has_bias ? value(fma(product, with_.factor, bias_of(tile, r, column)))
                                    : value(product * with_.factor);
            const auto capped = is_.has_wide_cap ? wide_cap(product, with_.factor, with_.cap)
                                                 : narrow_cap(product, with_.factor, with_.cap);
            const auto tanh = value(capped * *inverse_cap_);
            if (is_.of != Gradient::Bias) slope->emplace(value(fma(-tanh, tanh, 1.0f)));
            return is_.has_bias ? value(capped + bias_of(tile, r, column)) : capped;
        };
        const auto given = score();
        if (!is_.own.has_scores()) return value(fma(given, log2e, sums.log_sum));
        const auto query = at_.position(query_of(tile, r, column));
        const auto key = value(bit_cast<i32>(key_of(tile, r, column)));
        const auto own = own_->slope(given, query, key);
        slope->emplace(*slope ? value(**slope * own) : own);
        return value(fma(own_->score(given, query, key), log2e, sums.log_sum));
    }
    Leaf<float> bias_of(const GradientPlace& tile, std::uint32_t r, std::uint32_t column) const {
        const auto query = value(min(query_of(tile, r, column), at_.queries - 1u)), key = key_of(tile, r, column);
        // By offsets, of keys there may be more than the bias has columns.
        const auto count = at_.query_row ? value(min(at_.keys, with_.bias->extent(3))) : at_.keys;
        const auto of_head = (*with_.bias)[at_.sequence, at_.head];
        const auto row = of_head[at_.query_row ? value(query + *at_.query_row) : query];
        return value(cast<f32>(row.load_if(key < count, key, T{})));
    }

    /// Whether a query sees a key, and both are there.
    Leaf<bool> is_seen(const GradientPlace& tile, std::uint32_t r, std::uint32_t column) const {
        const auto query = value(bit_cast<i32>(query_of(tile, r, column))),
                   key = value(bit_cast<i32>(key_of(tile, r, column)));
        pred sees = (bit_cast<u32>(key) < at_.keys) & (bit_cast<u32>(query) < at_.queries);
        if (is_.has_before) sees = sees & (key >= query + at_.first);
        if (is_.has_after) sees = sees & (key <= query + at_.last);
        if (has_sight()) sees = sees & own_->sees(at_.position(value(bit_cast<u32>(query))), key);
        return value(sees);
    }
    /// Weights of keys that a query does not see become 0. Queries that are not there have none; of rows that are keys
    /// which are not there, nothing is kept.
    void hide(Tiles& weights, const GradientPlace& tile) const {
        const auto first_query = bit_cast<i32>(tile.first_query), first_key = bit_cast<i32>(tile.first_key);
        pred is_at_edge = false;
        if (!are_keys) is_at_edge = first_key + std::int32_t(keys_) > bit_cast<i32>(at_.keys);
        if (is_.has_before)
            is_at_edge = is_at_edge | (first_key < first_query + at_.first + std::int32_t(queries_ - 1));
        if (is_.has_after) is_at_edge = is_at_edge | (first_key + std::int32_t(keys_ - 1) > first_query + at_.last);
        if (!are_keys || is_.has_before || is_.has_after) if_(is_at_edge, [&] { hide_at_edge(weights, tile); });
        if (has_sight())
            if_(!sight_of(*own_, at_, place(tile)).surely, [&] {
                each(weights, [&](std::uint32_t r, std::uint32_t j, std::uint32_t c, auto& weight) {
                    const auto query = at_.position(query_of(tile, r, 8 * j + c));
                    const auto key = value(bit_cast<i32>(key_of(tile, r, 8 * j + c)));
                    weight = select(own_->sees(query, key), weight, 0.0f);
                });
            });
    }
    void hide_at_edge(Tiles& weights, const GradientPlace& tile) const {
        const auto row = value(bit_cast<i32>(tile.lane_row)), column = value(bit_cast<i32>(tile.lane_column));
        const auto& query = are_keys ? column : row;
        const auto& key = are_keys ? row : column;
        // How much further a key is from its query than those of the lane's first element are: compared with constants.
        const auto from = value(query + at_.first - key), to = value(query + at_.last - key);
        const auto keys = value(bit_cast<i32>(at_.keys) - key);
        each(weights, [&](std::uint32_t r, std::uint32_t j, std::uint32_t c, auto& weight) {
            const std::int32_t down = std::int32_t(8 * r), across = std::int32_t(8 * j + c);
            const std::int32_t further = are_keys ? down - across : across - down;
            pred sees = true;
            if (!are_keys) sees = keys > across;
            if (is_.has_before) sees = sees & (from <= further);
            if (is_.has_after) sees = sees & (to >= further);
            weight = select(sees, weight, 0.0f);
        });
    }

    const GradientKernel& is_;
    const Scoring<T>& with_;
    QueriesPlace at_;
    std::optional<HeadScores> own_;
    std::uint32_t queries_, keys_;
    std::optional<Leaf<float>> inverse_cap_{};
};

}  // namespace ikat::stdlib::gradient
