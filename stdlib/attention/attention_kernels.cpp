// SPDX-License-Identifier: Apache-2.0
// A block keeps its queries, in registers where there is room, and goes through the keys. Of K and V there is one tile
// each in shared memory; while one is worked on, the next of the other is on its way:
//
//     scores = Q K^T of tile 0   | sums += P V of tile 0      | scores = Q K^T of tile 1   | ...
//     V of tile 0 is being copied | K of tile 1 is being copied | V of tile 1 is being copied |
#include "stdlib/attention/attention_kernels.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <numbers>
#include <optional>

#include "dsl/kernel/kernel.hpp"
#include "stdlib/tile/fma_tiles.hpp"
#include "stdlib/tile/online_softmax.hpp"
#include "stdlib/tile/schedule.hpp"
#include "stdlib/tile/tile_rows.hpp"
#include "stdlib/tile/tile_source.hpp"

namespace ikat::stdlib {
namespace {

/// How many elements apart sequences, heads and rows of an array are.
struct Pitches {
    u32 sequence, head, row;
};
/// Elements of a head of a sequence, from a row on.
template <class E, trace::Direction direction>
auto elements_of_head(const Pointer<E, direction>& x, const Pitches& pitches, const Word& sequence, const Word& head,
                      const std::optional<Leaf<std::uint32_t>>& row = {}) {
    const auto first = value(mul_wide(word(sequence), pitches.sequence) + mul_wide(word(head), pitches.head));
    return x.slice(row ? value(first + mul_wide(*row, pitches.row)) : first);
}
/// Its rows.
template <class E, trace::Direction direction>
auto rows_of_head(const Pointer<E, direction>& x, const Pitches& pitches, const Word& sequence, const Word& head,
                  const Word& rows, const Word& columns, const std::optional<Leaf<std::uint32_t>>& row = {}) {
    const ikat::detail::ViewShape<2> shape{{word(rows).recorded(), word(columns).recorded()}, {pitches.row.recorded()}};
    return Pointer<E, direction, 2>(trace::fixed(elements_of_head(x, pitches, sequence, head, row).array()), shape);
}

/// The numbers of a launch.
struct Numbers {
    u32 queries, keys, heads, group;
    Pitches q, k, v, o;
    f32 factor, cap;
    i32 first, last;
};
/// What may be left out.
template <class T>
struct Extras {
    std::optional<In<T>> bias{};
    std::optional<Out<float>> log_sum{};
    std::optional<Pitches> of_bias{}, of_log_sum{};
    /// Where the rows of each sequence begin, and those of the next one.
    std::optional<In<std::uint32_t>> query_offsets{}, key_offsets{};
    std::optional<u32> sequences{};
};

/// What a block works on.
struct BlockPlace {
    Leaf<std::uint32_t> queries, keys;  // of the sequence
    Leaf<std::uint32_t> first_query, head, sequence;
    Leaf<std::int32_t> first, last;  // see AttentionKernel
    /// The first rows of the sequence where all sequences follow each other.
    std::optional<Leaf<std::uint32_t>> query_row{}, key_row{};
};

/// Blocks have the last queries of a head first, which see the most keys if they see none behind their own.
BlockPlace place_of_block(const Numbers& with, std::uint32_t of_block) {
    const auto tiles = tiles_of(with.queries, of_block);
    const auto first_query = value((tiles - 1u - block_id().x % tiles) * of_block);
    const auto head = value(block_id().x / tiles % with.heads);
    const auto sequence = value(block_id().x / tiles / with.heads);
    return {value(with.queries), value(with.keys), first_query, head, sequence, value(with.first), value(with.last)};
}

/// Sequence s, from row `offset` on, has blocks from number offset / of_block + s on, in each head as many as its
/// queries need or one more, which has nothing to do.
template <class T>
BlockPlace place_by_offsets(const Numbers& with, const Extras<T>& extras, std::uint32_t of_block) {
    const auto& starts = *extras.query_offsets;
    const auto blocks = value(grid_dim().x / with.heads), number = value(blocks - 1u - block_id().x % blocks);
    u32 sequence = 0, behind = *extras.sequences;
    while_([&] { return behind - sequence > 1u; },
           [&] {
               const auto middle = value((sequence + behind) / 2u), start = value(starts[middle]);
               const auto is_before = value(start / of_block + middle <= number);
               sequence = select(is_before, middle, sequence);
               behind = select(is_before, behind, middle);
           });
    const auto found = value(sequence), begin = value(starts[found]), end = value(starts[found + 1u]);
    const auto first_query = value((number - (begin / of_block + found)) * of_block);
    return_if(first_query >= end - begin);
    const auto key_begin = value((*extras.key_offsets)[found]), key_end = value((*extras.key_offsets)[found + 1u]);
    const auto queries = value(end - begin), keys = value(key_end - key_begin);
    const auto shift = value(bit_cast<i32>(keys - queries));
    const auto head = value(block_id().x / blocks);
    const auto first = value(with.first + shift), last = value(with.last + shift);
    return {queries, keys, first_query, head, value(word(0u)), first, last, begin, key_begin};
}

template <class T, std::uint32_t d, std::uint32_t queries_>
class AttentionBlock {
    static constexpr AttentionTile tile = {queries_};
    static constexpr std::uint32_t queries = tile.queries, keys = AttentionTile::keys(d * sizeof(T)),
                                   rows = tile.rows();
    static constexpr bool keeps_queries = sizeof(T) == 2 && rows * d <= 2560;  // 40 registers
    using M = ProductInF32<T>;
    using Queries = SharedTile<T, 1, queries, d>;
    using Keys = SharedTile<T, 1, keys, d>;
    using Scores = WarpTiles<M, rows, keys>;
    using Softmax = OnlineSoftmax<rows>;
    using U32 = Leaf<std::uint32_t>;
    using I32 = Leaf<std::int32_t>;

public:
    AttentionBlock(const AttentionKernel& is, const Numbers& with, const Extras<T>& extras)
        : is_(is), with_(with), extras_(extras) {}

