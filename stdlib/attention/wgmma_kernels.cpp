// SPDX-License-Identifier: Apache-2.0
// One thread of a block copies tiles of K and V, by turns, into one ring; each warpgroup of the others has 64 queries.
// While it works on the scores of one tile, it multiplies the exponentials of the one before with V:
//
//     tensor cores    Q K^T of 0 |              | Q K^T of 1 | P V of 0 |             | Q K^T of 2 | P V of 1 | ...
//     other units                | softmax of 0 |            | softmax of 1 .........|            | softmax of 2 ...
//
//     the ring        K 0, K 1, V 0, K 2, V 1, ... K n, V n - 1, V n
#include "stdlib/attention/wgmma_kernels.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <numbers>
#include <optional>

#include "dsl/kernel/kernel.hpp"
#include "dsl/kernel/tensor_map.hpp"
#include "stdlib/tile/online_softmax.hpp"
#include "stdlib/tile/ring.hpp"
#include "stdlib/tile/schedule.hpp"
#include "stdlib/tile/warp_specialised.hpp"
#include "stdlib/tile/warpgroup_tiles.hpp"

namespace ikat::stdlib {
namespace {

/// The numbers of a launch.
struct Numbers {
    u32 queries, keys, heads, group, tiles;
    f32 factor, cap;
    i32 first, last;
};
struct LogSum {
    Out<float> sums;
    u32 sequence, head;  // elements apart
};

/// Warpgroups begin their products by turns, so that one has its softmax to do while those of another are done. Each
/// has a barrier, behind those of sync_warpgroup(), where it waits, and the one before it arrives.
template <std::uint32_t groups>
class Turns {
    static constexpr std::uint32_t first = 1 + groups;

public:
    explicit Turns(const Leaf<std::uint32_t>& group)
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
    struct Maps {
        QueryMap q;
        KeyMap k, v;
        QueryMap o;
    };

    WgmmaAttentionBlock(const WgmmaAttentionKernel& is, const Maps& maps, const Numbers& with, const LogSum* log_sum)
        : is_(is), maps_(maps), with_(with), log_sum_(log_sum) {
        require_linear_blocks();
    }

    void run() {
        warp_specialised<groups, groups == 3 ? 32 : 24>([&] { copy(); }, [&](const auto& group) { attend(group); });
    }

private:
    /// Queries of a head, and the tiles of keys that some of them see.
    struct Work {
        U32 sequence, head, first_query, begin, end;
    };

    /// Calls f for the work of this block: of a round of all blocks, which are in the opposite order in each second
    /// round, so that those with the most keys, the last of each head, are not always the same block's.
    void each_work(auto&& f) const {
        const auto all = value(with_.tiles), blocks = value(grid_dim().x);
        const auto of_head = tiles_of(with_.queries, tile.queries());
        u32 own = block_id().x;
        for (auto round : range(0u, all, blocks)) {
            const auto number = value(round + own);
            own = blocks - 1u - own;
            if_(number < all, [&] {
                const auto first = value((of_head - 1u - number % of_head) * tile.queries());
                const auto plane = value(number / of_head);
                const auto head = value(plane % with_.heads), sequence = value(plane / with_.heads);
                const auto [begin, end] = tiles_of_keys(first);
                f(Work{sequence, head, first, begin, end});
            });
        }
    }
    /// From, to; if there are none, one of which no query sees a key: behind all keys, where everything is zero.
    std::pair<U32, U32> tiles_of_keys(const U32& first_query) const {
        const auto all = value(with_.keys), behind_all = tiles_of(value(all + with_.queries), keys);
        const auto begin = value(bit_cast<u32>(max(bit_cast<i32>(first_query) + with_.first, 0)) / keys);
        U32 end = tiles_of(all, keys);
        if (is_.has_behind) {
            const auto behind_last = value(bit_cast<i32>(min(first_query + tile.queries(), with_.queries)));
            end = tiles_of(value(bit_cast<u32>(max(min(bit_cast<i32>(all), behind_last + with_.last), 0))), keys);
        }
        const auto has_keys = value(begin < end);
        return {value(select(has_keys, begin, behind_all)), value(select(has_keys, end, behind_all + 1u))};
    }

    // ---- the thread that copies

