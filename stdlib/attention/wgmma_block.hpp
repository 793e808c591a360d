// SPDX-License-Identifier: Apache-2.0
// One thread of a block copies tiles of K and V, by turns, into one ring; each warpgroup of the others has 64 queries.
// While it works on the scores of one tile, it multiplies the exponentials of the one before with V:
//
//     tensor cores    Q K^T of 0 |              | Q K^T of 1 | P V of 0 |             | Q K^T of 2 | P V of 1 | ...
//     other units                | softmax of 0 |            | softmax of 1 .........|            | softmax of 2 ...
//
//     the ring        K 0, K 1, V 0, K 2, V 1, ... K n, V n - 1, V n
#pragma once
#include <functional>
#include <numbers>
#include <optional>

#include "dsl/kernel/tensor_map.hpp"
#include "stdlib/attention/scores.hpp"
#include "stdlib/attention/wgmma_work.hpp"
#include "stdlib/tile/ring.hpp"
#include "stdlib/tile/warp_specialised.hpp"
#include "stdlib/tile/warpgroup_tiles.hpp"

namespace ikat::stdlib {

/// Warpgroups begin their products by turns, so that one has its softmax to do while those of another are done. Each
/// has a barrier, after those of sync_warpgroup(), where it waits, and the one before it arrives.
template <std::uint32_t groups>
class ProductTurns {
    static constexpr std::uint32_t first = 1 + groups;

public:
    explicit ProductTurns(const Leaf<std::uint32_t>& group)
        : is_first_(value(group == 0u)), own_(value(group + first)), next_(value((group + 1u) % groups + first)) {
        if_(group == groups - 1, [&] { pass(); });
    }
    void wait() const { sync_block(own_, 256u); }
    void pass() const { arrive_block(next_, 256u); }
    /// At the end: the last to pass was the last warpgroup.
    void finish() const {
        if_(is_first_, [&] { wait(); });
    }

private:
    Leaf<bool> is_first_;
    Leaf<std::uint32_t> own_, next_;
};

/// The tensors of a kernel.
template <class QueryMap, class KeyMap>
struct WgmmaMaps {
    QueryMap q;
    KeyMap k, v;
    QueryMap o;
};

template <class T, WgmmaAttentionTile tile>
class WgmmaAttentionBlock {
    static constexpr std::uint32_t d = tile.head_dim, groups = tile.groups, keys = tile.keys();
    using Queries = SharedTile<T, groups, 64, tile.row()>;  // and, at the end, rows of O
    using Keys = SharedTile<T, tile.stages, keys, tile.row()>;
    static constexpr std::uint32_t of_panel = Queries::panel_row / sizeof(T), panels = tile.row() / of_panel;
    using OfScores = Wgmma<64, int(keys), 16, T, float>;
    using OfValues = Wgmma<64, int(d), 16, T, float>;
    using Scores = typename OfScores::C;
    using Sums = typename OfValues::C;
    using Softmax = OnlineSoftmax<16>;
    using U32 = Leaf<std::uint32_t>;

public:
    using QueryMap = TensorMap<T, Box<1, 1, 64, of_panel>, int(Queries::swizzle)>;
    using KeyMap = TensorMap<T, Box<1, 1, keys, of_panel>, int(Queries::swizzle)>;
    using Maps = WgmmaMaps<QueryMap, KeyMap>;

    WgmmaAttentionBlock(const WgmmaAttentionKernel& is, const Maps& maps, const Scoring<T>& with,
                        const Leaf<std::uint32_t>& tiles)
        : is_(is), maps_(maps), with_(with), works_{is, tile, with, tiles} {
        require_linear_blocks();
    }

    void run() {
        warp_specialised<groups, groups == 3 ? 32 : 24>([&] { copy(); },
                                                        [&](const auto& group) { Multiplier(*this, group).run(); });
    }

private:
    // ---- the thread that copies

