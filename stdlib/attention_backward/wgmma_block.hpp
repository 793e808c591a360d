// SPDX-License-Identifier: Apache-2.0
// What Block does, on sm_90a. Each of two warpgroups has 64 rows of what the block owns; the first thread copies tiles
// of the others into a ring:
//
//     owned        X, Y = Q, dO of queries, or K, V of keys
//     tile n       x, y = K, V of keys, or Q, dO of queries, and then the sums of these
//
//     tensor cores    S = X x^T, dP = Y y^T of n | dY += P y, dX += dS x of n - 1 |
//     other units                                | P, dS of n ....................|
//
// P and dS are a product's left matrix where the scores were, in registers. The code of a tile is in the loop and
// nowhere else: where it was before the loop, too, ptxas serialised the products of both. So tile 0 has a tile before
// it, itself, of which all P and dS are 0.
#pragma once
#include "dsl/kernel/tensor_map.hpp"
#include "stdlib/attention/wgmma_work.hpp"
#include "stdlib/attention_backward/score_gradients.hpp"
#include "stdlib/attention_backward/seen_tiles.hpp"
#include "stdlib/tile/ring.hpp"
#include "stdlib/tile/warpgroup_tiles.hpp"

namespace ikat::stdlib::gradient {

/// A block's place, in shared memory: no register has it.
class KeptPlace {
public:
    KeptPlace(const QueriesPlace& at, bool has_offsets) : has_offsets_(has_offsets), first_(at.first), last_(at.last) {
        if_(thread_id().x == 0u, [&] {
            kept_[0u] = at.queries, kept_[1u] = at.keys;
            kept_[2u] = at.first_query, kept_[3u] = at.head, kept_[4u] = at.sequence;
            if (has_offsets) kept_[5u] = *at.query_row, kept_[6u] = *at.key_row, kept_[7u] = *at.number;
        });
    }
    /// After a barrier, or by thread 0.
    QueriesPlace get() const {
        const auto kept = [&](std::uint32_t n) { return value(kept_[n]); };
        QueriesPlace out{kept(0), kept(1), kept(2), kept(3), kept(4), first_, last_};
        if (has_offsets_) out.query_row.emplace(kept(5)), out.key_row.emplace(kept(6)), out.number.emplace(kept(7));
        return out;
    }

private:
    bool has_offsets_;
    I32 first_, last_;
    Shared<std::uint32_t, 8> kept_;
};

template <class T, std::uint32_t d, Gradient of>
class WgmmaBlock {
    static constexpr bool are_keys = of == Gradient::KeysAndValues;
    static constexpr std::uint32_t groups = WgmmaGradientTile::groups, rows = WgmmaGradientTile::rows,
                                   owned = WgmmaGradientTile::owned, walked = rows,
                                   stages = WgmmaGradientTile::stages(d);
    using Owned = SharedTile<T, 2 * groups, rows, d>;
    using Walked = SharedTile<T, 2 * stages, walked, d>;
    using OfScores = Wgmma<64, int(walked), 16, T, float>;
    using OfSums = Wgmma<64, int(d), 16, T, float>;
    using Scores = typename OfScores::C;
    using Sums = typename OfSums::C;
    using Tiles = WarpgroupRows<Scores>;
    using Gradients = ScoreGradients<T, Tiles, are_keys>;
    static constexpr std::uint32_t of_panel = Owned::panel_row / sizeof(T);
    static constexpr std::uint32_t of_two = GradientKernel::numbers_of_two, sums_of_tile = walked / 2 * of_two;

public:
    using Map = TensorMap<T, Box<1, 1, rows, of_panel>, int(Owned::swizzle)>;
    /// Of what is owned, of what tiles are of, and of what is made.
    struct Maps {
        Map own_x, own_y, x, y, dx;
        std::optional<Map> dy;
    };

    WgmmaBlock(const GradientKernel& is, const Maps& maps, const Scoring<T>& with, const In<float>& sums,
               const Leaf<float>& scale)
        : is_(is), maps_(maps), with_(with), of_queries_(sums), scale_(scale) {
        require_linear_blocks();
        require_threads(WgmmaGradientTile::threads);
    }