    void copy() {
        for (const auto* map : {&maps_.q, &maps_.o}) prefetch(*map);
        for (const auto* map : {&maps_.k, &maps_.v}) prefetch(*map);
        RingPlace<tile.stages> at;
        RingPlace<1> of_queries;
        each_work([&](const Work& work) {
            const auto kv_head = value(work.head / with_.group);
            const auto load = [&](const KeyMap& from, const auto& number) {
                const auto row = value(number * keys);
                ring_.fill(at, Keys::stage_bytes, [&](const auto& stage, const auto& arrival) {
                    copy_rows(kv_[stage], from, work.sequence, kv_head, row, arrival);
                });
            };
            load(maps_.k, work.begin);
            queries_ring_.fill(of_queries, groups * Queries::stage_bytes, [&](const auto&, const auto& arrival) {
                for (auto g : range(0u, groups)) {
                    const auto row = value(work.first_query + g * 64u);
                    copy_rows(queries_[g], maps_.q, work.sequence, work.head, row, arrival);
                }
            });
            for (auto number : range(work.begin + 1u, work.end)) {
                load(maps_.k, number);
                load(maps_.v, value(number - 1u));
            }
            load(maps_.v, value(work.end - 1u));
        });
    }
    template <class Tile>
    static auto panel_of(const TileStage<Tile>& stage, const auto& panel) {
        const auto bytes = value(stage.first() + panel * Tile::panel_bytes);
        return stage.tile().bytes().template as<T>()[bytes / std::uint32_t(sizeof(T))];
    }
    /// In a loop on the device: few registers are left to this thread.
    static void copy_rows(const auto& to, const auto& from, const auto& sequence, const auto& head, const auto& row,
                          const auto& arrival) {
        for (auto panel : range(0u, panels)) {
            const auto place = panel_of(to, panel);
            tma_load(place, from[sequence, head, row, panel * of_panel], arrival);
        }
    }

    // ---- the warpgroups

    /// A product's A: a tile's exponentials, rounded.
    struct Weights {
        typename OfValues::A fragments[keys / 16];

        void take(const Scores& scores) {
            using Pair = ikat::Pair<T>;
            for (std::uint32_t step = 0; step < keys / 16; ++step)
                for (std::uint32_t r = 0; r < 4; ++r) {
                    const std::uint32_t e = 8 * step + 2 * r;
                    fragments[step][r] = pack<Pair>(scores[e], scores[e + 1]);
                }
        }
    };

    void attend(const U32& group) {
        const auto factor = value(is_.has_cap ? value(f32(std::numbers::log2e_v<float>)) : value(with_.factor));
        using Left = WarpgroupFactor<OfScores, Queries, Major::K>;
        using Right = WarpgroupFactor<OfScores, Keys, Major::K>;
        using Values = WarpgroupFactor<OfValues, Keys, Major::MN>;
        const Left left(queries_, 0u);
        const Right right(kv_, 0u);
        const Values values(kv_, 0u);
        const auto all_own_queries = left.of(queries_[group]);
        std::optional<Turns<groups>> turns;
        if constexpr (groups > 1 && d <= 128) turns.emplace(group);
        RingPlace<tile.stages> at;
        RingPlace<1> of_queries;
        each_work([&](const Work& work) {
            const auto first_query = value(work.first_query + group * 64u);
            Sums sums(0.0f);
            Softmax softmax;
            // Where the stage is, is computed before the fence: behind it, only products use registers.
            const auto begin_scores = [&](Scores& scores) {
                const auto of_keys = right.of(kv_[at.stage()]);
                // Sixteen descriptors, if they were kept throughout the loop, would take registers that are not there.
                const auto own_queries = d == 256 ? left.of(queries_[value(warp_uniform(group))]) : all_own_queries;
                wgmma_fence();
                for (std::uint32_t step = 0; step < d / 16; ++step) {
                    const auto a = Left::further_on(own_queries, step);
                    const auto b = Right::further_on(of_keys, step);
                    wgmma(scores, a, b, step > 0);
                }
                wgmma_commit();
            };
            const auto begin_sums = [&](const Weights& weights) {
                const auto of_values = values.of(kv_[at.stage()]);
                wgmma_fence();
                for (std::uint32_t step = 0; step < keys / 16; ++step)
                    wgmma(sums, weights.fragments[step], Values::further_on(of_values, step));
                wgmma_commit();
            };
            const auto weigh = [&](Scores& scores, Softmax::Step& step, const U32& number) {
                WarpgroupRows<Scores> rows(scores);
                finish_scores(rows, first_query, value(number * keys));
                softmax.begin(step, rows, factor);
                softmax.weigh(step, rows, factor);
            };
            queries_ring_.wait(of_queries);
            of_queries.next();
            Weights weights;
            Scores first_scores;
            Softmax::Step first_step;
            ring_.wait(at);
            begin_scores(first_scores);
            wgmma_wait<0>();
            ring_.free(at.stage());
            at.next();
            weigh(first_scores, first_step, work.begin);
            ring_.wait(at);
            weights.take(first_scores);

            for (auto number : range(work.begin + 1u, work.end)) {
                Scores scores;
                Softmax::Step step;
                const auto stage_of_keys = at.stage();
                if (turns) turns->wait();
                begin_scores(scores);
                at.next();
                const auto stage_of_values = at.stage();
                ring_.wait(at);
                begin_sums(weights);
                if (turns) turns->pass();
                wgmma_wait<1>();
                ring_.free(stage_of_keys);
                weigh(scores, step, value(number));
                // For the next product already here, behind the softmax: nothing else would keep ptxas from waiting for
                // the sums before it.
                at.next();
                ring_.wait_behind(at, softmax.zero_behind_weights());
                wgmma_wait<0>();
                ring_.free(stage_of_values);
                WarpgroupRows<Sums> rows(sums);
                softmax.rescale(step, rows);
                weights.take(scores);
            }
            begin_sums(weights);
            wgmma_wait<0>();
            ring_.free(at.stage());
            at.next();
            WarpgroupRows<Sums> rows(sums);
            softmax.finish(rows);
            store(sums, work, first_query, group);
            if (log_sum_) store(softmax, work, first_query);
        });
        if (turns) turns->finish();
        if_(thread_id().x % 128u == 0u, [&] { bulk_wait<0>(); });
    }