    void run(const In<T>& Q, const In<T>& K, const In<T>& V, const Out<T>& O) {
        require_linear_blocks();
        require_threads(tile.threads);
        const auto kv_head = value(head_ / with_.group);
        const auto of_q = rows_of_head(Q, with_.q, sequence_, head_, all_queries_, d, at_.query_row);
        const auto of_k = rows_of_head(K, with_.k, sequence_, kv_head, all_keys_, d, at_.key_row);
        const auto of_v = rows_of_head(V, with_.v, sequence_, kv_head, all_keys_, d, at_.key_row);
        const TileSource<Queries, tile.threads, Along::Columns> from_q(of_q, first_query_, {is_.q_access});
        const TileSource<Keys, tile.threads, Along::Rows> from_k(of_k, 0,
                                                                 {.bytes = is_.k_access, .saves_registers = true}),
            from_v(of_v, 0, {.bytes = is_.v_access, .saves_registers = true});
        const LeftFactor<M, Queries, Major::K> left(q_, warp_row_);
        const RightFactor<M, Keys, Major::K> right_k(k_, 0);
        const RightFactor<M, Keys, Major::MN> right_v(v_, 0);

        const auto [begin, end] = tiles_of_keys();
        from_q.load(q_[0], 0);
        copy_commit();
        from_k.load(k_[0], begin);
        copy_commit();
        copy_wait<1>();
        sync_block();
        const auto queries_in_tile = q_[0];
        std::optional<RegisterFactor<M, rows, d>> kept;
        if constexpr (keeps_queries) kept.emplace(left, queries_in_tile);

        for (auto number : range(begin, end)) {
            copy_wait<0>();
            sync_block();
            from_v.load(v_[0], number);
            copy_commit();
            Scores scores(0.0f);
            if constexpr (keeps_queries)
                scores.accumulate(*kept, right_k, k_[0]);
            else
                scores.accumulate(left.of(queries_in_tile), right_k, k_[0]);
            finish_scores(scores, value(number * keys));
            if (is_.has_cap || is_.has_bias)
                softmax_.take(scores, std::numbers::log2e_v<float>, sums_);
            else
                softmax_.take(scores, with_.factor, sums_);
            const RegisterFactor<M, rows, keys> weights(scores);
            copy_wait<0>();
            sync_block();
            if_(number + 1u < end, [&] { from_k.load(k_[0], value(number + 1u)); });
            copy_commit();
            sums_.accumulate(weights, right_v, v_[0]);
        }
        copy_wait<0>();
        softmax_.finish(sums_);
        store(rows_of_head(O, with_.o, sequence_, head_, all_queries_, d, at_.query_row));
    }

private:
    /// Which tiles of keys some query of the block sees: from, to.
    std::pair<U32, U32> tiles_of_keys() const {
        const auto last_query = value(bit_cast<i32>(min(first_query_ + queries, all_queries_)) - 1);
        U32 begin = value(word(0)), end = tiles_of(all_keys_, keys);
        if (is_.has_before) begin = value(bit_cast<u32>(max(bit_cast<i32>(first_query_) + at_.first, 0)) / keys);
        if (is_.has_behind)
            end =
                tiles_of(value(bit_cast<u32>(max(min(bit_cast<i32>(all_keys_), last_query + at_.last + 1), 0))), keys);
        return {begin, end};
    }