    void copy() {
        for (const auto* map : {&maps_.q, &maps_.o}) prefetch(*map);
        for (const auto* map : {&maps_.k, &maps_.v}) prefetch(*map);
        RingPlace<tile.stages> at;
        RingPlace<1> of_queries;
        works_.each([&](const WgmmaWork& work) {
            const auto kv_head = value(work.head / with_.group);
            const auto load = [&](const KeyMap& from, const U32& number) {
                const auto rows = wgmma_rows(work, kv_head, value(number * keys), work.keys, work.key_row, keys);
                ring_.fill(at, Keys::stage_bytes, [&](const StageNumber& stage, const BarrierPlace& arrival) {
                    copy_panels<T>(kv_[stage], from, rows, arrival);
                });
            };
            load(maps_.k, work.begin);
            queries_ring_.fill(of_queries, groups * Queries::stage_bytes,
                               [&](const auto&, const BarrierPlace& arrival) {
                                   for (auto g : range(0u, groups)) {
                                       const auto first = value(work.first_query + g * 64u);
                                       copy_panels<T>(queries_[g], maps_.q, wgmma_queries(work, first), arrival);
                                   }
                               });
            if (is_.own.has_sight()) {
                const auto last = works_.each_after_first(work, [&](const U32& number, const U32& before) {
                    load(maps_.k, number);
                    load(maps_.v, before);
                });
                return load(maps_.v, last);
            }
            for (auto number : range(work.begin + 1u, work.end)) {
                load(maps_.k, number);
                load(maps_.v, value(number - 1u));
            }
            load(maps_.v, value(work.end - 1u));
        });
    }
    // ---- the warpgroups

    /// A tile's exponentials.
    using Weights = WarpgroupFragments<OfValues, Scores>;

    /// What a warpgroup makes of its queries.
    struct Rows {
        Rows(const WgmmaWork& of, const U32& first) : work(of), first_query(first), sums(0.0f) {}

        const WgmmaWork& work;
        U32 first_query;
        Sums sums;
        Softmax softmax;
        Weights weights;
    };

    /// A warpgroup that multiplies. While the sums of one tile of keys are on their way, so are the scores of the next.
    class Multiplier {
        using Left = WarpgroupOperand<OfScores, Queries, Major::K>;
        using Right = WarpgroupOperand<OfScores, Keys, Major::K>;
        using Values = WarpgroupOperand<OfValues, Keys, Major::MN>;

    public:
        Multiplier(const WgmmaAttentionBlock& block, const U32& group)
            : block_(block),
              group_(group),
              factor_(block.factor()),
              left_(block.queries_, 0u),
              right_(block.kv_, 0u),
              values_(block.kv_, 0u),
              queries_(left_.of(block.queries_[group])) {
            if constexpr (groups > 1 && d <= 128) turns_.emplace(group);
        }

        void run() {
            block_.works_.each([&](const WgmmaWork& work) {
                Rows rows(work, value(work.first_query + group_ * 64u));
                begin_with_sink(rows.softmax, block_.with_, work.head);
                attend(rows);
                block_.store(rows.sums, work, rows.first_query, group_);
                if (block_.is_.has_log_sum) block_.store(rows.softmax, work, rows.first_query);
            });
            if (turns_) turns_->finish();
            if_(thread_id().x % 128u == 0u, [&] { bulk_wait<0>(); });
        }

    private:
        void attend(Rows& rows) {
            block_.queries_ring_.wait(of_queries_);
            of_queries_.next();
            take_first(rows);
            if (block_.is_.own.has_sight())
                block_.works_.each_after_first(rows.work, [&](const U32& number, const U32&) { take(rows, number); });
            else
                for (auto number : range(rows.work.begin + 1u, rows.work.end)) take(rows, value(number));
            begin_sums(rows);
            wgmma_wait<0>();
            block_.ring_.free(at_.stage());
            at_.next();
            WarpgroupRows<Sums> sums(rows.sums);
            rows.softmax.finish(sums);
        }

        void take_first(Rows& rows) {
            Scores scores;
            Softmax::Step step;
            block_.ring_.wait(at_);
            begin_scores(scores);
            wgmma_wait<0>();
            block_.ring_.free(at_.stage());
            at_.next();
            weigh(rows, scores, step, rows.work.begin);
            block_.ring_.wait(at_);
            rows.weights.take(scores);
        }

