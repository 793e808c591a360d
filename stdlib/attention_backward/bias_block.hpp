// SPDX-License-Identifier: Apache-2.0
// The gradient of the bias: a block has queries and keys, and adds up dS of all heads and sequences that share the
// bias, one after the other. What it multiplies for that, other blocks multiply again.
#pragma once
#include "stdlib/attention_backward/block.hpp"

namespace ikat::stdlib::gradient {

template <class T, std::uint32_t d>
class BiasBlock {
    static constexpr GradientTile tile = GradientTile::of(Gradient::Bias, d, true);
    static constexpr std::uint32_t queries = tile.owned(), keys = tile.walked, rows = tile.rows;
    using M = ProductInF32<T>;
    using Queries = SharedTile<T, 1, queries, d>;
    using Keys = SharedTile<T, 1, keys, d>;
    using Scores = WarpTiles<M, rows, keys>;
    using Gradients = ScoreGradients<T, Scores, false>;

public:
    BiasBlock(const GradientKernel& is, const Given<T>& given) : is_(is), given_(given), with_(given.with) {}

    void run(const Out<T, 4>& dbias) {
        require_linear_blocks();
        require_threads(tile.threads);
        const auto key_tiles = tiles_of(dbias.extent(3), keys), number = value(block_id().x / key_tiles);
        const auto first_key = value(block_id().x % key_tiles * keys);
        const auto heads = value(dbias.extent(1));
        if (is_.has_offsets) {
            const auto blocks = value(with_.queries / queries + with_.sequences);
            const auto found = sequence_of_block(with_, value(number % blocks), queries);
            return_if(!found.has_queries());
            const auto head = value(number / blocks);
            const auto at = place_in_sequence(with_, found, head);
            add_heads(at, first_key, heads);
            store(dbias, at, first_key);
        } else {
            const auto tiles = tiles_of(with_.queries, queries);
            const auto first_query = value(number % tiles * queries), plane = value(number / tiles);
            const auto head = value(plane % heads), sequence = value(plane / heads);
            const QueriesPlace at{with_.queries, with_.keys, first_query, head, sequence, with_.first, with_.last};
            const auto share = value(dbias.extent(0) == 1u);
            const auto sequences = value(given_.Q.extent(0));
            for (auto other : range(value(select(share, 0u, sequence)), value(select(share, sequences, sequence + 1u))))
                add_heads(at.of_sequence(value(other)), first_key, heads);
            store(dbias, at, first_key);
        }
    }

private:
    /// All heads that share the bias of this one.
    void add_heads(const QueriesPlace& at, const U32& first_key, const U32& heads) {
        const auto share = value(heads == 1u);
        for (auto head : range(value(select(share, 0u, at.head)), value(select(share, with_.heads, at.head + 1u))))
            add(at.of_head(value(head)), first_key);
    }
    void add(const QueriesPlace& at, const U32& first_key) {
        const Gradients gradients(is_, with_, at, queries, keys);
        const auto warp_row = value(warp_id() * rows);
        const auto lane_row = value(at.first_query + warp_row + lane_id() / 4u);
        const GradientPlace place{at.first_query, first_key, lane_row, value(first_key + lane_id() % 4u * 2u)};
        if_(gradients.is_possible(place), [&] {
            load(at, first_key);
            const auto of_head = sums_of_head(given_.sums, is_, with_, at);
            std::vector<QuerySums> of_rows;
            for (std::uint32_t r = 0; r < LaneRowsOf<Scores>::rows; ++r)
                of_rows.push_back(sums_of_query(of_head, value(lane_row + 8 * r)));
            const auto sums = [&](std::uint32_t r, std::uint32_t, std::uint32_t) { return of_rows[r]; };
            const LeftOperand<M, Queries, Major::K> left_q(q_, warp_row), left_o(o_, warp_row);
            const RightOperand<M, Keys, Major::K> right_k(k_, 0), right_v(v_, 0);
            const auto q = q_[0], o = o_[0];
            Scores scores(0.0f), slopes(0.0f);
            scores.accumulate(left_q.of(q), right_k, k_[0]);
            gradients.begin(slopes, sums);
            slopes.accumulate(left_o.of(o), right_v, v_[0]);
            gradients.finish(scores, slopes, place, sums);
            for (std::uint32_t i = 0; i < Scores::rows; ++i)
                for (std::uint32_t j = 0; j < Scores::columns; ++j) total_(i, j) = total_(i, j) + slopes(i, j);
        });
    }
    void load(const QueriesPlace& at, const U32& first_key) const {
        const auto kv_head = value(at.head / with_.group);
        const auto of_queries = [&](const In<T, 4>& x, const Queries& to) {
            TileSource<Queries, tile.threads, Along::Columns>(
                rows_of_head(x, at.sequence, at.head, at.queries, d, at.query_row), at.first_query, {is_.access})
                .load(to[0], 0);
        };
        const auto of_keys = [&](const In<T, 4>& x, const Keys& to) {
            TileSource<Keys, tile.threads, Along::Rows>(rows_of_head(x, at.sequence, kv_head, at.keys, d, at.key_row),
                                                        0, {is_.access})
                .load(to[0], value(first_key / keys));
        };
        sync_block();  // of the head before
        of_queries(given_.Q, q_), of_queries(given_.dO, o_), of_keys(given_.K, k_), of_keys(given_.V, v_);
        copy_commit();
        copy_wait<0>();
        sync_block();
    }
    void store(const Out<T, 4>& dbias, const QueriesPlace& at, const U32& first_key) const {
        const auto of_head = dbias[at.sequence, at.head];
        const auto key = value(first_key + lane_id() % 4u * 2u);
        for (std::uint32_t r = 0; r < LaneRowsOf<Scores>::rows; ++r) {
            const auto query = value(at.first_query + warp_id() * rows + lane_id() / 4u + 8 * r);
            const auto row = of_head[at.query_row ? value(query + *at.query_row) : query];
            each_of_row(total_, r, [&](const auto& v, std::uint32_t column) {
                const auto to = value(key + column);
                row.store_if((query < at.queries) & (to < dbias.extent(3)), to, cast<T>(v));
            });
        }
    }

    const GradientKernel& is_;
    const Given<T>& given_;
    const Scoring<T>& with_;
    Queries q_, o_;
    Keys k_, v_;
    Scores total_{0.0f};
};

}  // namespace ikat::stdlib::gradient
