// SPDX-License-Identifier: Apache-2.0
// A block keeps its queries, in registers where there is room, and goes through the keys. Of K and V there is one tile
// each in shared memory; while one is worked on, the next of the other is on its way:
//
//     scores = Q K^T of tile 0   | sums += P V of tile 0      | scores = Q K^T of tile 1   | ...
//     V of tile 0 is being copied | K of tile 1 is being copied | V of tile 1 is being copied |
//
// Of an encoded cache what is on its way are bytes; all threads decode a tile just before it is worked on.
#pragma once
#include <algorithm>
#include <functional>
#include <numbers>
#include <optional>

#include "stdlib/attention/attention_kernels.hpp"
#include "stdlib/attention/encoded_rows.hpp"
#include "stdlib/attention/scores.hpp"
#include "stdlib/tile/fma_tiles.hpp"
#include "stdlib/tile/tile_rows.hpp"
#include "stdlib/tile/tile_source.hpp"

namespace ikat::stdlib::flash {

/// Of elements of T; K and V of E, which is T or, encoded or in pages, bytes.
template <class T, class E, std::uint32_t d, std::uint32_t queries_>
class AttentionBlock {
    static constexpr AttentionTile tile = {queries_};
    static constexpr std::uint32_t queries = tile.queries, keys = AttentionTile::keys(d * sizeof(T)),
                                   rows = tile.rows();
    static constexpr bool keeps_queries = sizeof(T) == 2 && rows * d <= 2560;  // 40 registers
    using M = ProductInF32<T>;
    /// Registers are few: with 32 rows of 128 elements, sums and scores of a thread take 192 of 255, and with 16 rows a
    /// third block fits a multiprocessor if all take 168. What can be computed or read where it is used has none
    /// through the loop, and of 32 rows the tiles are padded.
    static constexpr bool is_tight = sizeof(T) == 2 && sizeof(E) == 2 && d == 128;
    template <std::uint32_t count>
    using Tile = std::conditional_t<is_tight && rows == 32, PaddedTile<T, 1, count, d>, SharedTile<T, 1, count, d>>;
    using Queries = Tile<queries>;
    using Keys = Tile<keys>;
    static_assert(!is_tight || rows < 32 || tile.large_bytes == Queries::stage_bytes + 2 * Keys::stage_bytes + 20);
    static constexpr bool is_bytes = !std::is_same_v<E, T>;
    using KeySource =
        std::conditional_t<is_bytes, EncodedTiles<Keys, tile.threads>, TileSource<Keys, tile.threads, Along::Rows>>;
    using Scores = WarpTiles<M, rows, keys>;
    using Softmax = OnlineSoftmax<rows>;
    using U32 = Leaf<std::uint32_t>;
    using I32 = Leaf<std::int32_t>;

public:
    AttentionBlock(const AttentionKernel& is, const Scoring<T>& with, const std::optional<PageTable>& pages)
        : is_(is), with_(with), pages_(pages) {}

    void run(const In<T, 4>& Q, const In<E, 4>& K, const In<E, 4>& V, const Out<T, 4>& O) {
        require_linear_blocks();
        require_threads(tile.threads);
        const auto kv_head = value(head_ / with_.group);
        const auto of_q = rows_of_head(Q, sequence_, head_, all_queries_, d, at_.query_row);
        const auto of_k = keys_of(K, kv_head);
        const auto of_v = keys_of(V, kv_head);
        const TileSource<Queries, tile.threads, Along::Columns> from_q(of_q, first_query_, {is_.q_access});
        const KeySource from_k = source(of_k, is_.k_access), from_v = source(of_v, is_.v_access);
        const LeftOperand<M, Queries, Major::K> left(q_, warp_row_);
        const RightOperand<M, Keys, Major::K> right_k(k_, 0);
        const RightOperand<M, Keys, Major::MN> right_v(v_, 0);

        const auto [begin, end] = tiles_of_keys();
        if (output_) if_(thread_id().x == 0u, [&] { output().put(*output_); });
        from_q.load(q_[0], 0);
        copy_commit();
        from_k.load(k_[0], begin);
        copy_commit();
        copy_wait<1>();
        sync_block();
        const auto queries_in_tile = q_[0];
        std::optional<RegisterOperand<M, rows, d>> kept;
        if constexpr (keeps_queries) kept.emplace(left, queries_in_tile);

        begin_with_sink(softmax_, with_, head_);
        each_tile(begin, end, [&](const U32& number, const auto& with_next) {
            copy_wait<0>();
            sync_block();
            from_v.load(v_[0], number);
            copy_commit();
            decode(from_k, k_[0]);
            Scores scores(0.0f);
            if constexpr (keeps_queries)
                scores.accumulate(*kept, right_k, k_[0]);
            else
                scores.accumulate(left.of(queries_in_tile), right_k, k_[0]);
            finish_scores<Softmax>(scores, is_, with_, at_, own_, place_of_scores(number),
                                   [&](std::uint32_t r) { return query_of(r); });
            if (is_.has_cap || is_.has_bias || is_.own.has_scores())
                softmax_.take(scores, is_.has_wide_cap ? 1.0f : std::numbers::log2e_v<float>, sums_);
            else
                softmax_.take(scores, with_.factor, sums_);
            const RegisterOperand<M, rows, keys> weights(scores);
            copy_wait<0>();
            sync_block();
            with_next([&](const U32& next) { from_k.load(k_[0], next); });
            copy_commit();
            decode(from_v, v_[0]);
            sums_.accumulate(weights, right_v, v_[0]);
        });
        copy_wait<0>();
        softmax_.finish(sums_);
        store(O, output_ ? Output::kept(*output_, at_.query_row.has_value()) : output());
    }

private:
    /// Where the keys of a head are.
    auto keys_of(const In<E, 4>& x, const U32& kv_head) const {
        if constexpr (is_bytes)
            return typename KeySource::Head{x,         sequence_,   kv_head,
                                            all_keys_, at_.key_row, at_.number ? *at_.number : sequence_};
        else
            return rows_of_head(x, sequence_, kv_head, all_keys_, d, at_.key_row);
    }
    KeySource source(const auto& keys, std::uint32_t access) const {
        if constexpr (is_bytes)
            return {keys, pages_, is_.encoding, access};
        else
            return {keys, 0, {.bytes = access, .saves_registers = true, .multiplies_rows = is_tight}};
    }
    /// What has been copied of encoded keys becomes a tile; otherwise it is one.
    void decode(const KeySource& source, const TileStage<Keys>& to) const {
        if constexpr (is_bytes)
            if (is_.encoding != CacheEncoding::none) {
                source.decode(to);
                sync_block();
            }
    }

