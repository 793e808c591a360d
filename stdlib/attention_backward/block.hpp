// SPDX-License-Identifier: Apache-2.0
// A block owns queries, Q and dO, or keys, K and V, in shared memory, and goes through tiles of the others. Of these
// there are two stages: while one is worked on, the next is on its way:
//
//     owned        X, Y = Q, dO of queries, or K, V of keys
//     tile         x, y = K, V of keys, or Q, dO of queries
//
//     S = X x^T;  dP = Y y^T;  P, dS of both in registers;  dX += dS x;  dY += P y      dY of keys alone: dV
//
// dX of all tiles is dQ or dK, but for the scale. Sums are added in one order: the bits are the same in every run.
#pragma once
#include <utility>

#include "stdlib/attention_backward/score_gradients.hpp"
#include "stdlib/attention_backward/seen_tiles.hpp"
#include "stdlib/tile/fma_tiles.hpp"
#include "stdlib/tile/register_operand.hpp"
#include "stdlib/tile/tile_source.hpp"

namespace ikat::stdlib::gradient {

/// What kernels take.
template <class T>
struct Given {
    const Scoring<T>& with;
    const In<T, 4>&Q, &K, &V, &dO;
    const In<float>& sums;
    Leaf<float> scale;
};

template <class T, std::uint32_t d, Gradient of, bool has_more>
class Block {
    static constexpr GradientTile tile = GradientTile::of(of, d, has_more);
    static constexpr bool are_keys = of != Gradient::Queries;
    static constexpr bool makes_x = of != Gradient::Values, makes_y = are_keys && of != Gradient::Keys;
    static constexpr std::uint32_t owned = tile.owned(), walked = tile.walked, rows = tile.rows;
    static constexpr std::uint32_t queries = are_keys ? walked : owned, keys = are_keys ? owned : walked;
    using M = ProductInF32<T>;
    /// Padded, where there is room: a thread has one register for the places of a tile.
    using Walked = PaddedTile<T, 2, walked, d>;
    using Padded = PaddedTile<T, 1, owned, d>;
    static constexpr bool has_room = 2 * (Padded::stage_bytes + 2 * Walked::stage_bytes) <= GradientTile::max_bytes;
    using Owned = std::conditional_t<has_room, Padded, SharedTile<T, 1, owned, d>>;
    static_assert(2 * (Owned::stage_bytes + 2 * Walked::stage_bytes) <= GradientTile::max_bytes);
    using OwnedSource = TileSource<Owned, tile.threads, Along::Columns>;
    using WalkedSource = TileSource<Walked, tile.threads, Along::Rows>;
    using Scores = WarpTiles<M, rows, walked>;
    using Sums = WarpTiles<M, rows, d>;
    using Gradients = ScoreGradients<T, Scores, are_keys>;

public:
    Block(const GradientKernel& is, const Given<T>& given) : is_(is), given_(given), with_(given.with) {
        require_linear_blocks();
        require_threads(tile.threads);
        if_(thread_id().x == 0u, [&] {
            kept_[0u] = are_keys ? at_.keys : at_.queries, kept_[1u] = first_row_;
            kept_[2u] = at_.head, kept_[3u] = at_.sequence;
            if (at_.query_row) kept_[4u] = are_keys ? *at_.key_row : *at_.query_row;
        });
    }

    /// dX, and dY, if it is made.
    void run(const Out<T, 4>* dX, const Out<T, 4>* dY) {
        load_owned();
        if constexpr (are_keys) {
            const auto first_head = value(at_.head * with_.group);
            for (auto head : range(with_.group)) walk(at_.of_head(value(first_head + head)));
        } else {
            walk(at_);
        }
        copy_wait<0>();
        sync_block();  // of what no tile waited for
        if constexpr (makes_x) {
            for (std::uint32_t r = 0; r < LaneRowsOf<Sums>::rows; ++r)
                each_of_row(dx_, r, [&](auto& v, std::uint32_t) { v = v * given_.scale; });
            store(dx_, x_, *dX);
        }
        if constexpr (makes_y) store(dy_, y_, *dY);
    }

private:
    auto rows_of_queries(const In<T, 4>& x, const QueriesPlace& at) const {
        return rows_of_head(x, at.sequence, at.head, at.queries, d, at.query_row);
    }
    auto rows_of_keys(const In<T, 4>& x, const U32& kv_head) const {
        return rows_of_head(x, at_.sequence, kv_head, at_.keys, d, at_.key_row);
    }
    void load_owned() {
        const auto load = [&](const auto& x, const Owned& to) {
            OwnedSource(x, first_row_, {is_.access}).load(to[0], 0);
        };
        load(are_keys ? rows_of_keys(given_.K, at_.head) : rows_of_queries(given_.Q, at_), x_);
        if constexpr (makes_x) load(are_keys ? rows_of_keys(given_.V, at_.head) : rows_of_queries(given_.dO, at_), y_);
        copy_commit();
    }