        void take(Rows& rows, const U32& number) {
            Scores scores;
            Softmax::Step step;
            const auto stage_of_keys = at_.stage();
            if (turns_) turns_->wait();
            begin_scores(scores);
            at_.next();
            const auto stage_of_values = at_.stage();
            block_.ring_.wait(at_);
            begin_sums(rows);
            if (turns_) turns_->pass();
            wgmma_wait<1>();
            block_.ring_.free(stage_of_keys);
            weigh(rows, scores, step, number);
            // For the next product already here, after the softmax: nothing else would keep ptxas from waiting for
            // the sums before it.
            at_.next();
            block_.ring_.wait_after(at_, rows.softmax.zero_after_weights());
            wgmma_wait<0>();
            block_.ring_.free(stage_of_values);
            WarpgroupRows<Sums> sums(rows.sums);
            rows.softmax.rescale(step, sums);
            rows.weights.take(scores);
        }

        // Where the stage is, is computed before the fence: after it, only products use registers.
        void begin_scores(Scores& scores) const {
            const auto of_keys = right_.of(block_.kv_[at_.stage()]);
            // Sixteen descriptors, if they were kept throughout the loop, would take registers that are not there.
            const auto queries = d == 256 ? left_.of(block_.queries_[value(warp_uniform(group_))]) : queries_;
            wgmma_fence();
            for (std::uint32_t step = 0; step < d / 16; ++step) {
                const auto a = Left::further_on(queries, step);
                const auto b = Right::further_on(of_keys, step);
                wgmma(scores, a, b, step > 0);
            }
            wgmma_commit();
        }
        void begin_sums(Rows& rows) const {
            const auto of_values = values_.of(block_.kv_[at_.stage()]);
            wgmma_fence();
            for (std::uint32_t step = 0; step < keys / 16; ++step)
                wgmma(rows.sums, rows.weights[step], Values::further_on(of_values, step));
            wgmma_commit();
        }
        void weigh(Rows& rows, Scores& scores, Softmax::Step& step, const U32& number) const {
            WarpgroupRows<Scores> of_scores(scores);
            const ScoresPlace place{rows.first_query, value(number * keys), 64, keys};
            finish_scores<Softmax>(of_scores, block_.is_, block_.with_, rows.work, rows.work.own, place,
                                   [&](std::uint32_t r) { return query_of_lane(rows.first_query, r); });
            rows.softmax.begin(step, of_scores, factor_);
            rows.softmax.weigh(step, of_scores, factor_);
        }

        const WgmmaAttentionBlock& block_;
        const U32& group_;
        Leaf<float> factor_;
        Left left_;
        Right right_;
        Values values_;
        decltype(left_.of(std::declval<const TileStage<Queries>&>())) queries_;
        std::optional<ProductTurns<groups>> turns_;
        RingPlace<tile.stages> at_;
        RingPlace<1> of_queries_;
    };

    Leaf<float> factor() const {
        const bool is_other = is_.has_cap || is_.has_bias || is_.own.has_scores();
        return value(is_other ? exponent_of_capped(is_.has_wide_cap) : with_.factor);
    }

    /// The query of the lane's row r.
    static U32 query_of_lane(const U32& first_query, std::uint32_t r) {
        return value(first_query + warp_id() % 4u * 16u + lane_id() / 4u + 8 * r);
    }

    /// By way of the rows that the queries were in, which are then free.
    void store(const Sums& sums, const WgmmaWork& work, const U32& first_query, const U32& group) const {
        store_by_way_of<T>(queries_, group, group, sums, maps_.o, [&] { return wgmma_queries(work, first_query); });
        queries_ring_.free(0u);
    }
    void store(const Softmax& softmax, const WgmmaWork& work, const U32& first_query) const {
        const auto of_head = (*with_.log_sum)[work.sequence, work.head];
        const auto sums = work.query_row ? of_head.slice(*work.query_row) : of_head;
        for (std::uint32_t r = 0; r < Softmax::rows; ++r) {
            const auto query = query_of_lane(first_query, r);
            const auto is_there = value((lane_id() % 4u == 0u) & (query < work.queries));
            sums.store_if(is_there, query, softmax.log2_sum(r) * std::numbers::ln2_v<float>);
        }
    }