    /// From products to scores: their cap, the bias, and -infinity for keys that a query does not see.
    void finish_scores(Scores& scores, const U32& first_key) {
        const auto key = value(first_key + lane_id() % 4u * 2u);  // the lane's first
        const auto each = [&](auto&& f) {
            for (std::uint32_t r = 0; r < Softmax::rows; ++r) {
                const auto query = value(lane_query_ + 8 * r);
                Softmax::each_of_row(scores, r, [&](auto& score, std::uint32_t column) { f(score, query, column); });
            }
        };
        if (is_.has_cap)
            each([&](auto& score, const auto&, std::uint32_t) {
                // cap * tanh(x) for 2^(factor * score) = exp(2 x)
                score = fma(approx::rcp(exp2_or_zero(score * with_.factor) + 1.0f), -2.0f * with_.cap, with_.cap);
            });
        if (is_.has_bias) {
            const auto bias = rows_of_head(*extras_.bias, *extras_.of_bias, sequence_, head_, all_queries_, all_keys_);
            each([&](auto& score, const auto& query, std::uint32_t column) {
                const auto at = value(key + column);
                const auto more = cast<f32>(bias.load_if((query < all_queries_) & (at < all_keys_), query, at, T{}));
                score = is_.has_cap ? value(score + more) : value(fma(score, with_.factor, more));
            });
        }
        const auto from = bit_cast<i32>(first_key), first = bit_cast<i32>(first_query_), all = bit_cast<i32>(all_keys_);
        pred is_at_edge = from + std::int32_t(keys) > all;
        if (is_.has_before) is_at_edge = is_at_edge | (from < first + at_.first + std::int32_t(queries - 1));
        if (is_.has_behind) is_at_edge = is_at_edge | (from + std::int32_t(keys - 1) > first + at_.last);
        if_(is_at_edge, [&] {
            for (std::uint32_t r = 0; r < Softmax::rows; ++r) {
                // The first key that the lane's query sees, and the first that it does not, from the lane's own on.
                const auto query = value(bit_cast<i32>(lane_query_) + std::int32_t(8 * r));
                const auto own = bit_cast<i32>(key);
                const auto seen = value(query + at_.first - own);
                const auto unseen = value((is_.has_behind ? value(min(all, query + at_.last + 1)) : value(all)) - own);
                Softmax::each_of_row(scores, r, [&](auto& score, std::uint32_t column) {
                    pred sees = unseen > std::int32_t(column);
                    if (is_.has_before) sees = sees & (seen <= std::int32_t(column));
                    score = select(sees, score, -std::numeric_limits<float>::infinity());
                });
            }
        });
    }