    GradientPlace place_of(const U32& number, const U32& first_row) const {
        const auto other = value(number * walked);
        return {are_keys ? other : first_row, are_keys ? first_row : other,
                value(first_row + warp_row_ + lane_id() / 4u), value(other + lane_id() % 4u * 2u)};
    }

    /// All tiles that queries of a head, or those of the block, see.
    void walk(const QueriesPlace& at) {
        const Gradients gradients(is_, with_, at, queries, keys);
        const auto of_head = sums_of_head(given_.sums, is_, with_, at);
        const auto tiles = seen_tiles<are_keys>(is_, at, first_row_, owned, walked, gradients.has_slope());
        const auto next = [&](const U32& from) {
            if (!gradients.has_sight()) return from;
            return next_seen(gradients.own(), at, from, tiles_of(tiles.end, walked),
                             [&](const U32& number) { return gradients.place(place_of(number, first_row_)); });
        };
        u32 number = next(tiles.begin);
        const auto is_there = [&] { return value(number) * walked < tiles.end; };
        const auto kv_head = value(at.head / with_.group);
        const TileAccess access{.bytes = is_.access, .saves_registers = true, .multiplies_rows = !has_room};
        const WalkedSource from_x(are_keys ? rows_of_queries(given_.Q, at) : rows_of_keys(given_.K, kv_head), 0,
                                  access);
        const WalkedSource from_y(are_keys ? rows_of_queries(given_.dO, at) : rows_of_keys(given_.V, kv_head), 0,
                                  access);
        const auto load = [&](const U32& stage, const U32& number) {
            from_x.load(walked_x_[stage], number);
            from_y.load(walked_y_[stage], number);
            if constexpr (are_keys) load_sums(of_head, stage, number);
        };
        std::vector<QuerySums> of_rows;
        if constexpr (!are_keys)  // of queries that are not there, those of the last one
            for (std::uint32_t r = 0; r < LaneRowsOf<Scores>::rows; ++r)
                of_rows.push_back(sums_of_query(of_head, value(min(lane_row_ + 8 * r, at.queries - 1u))));
        if constexpr (!are_keys)
            if_(thread_id().x == 0u, [&] { kept_[5u] = min(tiles.whole, tiles_of(tiles.end, walked)); });
        sync_block();  // of the head before
        u32 stage = 0;
        if_(is_there(), [&] { load(value(word(0u)), value(number)); });
        copy_commit();
        const auto work_while = [&](auto&& more, bool hides) {
            while_([&] { return more(); },
                   [&] {
                       copy_wait<0>();
                       sync_block();
                       const auto now = value(stage), then = value(1u - now);
                       const auto place = place_of(value(number), value(kept_[1u]));
                       number = next(value(number + 1u));
                       if_(is_there(), [&] { load(then, value(number)); });
                       copy_commit();
                       work(gradients, place, now, of_rows, hides);
                       stage = then;
                   });
        };
        each_part(gradients.has_sight(), number, tiles, work_while);
    }
    /// Calls work_while(condition, hides) from tile `number` on. Loops over whole tiles have no code that hides; where
    /// a function says what there is to hide, and where keys would need more than two loops, for which registers are
    /// too few, one loop takes all.
    void each_part(bool has_sight, const u32& number, const SeenTiles& tiles, auto&& work_while) const {
        const auto is_there = [&] { return value(number) * walked < tiles.end; };
        if (has_sight || (are_keys && tiles.hides_last)) {
            work_while(is_there, true);
        } else if (are_keys) {
            if (tiles.hides_first) work_while([&] { return (number < tiles.whole) & is_there(); }, true);
            work_while(is_there, false);
        } else {  // those before whole ones, and these; then those after: one loop has the code for both
            for (auto round : range(2)) {
                const auto whole = value(kept_[5u]),
                           end = value(select(round == 0, whole, tiles_of(tiles.end, walked)));
                work_while([&] { return number < end; }, true);
                work_while([&] { return (value(number) + 1u) * walked <= tiles.end_whole; }, false);
            }
        }
    }