    void run() { Multiplier(*this, value(warp_uniform(warpgroup_id()))).run(); }

private:
    /// The tiles of each head of queries of the block: those of all heads are the same.
    struct Walk {
        U32 begin, end;
        U32 all;  // of all heads together
    };
    Walk tiles() const {
        const auto seen = seen_tiles<are_keys>(is_, at_, at_.first_query, owned, walked, false);
        const auto end = tiles_of(seen.end, walked), count = value(max(end, seen.begin) - seen.begin);
        return {seen.begin, end, are_keys ? value(count * with_.group) : count};
    }
    WgmmaRows rows_of_queries(const QueriesPlace& at, const U32& head, const U32& first) const {
        return wgmma_rows(at, head, first, at.queries, at.query_row, rows);
    }
    WgmmaRows rows_of_keys(const QueriesPlace& at, const U32& first) const {
        const auto head = are_keys ? at.head : value(at.head / with_.group);
        return wgmma_rows(at, head, first, at.keys, at.key_row, rows);
    }
    WgmmaRows owned_rows(const U32& group) const {
        const auto at = kept_.get();
        const auto first = value(at.first_query + group * rows);
        return are_keys ? rows_of_keys(at, first) : rows_of_queries(at, at.head, first);
    }

    // ---- the thread that copies

    void load_owned() const {
        RingPlace<1> at;
        owned_ring_.fill(at, 2 * groups * Owned::stage_bytes, [&](const auto&, const BarrierPlace& arrival) {
            for (std::uint32_t group = 0; group < groups; ++group) {
                const auto from = owned_rows(value(word(group)));
                copy_panels<T>(owned_[2 * group], maps_.own_x, from, arrival);
                copy_panels<T>(owned_[2 * group + 1], maps_.own_y, from, arrival);
            }
        });
    }
    void load(const StageNumber& stage, const BarrierPlace& arrival, const U32& head, const U32& number) const {
        const auto at = kept_.get();
        const auto first = value(number * walked);
        const auto from = are_keys ? rows_of_queries(at, head, first) : rows_of_keys(at, first);
        copy_panels<T>(walked_[stage * 2u], maps_.x, from, arrival);
        copy_panels<T>(walked_[stage * 2u + 1u], maps_.y, from, arrival);
        if constexpr (are_keys) {
            const auto of_head = sums_of_head(of_queries_, is_, with_, at.of_head(head));
            bulk_load(sums_[stage * sums_of_tile], of_head[number * sums_of_tile], 4 * sums_of_tile, arrival);
        }
    }
    /// The tiles of all heads, one after the other.
    class Copies {
        static constexpr std::uint32_t all_ = 0, begin_ = 1, end_ = 2, left_ = 0, number_ = 1, head_ = 2;

    public:
        Copies(const WgmmaBlock& block, const Walk& walk) : block_(block) {
            const auto head = block.at_.head;
            if_(thread_id().x == 0u, [&] {
                walk_[all_] = walk.all, walk_[begin_] = walk.begin, walk_[end_] = walk.end;
                next_[left_] = walk.all, next_[number_] = walk.begin;
                next_[head_] = are_keys ? value(head * block.with_.group) : head;
            });
        }
        /// By any thread, after a barrier: how many there are.
        U32 all() const { return value(walk_[all_]); }
        /// ... and the number of the one after this: after the last of a head comes the first of the next.
        U32 after(const U32& number) const {
            const auto begin = value(walk_[begin_]), last = value(walk_[end_] - 1u);
            return value(select(number == last, begin, number + 1u));
        }
        /// Copies the next one, if there is one.
        void next() {
            if_(thread_id().x == 0u, [&] {
                const auto left = value(next_[left_]);
                if_(left > 0u, [&] { copy(left); });
            });
        }

    private:
        void copy(const U32& left) {
            const auto number = value(next_[number_]), head = value(next_[head_]), then = after(number);
            block_.ring_.fill(at_, bytes, [&](const StageNumber& stage, const BarrierPlace& arrival) {
                block_.load(stage, arrival, head, number);
            });
            next_[left_] = left - 1u, next_[number_] = then;
            if constexpr (are_keys) next_[head_] = select(then > number, head, head + 1u);
        }

