// SPDX-License-Identifier: Apache-2.0
// What both kernels of flash_attention() have: the numbers of a launch, arrays that a kernel may be made without,
// sequences by offsets, and what comes between products and scores. Of a function sees() all go the same way through
// tiles of keys: from one that some query may see to the next.
#pragma once
#include <algorithm>
#include <functional>
#include <limits>
#include <numbers>
#include <optional>

#include "dsl/kernel/optional.hpp"
#include "stdlib/attention/bound_attention.hpp"
#include "stdlib/attention/soft_cap.hpp"
#include "stdlib/tile/online_softmax.hpp"
#include "stdlib/tile/schedule.hpp"
#include "stdlib/tile/tile_rows.hpp"

namespace ikat::stdlib {

/// The numbers of a launch; see AttentionKernel.
struct ScoreParameters {
    BOOST_HANA_DEFINE_STRUCT(ScoreParameters, (std::uint32_t, group), (float, factor), (float, cap),
                             (std::int32_t, first), (std::int32_t, last), (std::uint32_t, sequences));
};

/// What scores are made with: the numbers of a launch, and what a kernel may be made without.
template <class T>
struct Scoring {
    Leaf<std::uint32_t> queries, keys, heads, group;
    Leaf<float> factor, cap;
    Leaf<std::int32_t> first, last;
    Leaf<std::uint32_t> sequences;
    Optional<In<T, 4>> bias;
    /// Where the rows of each sequence begin, and those of the next one.
    Optional<In<std::uint32_t>> query_offsets, key_offsets;
    Optional<In<float>> sinks;
    Optional<Out<float, 3>> log_sum;
    const BoundAttention* own;  // null if there are no functions

    /// By the extents of Q and K, or of what stands for them.
    Scoring(const Leaf<std::uint32_t>& queries, const Leaf<std::uint32_t>& keys, const Leaf<std::uint32_t>& heads,
            const Struct<ScoreParameters>& with, const Optional<In<T, 4>>& bias,
            const Optional<In<std::uint32_t>>& query_offsets, const Optional<In<std::uint32_t>>& key_offsets,
            const Optional<In<float>>& sinks, const Optional<Out<float, 3>>& log_sum, const BoundAttention* own)
        : queries(queries),
          keys(keys),
          heads(heads),
          group(with[&ScoreParameters::group]),
          factor(with[&ScoreParameters::factor]),
          cap(with[&ScoreParameters::cap]),
          first(with[&ScoreParameters::first]),
          last(with[&ScoreParameters::last]),
          sequences(with[&ScoreParameters::sequences]),
          bias(bias),
          query_offsets(query_offsets),
          key_offsets(key_offsets),
          sinks(sinks),
          log_sum(log_sum),
          own(own) {}
};

/// Rows of a head, from row `first` of it on, if it is given, each of `columns` elements.
template <class Heads>
auto rows_of_head(const Heads& x, const Word& sequence, const Word& head, const Word& rows, const Word& columns,
                  const std::optional<Leaf<std::uint32_t>>& first = {}) {
    const auto matrix = x[word(sequence), word(head)];
    return first ? matrix.window(*first, 0u, word(rows), word(columns))
                 : matrix.window(0u, 0u, word(rows), word(columns));
}

/// Accumulators of a warp, rounded, to a matrix, by way of rows `warp_row` and on of a stage, which are the warp's own:
/// row `first_row` of the matrix, which has `rows`, is the stage's row 0.
void store_rows(const auto& accumulators, const auto& stage, const Leaf<std::uint32_t>& warp_row,
                const Leaf<std::uint32_t>& lane, const auto& matrix, const Leaf<std::uint32_t>& first_row,
                const Leaf<std::uint32_t>& rows, bool is_aligned) {
    constexpr std::uint32_t count = 16 / sizeof(typename std::remove_cvref_t<decltype(stage)>::element_type);
    put_rows(accumulators, stage, warp_row, lane);
    const auto put = [&](const auto& row, const auto& column, const auto& v) {
        const auto at = value(first_row + warp_row + row);
        if_(at < rows, [&] {
            if (is_aligned)
                matrix.template vec<int(count)>(at, column / count) = v;
            else
                for (std::uint32_t e = 0; e < count; ++e) matrix[at, column + e] = v.lane(e);
        });
    };
    each_piece(stage, warp_row, std::remove_cvref_t<decltype(accumulators)>::m, put, lane);
}

/// Queries that are worked on together, of a head of a sequence.
struct QueriesPlace {
    Leaf<std::uint32_t> queries, keys;  // of the sequence
    Leaf<std::uint32_t> first_query, head, sequence;
    Leaf<std::int32_t> first, last;  // see AttentionKernel
    /// The first rows of the sequence where all sequences follow each other.
    std::optional<Leaf<std::uint32_t>> query_row{}, key_row{};
    /// ... and then its number: `sequence` is 0.
    std::optional<Leaf<std::uint32_t>> number{};