    /// From products to scores: their cap, and -infinity for keys that a query does not see.
    void finish_scores(WarpgroupRows<Scores>& scores, const U32& first_query, const U32& first_key) const {
        if (is_.has_cap)
            for (std::uint32_t r = 0; r < Softmax::rows; ++r)
                Softmax::each_of_row(scores, r, [&](auto& score, std::uint32_t) {
                    // cap * tanh(x) for 2^(factor * score) = exp(2 x)
                    score = fma(approx::rcp(exp2_or_zero(score * with_.factor) + 1.0f), -2.0f * with_.cap, with_.cap);
                });
        const auto from = bit_cast<i32>(first_key), first = bit_cast<i32>(first_query), all = bit_cast<i32>(with_.keys);
        pred is_at_edge = from + std::int32_t(keys) > all;
        if (is_.has_before) is_at_edge = is_at_edge | (from < first + with_.first + 63);
        if (is_.has_behind) is_at_edge = is_at_edge | (from + std::int32_t(keys - 1) > first + with_.last);
        if_(is_at_edge, [&] {
            const auto own_key = value(bit_cast<i32>(first_key + lane_id() % 4u * 2u));
            for (std::uint32_t r = 0; r < Softmax::rows; ++r) {
                // The first key that the lane's query sees, and the first that it does not, from the lane's own on.
                const auto query = value(bit_cast<i32>(query_of_lane(first_query, r)));
                const auto seen = value(query + with_.first - own_key);
                const auto behind = value(is_.has_behind ? value(min(all, query + with_.last + 1)) : value(all));
                const auto unseen = value(behind - own_key);
                Softmax::each_of_row(scores, r, [&](auto& score, std::uint32_t column) {
                    pred sees = unseen > std::int32_t(column);
                    if (is_.has_before) sees = sees & (seen <= std::int32_t(column));
                    score = select(sees, score, -std::numeric_limits<float>::infinity());
                });
            }
        });
    }
    /// The query of the lane's row r.
    static U32 query_of_lane(const U32& first_query, std::uint32_t r) {
        return value(first_query + warp_id() % 4u * 16u + lane_id() / 4u + 8 * r);
    }

    /// By way of the rows that the queries were in, which are then free.
    void store(const Sums& sums, const Work& work, const U32& first_query, const U32& group) const {
        const auto rows = queries_[group];
        sync_warpgroup(group);  // no other warp's product reads the queries
        const auto row = value(warp_id() % 4u * 16u + lane_id() % 16u), right = value(lane_id() / 16u);
        const Pieces<Queries> pieces(queries_, row, right);
        for (std::uint32_t column = 0; column < d; column += 16) {
            Regs<u32, 4> v;
            for (std::uint32_t r = 0; r < 4; ++r) {
                const auto pair = value(pack<Pair<T>>(sums[column / 2 + 2 * r], sums[column / 2 + 2 * r + 1]));
                v[r] = bit_cast<u32>(pair);
            }
            store_matrix<4>(pieces.at(rows, 0, column / 8), v);
        }
        fence_async_shared();
        sync_warpgroup(group);
        if_(thread_id().x % 128u == 0u, [&] {
            for (auto panel : range(0u, panels)) {
                const auto place = panel_of(rows, panel);
                tma_store(maps_.o[work.sequence, work.head, first_query, panel * of_panel], place);
            }
            bulk_commit();
            bulk_wait_read<0>();
        });
        queries_ring_.free(0u);
    }
    void store(const Softmax& softmax, const Work& work, const U32& first_query) const {
        const auto first = value(mul_wide(work.sequence, log_sum_->sequence) + mul_wide(work.head, log_sum_->head));
        const auto sums = log_sum_->sums.slice(first);
        for (std::uint32_t r = 0; r < Softmax::rows; ++r) {
            const auto query = query_of_lane(first_query, r);
            const auto is_there = value((lane_id() % 4u == 0u) & (query < with_.queries));
            sums.store_if(is_there, query, softmax.log2_sum(r) * std::numbers::ln2_v<float>);
        }
    }