        static constexpr std::uint32_t bytes = 2 * Walked::stage_bytes + (are_keys ? 4 * sums_of_tile : 0);
        const WgmmaBlock& block_;
        // In shared memory, for want of registers: what all threads read, and what thread 0 copies next.
        Shared<std::uint32_t, 3> walk_, next_;
        RingPlace<stages> at_;
    };

    // ---- the warpgroups

    class Multiplier {
        using Left = WarpgroupOperand<OfScores, Owned, Major::K>;
        using Right = WarpgroupOperand<OfScores, Walked, Major::K>;
        using Across = WarpgroupOperand<OfSums, Walked, Major::MN>;
        using Weights = WarpgroupFragments<OfSums, Scores>;

    public:
        Multiplier(const WgmmaBlock& block, const U32& group)
            : block_(block),
              group_(group),
              first_row_(value(block.at_.first_query + group * rows)),
              left_(block.owned_, 0u),
              right_(block.walked_, 0u),
              across_(block.walked_, 0u) {}

        void run() {
            const Walk walk = block_.tiles();
            if_(walk.all > 0u, [&] {
                this->walk(walk);
                for (std::uint32_t e = 0; e < std::uint32_t(Sums::elements); ++e) dx_[e] = dx_[e] * block_.scale_;
                store(dx_, dy_);
            }).else_([&] {
                const Sums none(0.0f);
                store(none, none);
            });
            if_(thread_id().x % 128u == 0u, [&] { bulk_wait<0>(); });
        }