    /// Which tiles of keys some query of the block sees: from, to.
    std::pair<U32, U32> tiles_of_keys() const {
        const auto last_query = value(bit_cast<i32>(min(first_query_ + queries, all_queries_)) - 1);
        U32 begin = value(word(0)), end = tiles_of(all_keys_, keys);
        if (is_.has_before) begin = value(bit_cast<u32>(max(bit_cast<i32>(first_query_) + at_.first, 0)) / keys);
        if (is_.has_after)
            end =
                tiles_of(value(bit_cast<u32>(max(min(bit_cast<i32>(all_keys_), last_query + at_.last + 1), 0))), keys);
        if (is_.own.has_sight()) begin = next_seen(*own_, at_, queries, keys, begin, end);
        return {begin, end};
    }

    /// Calls take(number, with_next) for the tiles of keys that some query may see, see each_seen().
    void each_tile(const U32& begin, const U32& end, auto&& take) const {
        each_seen(
            begin, end, is_.own.has_sight(),
            [&](const U32& from) { return next_seen(*own_, at_, queries, keys, from, end); }, take);
    }

    /// What only the end needs of a block's place. If registers are few, shared memory keeps it until then.
    struct Output {
        U32 queries, first_query, head, sequence;
        std::optional<U32> query_row;

        using Memory = Shared<std::uint32_t, 5>;
        static std::optional<Memory> memory() {
            if constexpr (!is_tight) return {};
            return std::optional<Memory>(std::in_place);
        }
        void put(const Memory& to) const {
            to[0u] = queries, to[1u] = first_query, to[2u] = head, to[3u] = sequence;
            if (query_row) to[4u] = *query_row;
        }
        static Output kept(const Memory& from, bool has_row) {
            Output out{value(from[0u]), value(from[1u]), value(from[2u]), value(from[3u]), {}};
            if (has_row) out.query_row.emplace(value(from[4u]));
            return out;
        }
    };
    Output output() const { return {all_queries_, first_query_, head_, sequence_, at_.query_row}; }

    /// The query of the lane's row r.
    U32 query_of(std::uint32_t r) const {
        if constexpr (!is_tight) return value(lane_query_ + 8 * r);
        const auto [lane, warp_row] = place_of_thread();
        return value(first_query_ + warp_row + lane / 4u + 8 * r);
    }
    /// Of tile `number` of keys; see place_of_thread().
    ScoresPlace place_of_scores(const U32& number) const {
        const auto first_key = value(number * keys);
        if constexpr (!is_tight) return {first_query_, first_key, queries, keys};
        const auto first_query = value(first_query_ + softmax_.zero_after_weights());
        return {first_query, first_key, queries, keys, [this] { return place_of_thread().first; }};
    }

    /// The lane, and the warp's first row. If registers are few, from the thread's number and a 0 that depends on all
    /// weights so far: so none has them, or what is made of them, before they are used.
    std::pair<U32, U32> place_of_thread() const {
        if constexpr (!is_tight) return {value(lane_id()), warp_row_};
        const auto thread = value(thread_id().x + softmax_.zero_after_weights());
        return {value(thread % 32u), value(thread / 32u * rows)};
    }