    const WgmmaAttentionKernel& is_;
    const Maps& maps_;
    const Numbers& with_;
    const LogSum* log_sum_;
    Queries queries_;
    Keys kv_;
    Ring<tile.stages> ring_{4 * groups};
    Ring<1> queries_ring_{4 * groups};
};

template <class T, WgmmaAttentionTile tile>
trace::KernelHandle made(const WgmmaAttentionKernel& is) {
    using Block = WgmmaAttentionBlock<T, tile>;
    using QueryMap = typename Block::QueryMap;
    using KeyMap = typename Block::KeyMap;
    const auto run = [](const WgmmaAttentionKernel& kernel, const typename Block::Maps& maps, const Numbers& with,
                        const LogSum* log_sum) { Block(kernel, maps, with, log_sum).run(); };
    if (is.has_log_sum)
        return kernel(
                   is.name().c_str(),
                   params("Q", "K", "V", "O", "queries", "keys", "heads", "group", "tiles", "factor", "cap", "first",
                          "last", "log_sum", "log_sum_sequence", "log_sum_head"),
                   [=](QueryMap Q, KeyMap K, KeyMap V, QueryMap O, u32 queries, u32 keys, u32 heads, u32 group,
                       u32 tiles, f32 factor, f32 cap, i32 first, i32 last, Out<float> sums, u32 sequence, u32 head) {
                       const LogSum log_sum{sums, sequence, head};
                       run(is, {Q, K, V, O}, {queries, keys, heads, group, tiles, factor, cap, first, last}, &log_sum);
                   })
            .launch_bounds(tile.threads(), 1)
            .handle();
    return kernel(is.name().c_str(),
                  params("Q", "K", "V", "O", "queries", "keys", "heads", "group", "tiles", "factor", "cap", "first",
                         "last"),
                  [=](QueryMap Q, KeyMap K, KeyMap V, QueryMap O, u32 queries, u32 keys, u32 heads, u32 group,
                      u32 tiles, f32 factor, f32 cap, i32 first, i32 last) {
                      run(is, {Q, K, V, O}, {queries, keys, heads, group, tiles, factor, cap, first, last}, nullptr);
                  })
        .launch_bounds(tile.threads(), 1)
        .handle();
}

template <class T, std::uint32_t d>
trace::KernelHandle of_groups(const WgmmaAttentionKernel& is) {
    if constexpr (WgmmaAttentionTile::most_groups(d) == 3)
        if (is.groups == 3) return made<T, WgmmaAttentionTile{d, 3}>(is);
    return is.groups == 1 ? made<T, WgmmaAttentionTile{d, 1}>(is) : made<T, WgmmaAttentionTile{d, 2}>(is);
}
template <class T>
trace::KernelHandle of_type(const WgmmaAttentionKernel& is) {
    switch (is.head_dim) {
        case 64: return of_groups<T, 64>(is);
        case 80: return of_groups<T, 80>(is);
        case 96: return of_groups<T, 96>(is);
        case 128: return of_groups<T, 128>(is);
        default: return of_groups<T, 256>(is);
    }
}

}  // namespace

std::string WgmmaAttentionKernel::name() const {
    std::string out = type == ir::Type::F16 ? "flash_attention_f16_d" : "flash_attention_bf16_d";
    out += std::to_string(head_dim) + "_wgmma";
    if (has_before) out += "_before";
    if (has_behind) out += "_behind";
    if (has_cap) out += "_cap";
    if (has_log_sum) out += "_log_sum";
    return out;
}

trace::KernelHandle WgmmaAttentionKernel::make() const {
    return type == ir::Type::F16 ? of_type<half>(*this) : of_type<bfloat16>(*this);
}

const trace::KernelHandle& WgmmaAttentionKernel::handle() const {
    static std::map<WgmmaAttentionKernel, trace::KernelHandle> kernels;
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    const auto found = kernels.find(*this);
    if (found != kernels.end()) return found->second;
    return kernels.emplace(*this, make()).first->second;
}

}  // namespace ikat::stdlib
