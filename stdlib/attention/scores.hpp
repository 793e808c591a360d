// SPDX-License-Identifier: Apache-2.0
// What both kernels of flash_attention() have: the numbers of a launch, arrays that may be left out, sequences by
// offsets, and what comes between products and scores.
#pragma once
#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <numbers>
#include <optional>

#include "dsl/kernel/kernel.hpp"
#include "stdlib/attention/soft_cap.hpp"
#include "stdlib/tile/online_softmax.hpp"
#include "stdlib/tile/schedule.hpp"

namespace ikat::stdlib {

/// How many elements apart sequences, heads and rows of an array are.
struct HeadPitches {
    u32 sequence, head, row;
};
/// Elements of a head of a sequence, from a row on.
template <class E, trace::Direction direction>
auto elements_of_head(const Pointer<E, direction>& x, const HeadPitches& pitches, const Word& sequence,
                      const Word& head, const std::optional<Leaf<std::uint32_t>>& row = {}) {
    const auto first = value(mul_wide(word(sequence), pitches.sequence) + mul_wide(word(head), pitches.head));
    return x.slice(row ? value(first + mul_wide(*row, pitches.row)) : first);
}
/// Its rows.
template <class E, trace::Direction direction>
auto rows_of_head(const Pointer<E, direction>& x, const HeadPitches& pitches, const Word& sequence, const Word& head,
                  const Word& rows, const Word& columns, const std::optional<Leaf<std::uint32_t>>& row = {}) {
    const ikat::detail::ViewShape<2> shape{{word(rows).recorded(), word(columns).recorded()}, {pitches.row.recorded()}};
    return Pointer<E, direction, 2>(trace::fixed(elements_of_head(x, pitches, sequence, head, row).array()), shape);
}

/// The numbers of each launch; see AttentionKernel.
struct AttentionNumbers {
    u32 queries, keys, heads, group;
    f32 factor, cap;
    i32 first, last;
};
/// What may be left out.
template <class T>
struct AttentionExtras {
    std::optional<In<T>> bias{};
    std::optional<Out<float>> log_sum{};
    std::optional<HeadPitches> of_bias{}, of_log_sum{};
    /// Where the rows of each sequence begin, and those of the next one.
    std::optional<In<std::uint32_t>> query_offsets{}, key_offsets{};
    std::optional<u32> sequences{};
};

/// Calls make<E...>(names, set) for what a kernel has behind its usual parameters; set(extras, E...) takes them.
template <class T>
auto with_extras(const auto& is, auto&& make) {
    using Bias = In<T>;
    using LogSum = Out<float>;
    using Offsets = In<std::uint32_t>;
    using Extras = AttentionExtras<T>;
    const auto set_bias = [](Extras& to, const Bias& bias, const u32& b0, const u32& b1, const u32& b2) {
        to.bias.emplace(bias);
        to.of_bias.emplace(b0, b1, b2);
    };
    const auto set_log_sum = [](Extras& to, const LogSum& log_sum, const u32& l0, const u32& l1) {
        to.log_sum.emplace(log_sum);
        to.of_log_sum.emplace(l0, l1, 1u);
    };
    const auto set_offsets = [](Extras& to, const Offsets& queries_at, const Offsets& keys_at, const u32& count) {
        to.query_offsets.emplace(queries_at);
        to.key_offsets.emplace(keys_at);
        to.sequences.emplace(count);
    };
    if (is.has_offsets && is.has_log_sum)
        return make.template operator()<Offsets, Offsets, u32, LogSum, u32, u32>(
            {"query_offsets", "key_offsets", "sequences", "log_sum", "log_sum_sequence", "log_sum_head"},
            [=](Extras& to, const Offsets& queries_at, const Offsets& keys_at, const u32& count, const LogSum& log_sum,
                const u32& l0, const u32& l1) {
                set_offsets(to, queries_at, keys_at, count);
                set_log_sum(to, log_sum, l0, l1);
            });
    if (is.has_offsets)
        return make.template operator()<Offsets, Offsets, u32>({"query_offsets", "key_offsets", "sequences"},
                                                               set_offsets);
    if (is.has_bias && is.has_log_sum)
        return make.template operator()<Bias, u32, u32, u32, LogSum, u32, u32>(
            {"bias", "bias_sequence", "bias_head", "bias_row", "log_sum", "log_sum_sequence", "log_sum_head"},
            [=](Extras& to, const Bias& bias, const u32& b0, const u32& b1, const u32& b2, const LogSum& log_sum,
                const u32& l0, const u32& l1) {
                set_bias(to, bias, b0, b1, b2);
                set_log_sum(to, log_sum, l0, l1);
            });
    if (is.has_bias)
        return make.template operator()<Bias, u32, u32, u32>({"bias", "bias_sequence", "bias_head", "bias_row"},
                                                             set_bias);
    if (is.has_log_sum)
        return make.template operator()<LogSum, u32, u32>({"log_sum", "log_sum_sequence", "log_sum_head"}, set_log_sum);
    return make.template operator()<>({}, [](Extras&) {});
}

/// Queries that are worked on together, of a head of a sequence.
struct QueriesPlace {
    Leaf<std::uint32_t> queries, keys;  // of the sequence
    Leaf<std::uint32_t> first_query, head, sequence;
    Leaf<std::int32_t> first, last;  // see AttentionKernel
    /// The first rows of the sequence where all sequences follow each other.
    std::optional<Leaf<std::uint32_t>> query_row{}, key_row{};
};

/// The sequence of a block, by offsets.
struct SequenceFound {
    Leaf<std::uint32_t> number, begin, end, first_query;
    /// Otherwise there is nothing to do.
    auto has_queries() const { return value(first_query < end - begin); }
};
/// Sequence s, from row `offset` on, has blocks from number offset / of_block + s on, in each head as many as its
/// queries need or one more, which has nothing to do.
template <class T>
SequenceFound sequence_of_block(const AttentionExtras<T>& extras, const Leaf<std::uint32_t>& number,
                                std::uint32_t of_block) {
    const auto& starts = *extras.query_offsets;
    u32 sequence = 0, behind = *extras.sequences;
    while_([&] { return behind - sequence > 1u; },
           [&] {
               const auto middle = value((sequence + behind) / 2u), start = value(starts[middle]);
               const auto is_before = value(start / of_block + middle <= number);
               sequence = select(is_before, middle, sequence);
               behind = select(is_before, behind, middle);
           });
    const auto found = value(sequence), begin = value(starts[found]), end = value(starts[found + 1u]);
    return {found, begin, end, value((number - (begin / of_block + found)) * of_block)};
}
template <class T>
QueriesPlace place_in_sequence(const AttentionNumbers& with, const AttentionExtras<T>& extras,
                               const SequenceFound& found, const Leaf<std::uint32_t>& head) {
    const auto& starts = *extras.key_offsets;
    const auto key_begin = value(starts[found.number]), key_end = value(starts[found.number + 1u]);
    const auto queries = value(found.end - found.begin), keys = value(key_end - key_begin);
    const auto shift = value(bit_cast<i32>(keys - queries));
    const auto first = value(with.first + shift), last = value(with.last + shift);
    return {queries, keys, found.first_query, head, value(word(0u)), first, last, found.begin, key_begin};
}

/// A tile of scores.
struct ScoresPlace {
    Leaf<std::uint32_t> first_query, first_key;
    std::uint32_t queries, keys;
};
/// From products to scores, or, of a wide cap, to exponents: their cap, the bias, and -infinity for keys that a query
/// does not see. query_of(r) is the query of the lane's row r.
template <class Softmax, class T>
void finish_scores(auto& scores, const auto& is, const AttentionNumbers& with, const AttentionExtras<T>& extras,
                   const QueriesPlace& of, const ScoresPlace& tile,
                   const std::function<Leaf<std::uint32_t>(std::uint32_t r)>& query_of) {
    constexpr float log2e = std::numbers::log2e_v<float>;
    const auto own_key = [&] { return value(tile.first_key + lane_id() % 4u * 2u); };
    if (is.has_cap)
        for (std::uint32_t r = 0; r < Softmax::rows; ++r)
            Softmax::each_of_row(scores, r, [&](auto& score, std::uint32_t) {
                score =
                    is.has_wide_cap ? wide_cap(score, with.factor, with.cap) : narrow_cap(score, with.factor, with.cap);
            });
    if (is.has_bias) {
        const auto key = own_key();
        const auto behind = value(bit_cast<i32>(of.keys) - bit_cast<i32>(key));
        const auto of_head = elements_of_head(*extras.bias, *extras.of_bias, of.sequence, of.head);
        for (std::uint32_t r = 0; r < Softmax::rows; ++r) {
            // Queries that there are not have the bias of the last one.
            const auto query = value(min(query_of(r), of.queries - 1u));
            const auto bias = of_head.slice(value(mul_wide(query, extras.of_bias->row) + cast<u64>(key)));
            Softmax::each_of_row(scores, r, [&](auto& score, std::uint32_t column) {
                const auto more = cast<f32>(bias.load_if(behind > std::int32_t(column), column, T{}));
                score = is.has_cap ? value(score + more) : value(fma(score, with.factor, more));
            });
        }
    }
    if (is.has_wide_cap)
        for (std::uint32_t r = 0; r < Softmax::rows; ++r)
            Softmax::each_of_row(scores, r, [&](auto& score, std::uint32_t) { score = score * log2e; });
    const auto from = bit_cast<i32>(tile.first_key), first = bit_cast<i32>(tile.first_query),
               all = bit_cast<i32>(of.keys);
    pred is_at_edge = from + std::int32_t(tile.keys) > all;
    if (is.has_before) is_at_edge = is_at_edge | (from < first + of.first + std::int32_t(tile.queries - 1));
    if (is.has_behind) is_at_edge = is_at_edge | (from + std::int32_t(tile.keys - 1) > first + of.last);
    if_(is_at_edge, [&] {
        const auto key = value(bit_cast<i32>(own_key()));
        for (std::uint32_t r = 0; r < Softmax::rows; ++r) {
            // The first key that the lane's query sees, and the first that it does not, from the lane's own on.
            const auto query = value(bit_cast<i32>(query_of(r)));
            const auto seen = value(query + of.first - key);
            const auto unseen = value((is.has_behind ? value(min(all, query + of.last + 1)) : value(all)) - key);
            Softmax::each_of_row(scores, r, [&](auto& score, std::uint32_t column) {
                pred sees = unseen > std::int32_t(column);
                if (is.has_before) sees = sees & (seen <= std::int32_t(column));
                score = select(sees, score, -std::numeric_limits<float>::infinity());
            });
        }
    });
}

}  // namespace ikat::stdlib