    void work(const Gradients& gradients, const GradientPlace& place, const U32& stage,
              const std::vector<QuerySums>& of_rows, bool hides) {
        std::vector<QuerySums> of_columns;
        if constexpr (are_keys) of_columns = sums_of_columns(sums_, stage, walked);
        const auto sums = [&](std::uint32_t r, std::uint32_t j, std::uint32_t c) {
            return are_keys ? of_columns[(2 * j + r % 2) * 2 + c] : of_rows[r];
        };
        const auto x = walked_x_[stage], y = walked_y_[stage];
        const auto own_x = x_[0], own_y = y_[0];
        Scores scores(0.0f), slopes(0.0f);
        scores.accumulate(left_x_.of(own_x), right_x_, x);
        if constexpr (makes_x) {
            gradients.begin(slopes, sums);
            slopes.accumulate(left_y_.of(own_y), right_y_, y);
        }
        gradients.finish(scores, slopes, place, sums, hides);
        if constexpr (makes_y) dy_.accumulate(RegisterOperand<M, rows, walked>(scores), across_y_, y);
        if constexpr (makes_x) dx_.accumulate(RegisterOperand<M, rows, walked>(slopes), across_x_, x);
    }

    /// Of the queries of a tile.
    void load_sums(const auto& of_head, const U32& stage, const U32& number) {
        constexpr std::uint32_t of_two = GradientKernel::numbers_of_two;
        const auto thread = value(thread_id().x);
        if_(thread < walked / 2, [&] {
            const auto to = value((stage * (walked / 2) + thread) * of_two);
            const auto from = value((number * (walked / 2) + thread) * of_two);
            copy_async<16>(sums_[to], of_head[from]);
            copy_async<8>(sums_[to + 4u], of_head[from + 4u]);
        });
    }
    void store(const Sums& sums, const Owned& by_way_of, const Out<T, 4>& to) const {
        const auto all = value(kept_[0u]), first_row = value(kept_[1u]);
        std::optional<U32> row;
        if (at_.query_row) row.emplace(value(kept_[4u]));
        const auto matrix = rows_of_head(to, value(kept_[3u]), value(kept_[2u]), all, d, row);
        store_rows(sums, by_way_of[0], warp_row_, value(lane_id()), matrix, first_row, all, is_.is_aligned);
    }

    const GradientKernel& is_;
    const Given<T>& given_;
    const Scoring<T>& with_;
    /// Of a block of keys, the head is that of K and V, and the first query is its first key.
    QueriesPlace at_ =
        are_keys ? place_of_keys(with_, is_.has_offsets, owned) : place_of_block(with_, is_.has_offsets, owned);
    U32 first_row_ = at_.first_query;
    /// What only the end needs of the place: no register has it until then.
    Shared<std::uint32_t, 6> kept_;
    U32 warp_row_ = value(warp_id() * rows);
    U32 lane_row_ = value(first_row_ + warp_row_ + lane_id() / 4u);
    Owned x_, y_;
    Walked walked_x_, walked_y_;
    Shared<float, are_keys ? walked * GradientKernel::numbers_of_two : 4> sums_;
    const LeftOperand<M, Owned, Major::K> left_x_{x_, warp_row_}, left_y_{y_, warp_row_};
    const RightOperand<M, Walked, Major::K> right_x_{walked_x_, 0}, right_y_{walked_y_, 0};
    const RightOperand<M, Walked, Major::MN> across_x_{walked_x_, 0}, across_y_{walked_y_, 0};
    Sums dx_{0.0f}, dy_{0.0f};
};

}  // namespace ikat::stdlib::gradient