    /// The same of another sequence, or of another head.
    QueriesPlace of_sequence(const Leaf<std::uint32_t>& other) const {
        return {queries, keys, first_query, head, other, first, last, query_row, key_row, number};
    }
    QueriesPlace of_head(const Leaf<std::uint32_t>& other) const {
        return {queries, keys, first_query, other, sequence, first, last, query_row, key_row, number};
    }
    /// The functions of the head, if there are any.
    template <class T>
    std::optional<HeadScores> own(const Scoring<T>& with) const {
        if (!with.own) return {};
        return with.own->at(number ? *number : sequence, head, {queries, keys, query_row, key_row});
    }
    /// Among the keys, where a query is.
    Leaf<std::int32_t> position(const Leaf<std::uint32_t>& query) const {
        return value(bit_cast<i32>(query + keys - queries));
    }
};

/// The sequence of a block, by offsets.
struct SequenceFound {
    Leaf<std::uint32_t> number, begin, end, first_query;
    /// Otherwise there is nothing to do.
    auto has_queries() const { return value(first_query < end - begin); }
};
/// Sequence s, from row `offset` on, has blocks from number offset / of_block + s on, in each head as many as its
/// queries need or one more, which has nothing to do. `starts`: of the queries, or, of blocks of keys, of these.
inline SequenceFound sequence_of_block(const In<std::uint32_t>& starts, const Leaf<std::uint32_t>& sequences,
                                       const Leaf<std::uint32_t>& number, std::uint32_t of_block) {
    u32 sequence = 0, last = sequences;
    while_([&] { return last - sequence > 1u; },
           [&] {
               const auto middle = value((sequence + last) / 2u), start = value(starts[middle]);
               const auto is_before = value(start / of_block + middle <= number);
               sequence = select(is_before, middle, sequence);
               last = select(is_before, last, middle);
           });
    const auto found = value(sequence), begin = value(starts[found]), end = value(starts[found + 1u]);
    return {found, begin, end, value((number - (begin / of_block + found)) * of_block)};
}
template <class T>
SequenceFound sequence_of_block(const Scoring<T>& with, const Leaf<std::uint32_t>& number, std::uint32_t of_block) {
    return sequence_of_block(*with.query_offsets, with.sequences, number, of_block);
}
template <class T>
QueriesPlace place_in_sequence(const Scoring<T>& with, const SequenceFound& found, const Leaf<std::uint32_t>& head) {
    const auto& starts = *with.key_offsets;
    const auto key_begin = value(starts[found.number]), key_end = value(starts[found.number + 1u]);
    const auto queries = value(found.end - found.begin), keys = value(key_end - key_begin);
    const auto shift = value(bit_cast<i32>(keys - queries));
    const auto first = value(with.first + shift), last = value(with.last + shift);
    return {queries, keys, found.first_query, head, value(word(0u)), first, last, found.begin, key_begin, found.number};
}

/// Of a block of `queries` queries. Blocks have the last queries of a head first, which see the most keys if they see
/// none after their own.
template <class T>
QueriesPlace place_of_block(const Scoring<T>& with, bool has_offsets, std::uint32_t of_block) {
    if (has_offsets) {
        const auto blocks = value(grid_dim().x / with.heads), number = value(blocks - 1u - block_id().x % blocks);
        const auto found = sequence_of_block(with, number, of_block);
        return_if(!found.has_queries());
        return place_in_sequence(with, found, value(block_id().x / blocks));
    }
    const auto tiles = tiles_of(with.queries, of_block);
    const auto first_query = value((tiles - 1u - block_id().x % tiles) * of_block);
    const auto head = value(block_id().x / tiles % with.heads);
    const auto sequence = value(block_id().x / tiles / with.heads);
    return {with.queries, with.keys, first_query, head, sequence, with.first, with.last};
}

/// Of a block of `of_block` keys: `head` is one of K, and `first_query` the first key. Blocks have the first keys of a
/// head first, which the most queries see if none sees a key after its own.
template <class T>
QueriesPlace place_of_keys(const Scoring<T>& with, bool has_offsets, std::uint32_t of_block) {
    const auto heads = value(with.heads / with.group);
    if (has_offsets) {
        const auto blocks = value(grid_dim().x / heads);
        const auto found = sequence_of_block(*with.key_offsets, with.sequences, value(block_id().x % blocks), of_block);
        return_if(!found.has_queries());
        const auto& starts = *with.query_offsets;
        const SequenceFound of_queries{found.number, value(starts[found.number]), value(starts[found.number + 1u]),
                                       found.first_query};
        return place_in_sequence(with, of_queries, value(block_id().x / blocks));
    }
    const auto tiles = tiles_of(with.keys, of_block);
    const auto first_key = value(block_id().x % tiles * of_block);
    const auto head = value(block_id().x / tiles % heads), sequence = value(block_id().x / tiles / heads);
    return {with.queries, with.keys, first_key, head, sequence, with.first, with.last};
}

/// A tile of scores.
struct ScoresPlace {
    Leaf<std::uint32_t> first_query, first_key;
    std::uint32_t queries, keys;
    /// lane_id(), recorded where it is used.
    std::function<Leaf<std::uint32_t>()> lane = [] { return value(lane_id()); };
};
/// What sees() tells of a tile.
inline Truth sight_of(const HeadScores& own, const QueriesPlace& of, const ScoresPlace& tile) {
    const auto last_query = value(min(tile.first_query + tile.queries, of.queries) - 1u);
    const auto last_key = value(min(tile.first_key + tile.keys, of.keys) - 1u);
    return own.sees({of.position(tile.first_query), of.position(last_query)},
                    {value(bit_cast<i32>(tile.first_key)), value(bit_cast<i32>(last_key))});
}
/// The first tile, from number `from` on and before `end`, of which some query may see a key, or `end`;
/// place_of(number) is a tile's ScoresPlace.
inline Leaf<std::uint32_t> next_seen(const HeadScores& own, const QueriesPlace& of, const Leaf<std::uint32_t>& from,
                                     const Leaf<std::uint32_t>& end, auto&& place_of) {
    u32 number = from;
    while_([&] { return (number < end) & !sight_of(own, of, place_of(value(number))).possibly; },
           [&] { number = number + 1u; });
    return value(number);
}
/// The same of tiles of `keys` keys, which some of `queries` queries may see.
inline Leaf<std::uint32_t> next_seen(const HeadScores& own, const QueriesPlace& of, std::uint32_t queries,
                                     std::uint32_t keys, const Leaf<std::uint32_t>& from,
                                     const Leaf<std::uint32_t>& end) {
    return next_seen(own, of, from, end, [&](const auto& number) {
        return ScoresPlace{of.first_query, value(number * keys), queries, keys};
    });
}
/// Calls take(number, with_next) for the tiles from `begin` to `end` that some query may see, of which `begin` is one
/// or `end`; next(from) is the first one from there on, if there is a function sees(). with_next(f) calls f(the number
/// of the next one), if there is one.
inline void each_seen(const Leaf<std::uint32_t>& begin, const Leaf<std::uint32_t>& end, bool has_sight, auto&& next,
                      auto&& take) {
    if (!has_sight) {
        for (auto number : range(begin, end))
            take(number, [&](auto&& f) { if_(number + 1u < end, [&] { f(value(number + 1u)); }); });
        return;
    }
    u32 number = begin;
    while_([&] { return number < end; },
           [&] {
               const auto now = value(number), then = next(value(now + 1u));
               take(now, [&](auto&& f) { if_(then < end, [&] { f(then); }); });
               number = then;
           });
}

/// A head's sink, if there are any.
template <class T>
void begin_with_sink(auto& softmax, const Scoring<T>& with, const Leaf<std::uint32_t>& head) {
    if (!with.sinks) return;
    const auto exponent = value((*with.sinks)[head] * std::numbers::log2e_v<float>);
    for (std::uint32_t r = 0; r < softmax.rows; ++r) softmax.begin_with(r, exponent);
}

/// By a function scores().
template <class Softmax, class T>
void change_scores(auto& scores, const auto& is, const Scoring<T>& with, const QueriesPlace& of, const HeadScores& own,
                   const Leaf<std::int32_t>& key, const std::function<Leaf<std::uint32_t>(std::uint32_t r)>& query_of) {
    const bool has_factor = !is.has_cap && !is.has_bias;
    for (std::uint32_t r = 0; r < Softmax::rows; ++r) {
        const auto query = of.position(query_of(r));
        each_of_row(scores, r, [&](auto& score, std::uint32_t column) {
            const auto given = has_factor ? value(score * with.factor) : value(score);
            score = own.score(given, query, value(key + std::int32_t(column)));
        });
    }
}
/// By a function sees().
template <class Softmax>
void hide_scores(auto& scores, const QueriesPlace& of, const ScoresPlace& tile, const HeadScores& own,
                 const std::function<Leaf<std::uint32_t>(std::uint32_t r)>& query_of) {
    if_(!sight_of(own, of, tile).surely, [&] {
        const auto key = value(bit_cast<i32>(tile.first_key + tile.lane() % 4u * 2u));
        for (std::uint32_t r = 0; r < Softmax::rows; ++r) {
            const auto query = of.position(query_of(r));
            each_of_row(scores, r, [&](auto& score, std::uint32_t column) {
                const auto sees = own.sees(query, value(key + std::int32_t(column)));
                score = select(sees, score, -std::numeric_limits<float>::infinity());
            });
        }
    });
}

/// From products to scores, or, of a wide cap, to exponents: their cap, the bias, what functions make of them, and
/// -infinity for keys that a query does not see. query_of(r) is the query of the lane's row r.
template <class Softmax, class T>
void finish_scores(auto& scores, const auto& is, const Scoring<T>& with, const QueriesPlace& of,
                   const std::optional<HeadScores>& own, const ScoresPlace& tile,
                   const std::function<Leaf<std::uint32_t>(std::uint32_t r)>& query_of) {
    constexpr float log2e = std::numbers::log2e_v<float>;
    const auto own_key = [&] { return value(tile.first_key + tile.lane() % 4u * 2u); };
    if (is.has_cap)
        for (std::uint32_t r = 0; r < Softmax::rows; ++r)
            each_of_row(scores, r, [&](auto& score, std::uint32_t) {
                score =
                    is.has_wide_cap ? wide_cap(score, with.factor, with.cap) : narrow_cap(score, with.factor, with.cap);
            });
    if (is.has_bias) {
        const auto key = own_key();
        // By offsets, rows are those of all queries, and of keys there may be more than the bias has columns.
        const auto columns = value(of.query_row ? value(min(of.keys, with.bias->extent(3))) : of.keys);
        const auto remaining = value(bit_cast<i32>(columns) - bit_cast<i32>(key));
        const auto of_head = (*with.bias)[of.sequence, of.head];
        for (std::uint32_t r = 0; r < Softmax::rows; ++r) {
            // Queries that there are not have the bias of the last one.
            const auto query = value(min(query_of(r), of.queries - 1u));
            const auto bias = of_head[of.query_row ? value(query + *of.query_row) : query].slice(key);
            each_of_row(scores, r, [&](auto& score, std::uint32_t column) {
                const auto more = cast<f32>(bias.load_if(remaining > std::int32_t(column), column, T{}));
                score = is.has_cap ? value(score + more) : value(fma(score, with.factor, more));
            });
        }
    }
    if (own && own->has_scores())
        change_scores<Softmax>(scores, is, with, of, *own, value(bit_cast<i32>(own_key())), query_of);
    if (is.has_wide_cap)
        for (std::uint32_t r = 0; r < Softmax::rows; ++r)
            each_of_row(scores, r, [&](auto& score, std::uint32_t) { score = score * log2e; });
    const auto from = bit_cast<i32>(tile.first_key), first = bit_cast<i32>(tile.first_query),
               all = bit_cast<i32>(of.keys);
    pred is_at_edge = from + std::int32_t(tile.keys) > all;
    if (is.has_before) is_at_edge = is_at_edge | (from < first + of.first + std::int32_t(tile.queries - 1));
    if (is.has_after) is_at_edge = is_at_edge | (from + std::int32_t(tile.keys - 1) > first + of.last);
    if_(is_at_edge, [&] {
        const auto key = value(bit_cast<i32>(own_key()));
        for (std::uint32_t r = 0; r < Softmax::rows; ++r) {
            // The first key that the lane's query sees, and the first that it does not, from the lane's own on.
            const auto query = value(bit_cast<i32>(query_of(r)));
            const auto seen = value(query + of.first - key);
            const auto unseen = value((is.has_after ? value(min(all, query + of.last + 1)) : value(all)) - key);
            each_of_row(scores, r, [&](auto& score, std::uint32_t column) {
                pred sees = unseen > std::int32_t(column);
                if (is.has_before) sees = sees & (seen <= std::int32_t(column));
                score = select(sees, score, -std::numeric_limits<float>::infinity());
            });
        }
    });
    if (own && own->has_sight()) hide_scores<Softmax>(scores, of, tile, *own, query_of);
}

}  // namespace ikat::stdlib