    private:
        void walk(const Walk& walk) {
            const QueriesPlace& at = block_.at_;
            const Gradients gradients(block_.is_, block_.with_, at, are_keys ? walked : rows, are_keys ? rows : walked);
            const auto lane_row = value(first_row_ + LaneRowsOf<WarpgroupTiles<OfScores, 1>>::row(0));
            std::vector<QuerySums> of_rows;
            if constexpr (!are_keys) {
                const auto of_head = sums_of_head(block_.of_queries_, block_.is_, block_.with_, at);
                // Of queries that are not there, those of the last one.
                for (std::uint32_t r = 0; r < LaneRowsOf<Tiles>::rows; ++r)
                    of_rows.push_back(sums_of_query(of_head, value(min(lane_row + 8 * r, at.queries - 1u))));
            }
            Copies copies(block_, walk);
            if_(thread_id().x == 0u, [&] { block_.load_owned(); });
            // Tile n + stages - 3 is copied in step n, to where n - 3 was, which the other warpgroup is done with
            // unless it is more than a step behind.
            for (std::uint32_t ahead = 0; ahead < stages - 3; ++ahead) copies.next();
            block_.owned_ring_.wait(RingPlace<1>());
            weights_.clear(), gradient_.clear();
            u32 number = walk.begin, before = 0, n = 0;
            const auto step = [&] {
                const auto other = value(number * walked);
                const GradientPlace place{are_keys ? other : first_row_, are_keys ? first_row_ : other, lane_row,
                                          value(other + lane_id() % 4u * 2u)};
                copies.next();
                Scores scores, slopes;
                block_.ring_.wait(stage_);
                begin_scores(scores, slopes);
                begin_sums(value(before));
                wgmma_wait<1>();
                finish(gradients, place, scores, slopes, of_rows);
                // The tile is there: nothing else would keep ptxas from waiting for the sums before the exponentials.
                // Where sums take 128 registers, a mask of two sides leaves none for that.
                if (!(are_keys && d == 128 && block_.is_.has_before && block_.is_.has_after))
                    block_.ring_.wait_after(stage_, zero_after(scores));
                wgmma_wait<0>();
                if constexpr (are_keys) sync_warp();  // lanes have loaded sums
                if_(n > 0u, [&] { block_.ring_.free(before); });
                if constexpr (are_keys) weights_.take(scores);
                gradient_.take(slopes);
                before = stage_.stage();
                stage_.next();
                number = are_keys ? copies.after(value(number)) : value(number + 1u);
                n = n + 1u;
            };
            while_([&] { return n < copies.all(); }, step);
            begin_sums(value(before));
            wgmma_wait<0>();
        }
        void begin_scores(Scores& scores, Scores& slopes) const {
            const auto x = right_.of(block_.walked_[stage_.stage() * 2u]), y = x.offset(Walked::stage_bytes);
            // Descriptors, if they were kept throughout the loop, would take registers that are not there.
            const auto group = value(warp_uniform(group_));
            const auto own_x = left_.of(block_.owned_[group * 2u]), own_y = own_x.offset(Owned::stage_bytes);
            wgmma_fence();
            for (std::uint32_t step = 0; step < d / 16; ++step)
                wgmma(scores, Left::further_on(own_x, step), Right::further_on(x, step), step > 0);
            for (std::uint32_t step = 0; step < d / 16; ++step)
                wgmma(slopes, Left::further_on(own_y, step), Right::further_on(y, step), step > 0);
            wgmma_commit();
        }
        void begin_sums(const U32& stage) {
            const auto x = across_.of(block_.walked_[stage * 2u]), y = x.offset(Walked::stage_bytes);
            wgmma_fence();
            if constexpr (are_keys)
                for (std::uint32_t step = 0; step < walked / 16; ++step)
                    wgmma(dy_, weights_[step], Across::further_on(y, step));
            for (std::uint32_t step = 0; step < walked / 16; ++step)
                wgmma(dx_, gradient_[step], Across::further_on(x, step));
            wgmma_commit();
        }
        void finish(const Gradients& gradients, const GradientPlace& place, Scores& scores, Scores& slopes,
                    const std::vector<QuerySums>& of_rows) const {
            Tiles of_scores(scores), of_slopes(slopes);
            std::vector<QuerySums> of_columns;
            if constexpr (are_keys) of_columns = sums_of_columns(block_.sums_, stage_.stage(), walked);
            const auto sums = [&](std::uint32_t r, std::uint32_t j, std::uint32_t c) {
                return are_keys ? of_columns[(2 * j + r % 2) * 2 + c] : of_rows[r];
            };
            gradients.add(of_slopes, sums);
            gradients.finish(of_scores, of_slopes, place, sums,
                             !are_keys || block_.is_.has_before || block_.is_.has_after);
        }
        /// 0, computed from the last of the exponentials.
        static U32 zero_after(const Scores& weights) {
            return value(select(weights[Scores::elements - 1] < 0.0f, 1u, 0u));
        }
        /// By way of the rows that X and Y were in.
        void store(const Sums& dx, const Sums& dy) const {
            const auto put = [&](const Sums& sums, std::uint32_t which, const Map& to) {
                store_by_way_of<T>(block_.owned_, value(group_ * 2u + which), group_, sums, to,
                                   [&] { return block_.owned_rows(group_); });
            };
            put(dx, 0, block_.maps_.dx);
            if constexpr (are_keys) put(dy, 1, *block_.maps_.dy);
        }

        const WgmmaBlock& block_;
        U32 group_, first_row_;
        Left left_;
        Right right_;
        Across across_;
        RingPlace<stages> stage_;
        Weights weights_, gradient_;  // P and dS of the tile before
        Sums dx_{0.0f}, dy_{0.0f};
    };

    const GradientKernel& is_;
    const Maps& maps_;
    const Scoring<T>& with_;
    const In<float>& of_queries_;
    const Leaf<float>& scale_;
    /// Of a block of keys, the head is that of K and V, and the first query is its first key.
    const KeptPlace kept_{
        are_keys ? place_of_keys(with_, is_.has_offsets, owned) : place_of_block(with_, is_.has_offsets, owned),
        is_.has_offsets};
    Owned owned_;    // X and Y of each warpgroup
    Walked walked_;  // x and y of each stage
    Shared<float, are_keys ? stages * sums_of_tile : 4> sums_;
    const Ring<stages> ring_{4 * groups};
    const Ring<1> owned_ring_{4 * groups};
    const QueriesPlace at_ = kept_.get();
};

}  // namespace ikat::stdlib::gradient