    void store(const Out<T, 4>& O, const Output& to) {
        const auto o = rows_of_head(O, to.sequence, to.head, to.queries, d, to.query_row);
        const auto [lane, warp_row] = place_of_thread();
        store_rows(sums_, q_[0], warp_row, lane, o, to.first_query, to.queries, is_.o_is_aligned);
        if (!is_.has_log_sum) return;
        const auto of_head = (*with_.log_sum)[to.sequence, to.head];
        const auto log_sums = to.query_row ? of_head.slice(*to.query_row) : of_head;
        for (std::uint32_t r = 0; r < Softmax::rows; ++r) {
            const auto query = value(to.first_query + warp_row + lane / 4u + 8 * r);
            log_sums.store_if((lane % 4u == 0u) & (query < to.queries), query,
                              softmax_.log2_sum(r) * std::numbers::ln2_v<float>);
        }
    }

    const AttentionKernel& is_;
    const Scoring<T>& with_;
    std::optional<PageTable> pages_;
    QueriesPlace at_ = place_of_block(with_, is_.has_offsets, queries);
    std::optional<HeadScores> own_ = at_.own(with_);
    U32 all_queries_ = at_.queries, all_keys_ = at_.keys;
    U32 first_query_ = at_.first_query, head_ = at_.head, sequence_ = at_.sequence;
    U32 warp_row_ = value(warp_id() * rows);
    U32 lane_query_ = value(first_query_ + warp_row_ + lane_id() / 4u);  // of the lane's row 0
    Queries q_;
    Keys k_, v_;
    std::optional<typename Output::Memory> output_ = Output::memory();
    Softmax softmax_;
    WarpTiles<M, rows, d> sums_{0.0f};
};

/// What a kernel records; the parameters of all are compiled once for each type.
template <class T, class E>
using Body = std::function<void(const Scoring<T>&, const std::optional<PageTable>&, const In<T, 4>& Q,
                                const In<E, 4>& K, const In<E, 4>& V, const Out<T, 4>& O)>;

template <class T, class E>
KernelHandle with_parameters(const AttentionKernel& is, const Body<T, E>& body) {
    using Offsets = Optional<In<std::uint32_t>>;
    const MoreParameters more = is.own.more();
    return kernel(is.name().c_str(),
                  params("Q", "K", "V", "O", "with", only_if(is.has_bias, "bias"),
                         only_if(is.has_offsets, "query_offsets"), only_if(is.has_offsets, "key_offsets"),
                         only_if(is.has_sinks, "sinks"), only_if(is.has_log_sum, "log_sum"),
                         only_if(is.has_pages, "pages"), more),
                  [body, own = is.own](In<T, 4> Q, In<E, 4> K, In<E, 4> V, Out<T, 4> O, Struct<ScoreParameters> with,
                                       Optional<In<T, 4>> bias, Offsets query_offsets, Offsets key_offsets,
                                       Optional<In<float>> sinks, Optional<Out<float, 3>> log_sum,
                                       Optional<In<std::uint32_t, 2>> pages, More rest) {
                      const BoundAttention functions(own, rest);
                      std::optional<PageTable> table;
                      if (pages) table.emplace(PageTable{*pages, value(31u - leading_zeros(K.extent(2)))});
                      const auto keys = pages ? value(pages->extent(1) << table->shift) : value(K.extent(2));
                      const Scoring<T> scoring(Q.extent(2), keys, Q.extent(1), with, bias, query_offsets, key_offsets,
                                               sinks, log_sum, own ? &functions : nullptr);
                      body(scoring, table, Q, K, V, O);
                  })
        // Of f32, and of bytes, ptxas would rather spill than have one block less.
        .launch_bounds(AttentionTile::threads, sizeof(T) == 4 || sizeof(E) == 1 ? 1 : 0)
        .handle();
}

template <class T, class E, std::uint32_t d, std::uint32_t queries>
KernelHandle made(const AttentionKernel& is) {
    return with_parameters<T, E>(is, [is](const Scoring<T>& with, const std::optional<PageTable>& pages,
                                          const In<T, 4>& Q, const In<E, 4>& K, const In<E, 4>& V, const Out<T, 4>& O) {
        AttentionBlock<T, E, d, queries>(is, with, pages).run(Q, K, V, O);
    });
}

/// Of f32, too, blocks of 128 queries: a lane has twice as many products with what it reads of K and V. See
/// AttentionTile::has_large().
template <class T, class E, std::uint32_t d>
KernelHandle of_queries(const AttentionKernel& is) {
    if constexpr (AttentionTile::has_large(d, 8 * sizeof(T), sizeof(E) == 1))
        if (is.queries == 128) return made<T, E, d, 128>(is);
    return made<T, E, d, 64>(is);
}
template <class T, class E>
KernelHandle of_type(const AttentionKernel& is) {
    switch (is.head_dim) {
        case 64: return of_queries<T, E, 64>(is);
        case 80: return of_queries<T, E, 80>(is);
        case 96: return of_queries<T, E, 96>(is);
        case 128: return of_queries<T, E, 128>(is);
        default: return of_queries<T, E, 256>(is);
    }
}

}  // namespace ikat::stdlib::flash