    void store(const Out<T, 2>& o) {
        constexpr std::uint32_t count = 16 / sizeof(T);
        put_rows(sums_, q_[0], warp_row_);
        each_piece(q_[0], warp_row_, rows, [&](const auto& row, const auto& column, const auto& v) {
            const auto query = value(first_query_ + warp_row_ + row);
            if_(query < all_queries_, [&] {
                if (is_.o_is_aligned)
                    o.template vec<int(count)>(query, column / count) = v;
                else
                    for (std::uint32_t e = 0; e < count; ++e) o[query, column + e] = v.lane(e);
            });
        });
        if (!is_.has_log_sum) return;
        const auto log_sums = elements_of_head(*extras_.log_sum, *extras_.of_log_sum, sequence_, head_, at_.query_row);
        for (std::uint32_t r = 0; r < Softmax::rows; ++r) {
            const auto query = value(lane_query_ + 8 * r);
            log_sums.store_if((lane_id() % 4u == 0u) & (query < all_queries_), query,
                              softmax_.log2_sum(r) * std::numbers::ln2_v<float>);
        }
    }

    const AttentionKernel& is_;
    const Numbers& with_;
    const Extras<T>& extras_;
    BlockPlace at_ = is_.has_offsets ? place_by_offsets(with_, extras_, queries) : place_of_block(with_, queries);
    U32 all_queries_ = at_.queries, all_keys_ = at_.keys;
    U32 first_query_ = at_.first_query, head_ = at_.head, sequence_ = at_.sequence;
    U32 warp_row_ = value(warp_id() * rows);
    U32 lane_query_ = value(first_query_ + warp_row_ + lane_id() / 4u);  // of the lane's row 0
    Queries q_;
    Keys k_, v_;
    Softmax softmax_;
    WarpTiles<M, rows, d> sums_{0.0f};
};

template <class T, std::uint32_t d, std::uint32_t queries>
trace::KernelHandle made(const AttentionKernel& is) {
    constexpr std::size_t usual = 24;
    const auto make = [&]<class... E>(const std::array<const char*, sizeof...(E)>& more, auto set) {
        ParameterNames<usual + sizeof...(E)> names{"Q",      "K",     "V",          "O",      "queries", "keys",
                                                   "heads",  "group", "Q_sequence", "Q_head", "Q_row",   "K_sequence",
                                                   "K_head", "K_row", "V_sequence", "V_head", "V_row",   "O_sequence",
                                                   "O_head", "O_row", "factor",     "cap",    "first",   "last"};
        std::ranges::copy(more, names.names + usual);
        return kernel(is.name().c_str(), names,
                      [=](In<T> Q, In<T> K, In<T> V, Out<T> O, u32 all_queries, u32 all_keys, u32 heads, u32 group,
                          u32 q0, u32 q1, u32 q2, u32 k0, u32 k1, u32 k2, u32 v0, u32 v1, u32 v2, u32 o0, u32 o1,
                          u32 o2, f32 factor, f32 cap, i32 first, i32 last, E... further) {
                          const Numbers numbers{all_queries,  all_keys,     heads,  group, {q0, q1, q2}, {k0, k1, k2},
                                                {v0, v1, v2}, {o0, o1, o2}, factor, cap,   first,        last};
                          Extras<T> extras;
                          set(extras, further...);
                          AttentionBlock<T, d, queries>(is, numbers, extras).run(Q, K, V, O);
                      })
            // Of f32 ptxas would rather spill than have one block less.
            .launch_bounds(AttentionTile::threads, sizeof(T) == 4 ? 1 : 0)
            .handle();
    };
    using Bias = In<T>;
    using LogSum = Out<float>;
    const auto set_bias = [](Extras<T>& to, const Bias& bias, const u32& b0, const u32& b1, const u32& b2) {
        to.bias.emplace(bias);
        to.of_bias.emplace(b0, b1, b2);
    };
    const auto set_log_sum = [](Extras<T>& to, const LogSum& log_sum, const u32& l0, const u32& l1) {
        to.log_sum.emplace(log_sum);
        to.of_log_sum.emplace(l0, l1, 1u);
    };
    using Offsets = In<std::uint32_t>;
    const auto set_offsets = [](Extras<T>& to, const Offsets& queries_at, const Offsets& keys_at, const u32& count) {
        to.query_offsets.emplace(queries_at);
        to.key_offsets.emplace(keys_at);
        to.sequences.emplace(count);
    };
    if (is.has_offsets && is.has_log_sum)
        return make.template operator()<Offsets, Offsets, u32, LogSum, u32, u32>(
            {"query_offsets", "key_offsets", "sequences", "log_sum", "log_sum_sequence", "log_sum_head"},
            [=](Extras<T>& to, const Offsets& queries_at, const Offsets& keys_at, const u32& count,
                const LogSum& log_sum, const u32& l0, const u32& l1) {
                set_offsets(to, queries_at, keys_at, count);
                set_log_sum(to, log_sum, l0, l1);
            });
    if (is.has_offsets)
        return make.template operator()<Offsets, Offsets, u32>({"query_offsets", "key_offsets", "sequences"},
                                                               set_offsets);
    if (is.has_bias && is.has_log_sum)
        return make.template operator()<Bias, u32, u32, u32, LogSum, u32, u32>(
            {"bias", "bias_sequence", "bias_head", "bias_row", "log_sum", "log_sum_sequence", "log_sum_head"},
            [=](Extras<T>& to, const Bias& bias, const u32& b0, const u32& b1, const u32& b2, const LogSum& log_sum,
                const u32& l0, const u32& l1) {
                set_bias(to, bias, b0, b1, b2);
                set_log_sum(to, log_sum, l0, l1);
            });
    if (is.has_bias)
        return make.template operator()<Bias, u32, u32, u32>({"bias", "bias_sequence", "bias_head", "bias_row"},
                                                             set_bias);
    if (is.has_log_sum)
        return make.template operator()<LogSum, u32, u32>({"log_sum", "log_sum_sequence", "log_sum_head"}, set_log_sum);
    return make.template operator()<>({}, [](Extras<T>&) {});
}

/// Of f32, too, blocks of 128 queries: a lane has twice as many products with what it reads of K and V.
template <class T, std::uint32_t d>
trace::KernelHandle of_queries(const AttentionKernel& is) {
    if constexpr (d < 128)
        if (is.queries == 128) return made<T, d, 128>(is);
    return made<T, d, 64>(is);
}
template <class T>
trace::KernelHandle of_type(const AttentionKernel& is) {
    switch (is.head_dim) {
        case 64: return of_queries<T, 64>(is);
        case 80: return of_queries<T, 80>(is);
        case 96: return of_queries<T, 96>(is);
        case 128: return of_queries<T, 128>(is);
        default: return of_queries<T, 256>(is);
    }
}

}  // namespace

std::string AttentionKernel::name() const {
    std::string out = "flash_attention_";
    out += type == ir::Type::F16 ? "f16" : type == ir::Type::BF16 ? "bf16" : "f32";
    out += "_d" + std::to_string(head_dim);
    if (has_offsets) out += "_offsets";
    if (has_before) out += "_before";
    if (has_behind) out += "_behind";
    if (has_cap) out += "_cap";
    if (has_bias) out += "_bias";
    if (has_log_sum) out += "_log_sum";
    return out;
}

trace::KernelHandle AttentionKernel::make() const {
    switch (type) {
        case ir::Type::F16: return of_type<half>(*this);
        case ir::Type::BF16: return of_type<bfloat16>(*this);
        default: return of_type<float>(*this);
    }
}

const trace::KernelHandle& AttentionKernel::handle() const {
    static std::map<AttentionKernel, trace::KernelHandle> kernels;
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    const auto found = kernels.find(*this);
    if (found != kernels.end()) return found->second;
    return kernels.emplace(*this, make()).first->second;
}

}  // namespace ikat::stdlib