    const WgmmaAttentionKernel& is_;
    const Maps& maps_;
    const Scoring<T>& with_;
    WgmmaWorks<T> works_;
    Queries queries_;
    Keys kv_;
    Ring<tile.stages> ring_{4 * groups};
    Ring<1> queries_ring_{4 * groups};
};

/// What a kernel records; the parameters of all with the same maps are compiled once.
template <class T, class Maps>
using WgmmaBody = std::function<void(const Maps&, const Scoring<T>&, const Leaf<std::uint32_t>& tiles)>;

/// The extents of Q and K, which a kernel cannot ask maps for.
struct WgmmaExtents {
    BOOST_HANA_DEFINE_STRUCT(WgmmaExtents, (std::uint32_t, queries), (std::uint32_t, keys), (std::uint32_t, heads),
                             (std::uint32_t, tiles));
};

template <class T, class QueryMap, class KeyMap>
KernelHandle with_parameters(const WgmmaAttentionKernel& is, std::uint32_t threads,
                             const WgmmaBody<T, WgmmaMaps<QueryMap, KeyMap>>& body) {
    using Offsets = Optional<In<std::uint32_t>>;
    const MoreParameters more = is.own.more();
    return kernel(is.name().c_str(),
                  params("Q", "K", "V", "O", "extents", "with", only_if(is.has_bias, "bias"),
                         only_if(is.has_offsets, "query_offsets"), only_if(is.has_offsets, "key_offsets"),
                         only_if(is.has_sinks, "sinks"), only_if(is.has_log_sum, "log_sum"), more),
                  [body, own = is.own](QueryMap Q, KeyMap K, KeyMap V, QueryMap O, Struct<WgmmaExtents> extents,
                                       Struct<ScoreParameters> with, Optional<In<T, 4>> bias, Offsets query_offsets,
                                       Offsets key_offsets, Optional<In<float>> sinks, Optional<Out<float, 3>> log_sum,
                                       More rest) {
                      const BoundAttention functions(own, rest);
                      const Scoring<T> scoring(extents[&WgmmaExtents::queries], extents[&WgmmaExtents::keys],
                                               extents[&WgmmaExtents::heads], with, bias, query_offsets, key_offsets,
                                               sinks, log_sum, own ? &functions : nullptr);
                      body({Q, K, V, O}, scoring, extents[&WgmmaExtents::tiles]);
                  })
        .launch_bounds(threads, 1)
        .handle();
}

template <class T, WgmmaAttentionTile tile>
KernelHandle made_of_tile(const WgmmaAttentionKernel& is) {
    using Block = WgmmaAttentionBlock<T, tile>;
    return with_parameters<T, typename Block::QueryMap, typename Block::KeyMap>(
        is, tile.threads(),
        [is](const typename Block::Maps& maps, const Scoring<T>& with, const Leaf<std::uint32_t>& tiles) {
            Block(is, maps, with, tiles).run();
        });
}

template <class T, std::uint32_t d, std::uint32_t keys>
KernelHandle made_of_groups(const WgmmaAttentionKernel& is) {
    if constexpr (WgmmaAttentionTile::max_groups(d) == 3)
        if (is.groups == 3) return made_of_tile<T, WgmmaAttentionTile{d, 3, keys}>(is);
    return is.groups == 1 ? made_of_tile<T, WgmmaAttentionTile{d, 1, keys}>(is)
                          : made_of_tile<T, WgmmaAttentionTile{d, 2, keys}>(is);
}
template <class T, std::uint32_t d>
KernelHandle made_of_keys(const WgmmaAttentionKernel& is) {
    constexpr std::uint32_t keys = WgmmaAttentionTile{.head_dim = d}.keys();
    if constexpr (d == 128)
        if (is.tile().keys() > keys)
            return made_of_tile<T, WgmmaAttentionTile{d, 2, WgmmaAttentionTile::many_keys}>(is);
    if constexpr (keys > 64)
        if (is.tile().keys() == keys) return made_of_groups<T, d, keys>(is);
    return made_of_groups<T, d, 64>(is);
}
template <class T>
KernelHandle made_of_type(const WgmmaAttentionKernel& is) {
    switch (is.head_dim) {
        case 64: return made_of_keys<T, 64>(is);
        case 80: return made_of_keys<T, 80>(is);
        case 96: return made_of_keys<T, 96>(is);
        case 128: return made_of_keys<T, 128>(is);
        default: return made_of_keys<T, 256>(is);
    }
}
/// In a file of its own, so that no compiler has both types in memory at once.
KernelHandle made_of_f16(const WgmmaAttentionKernel& is);

}  // namespace ikat::stdlib
