// SPDX-License-Identifier: Apache-2.0
// Attention: O = softmax(scale * Q K^T) V for each head, of which the scores are never in memory.
//
//     flash_attention(device, Q.view(batch, heads, queries, 128), K.view(batch, kv_heads, keys, 128),
//                     V.view(batch, kv_heads, keys, 128), O.view(batch, heads, queries, 128), {.causal = true});
//
// Elements are half or bfloat16, which are multiplied on tensor cores, or float, scores and sums f32; the exponentials
// are rounded to the elements' type before they are multiplied with V, as is O at the end.
#pragma once
#include <optional>
#include <type_traits>

#include "runtime/tensor_view.hpp"
#include "stdlib/attention/own_scores.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

/// Heads that follow each other in a row, as a layer makes them: a view (sequences, rows, heads, elements), or (rows,
/// heads, elements).
template <class T, int rank>
requires(rank == 3 || rank == 4) auto heads_in_rows(const runtime::BufferView<T, rank>& view) {
    const TensorView heads = rank == 4 ? TensorView(view).permuted({0, 2, 1, 3}) : TensorView(view).permuted({1, 0, 2});
    if constexpr (std::is_const_v<T>)
        return heads;
    else
        return MutableTensorView(heads);
}

/// The same of quantised rows, which quantised_view() gives.
inline TensorView heads_in_rows(const TensorView& rows) {
    return rows.rank == 4 ? rows.permuted({0, 2, 1, 3}) : rows.permuted({1, 0, 2});
}

/// By which products: on any device from sm_80 on, or, on sm_90a, by warpgroups whose operands TMA copies.
enum class AttentionPath : std::uint8_t { chosen, mma_sync, wgmma };

/// What attention sees and adds, and how it is computed: what is not said is chosen.
struct AttentionOptions {
    /// The last query belongs to the last key: query i is at key p = i + keys - queries, and, causal, sees none after
    /// it. A window: it sees keys p - window_left to p + window_right.
    bool causal = false;
    std::optional<std::uint32_t> window_left{}, window_right{};
    /// What scores are multiplied with, a positive number; 1 / sqrt(head_dim) if it is not given.
    std::optional<float> scale{};
    /// Scores become soft_cap * tanh(score / soft_cap), of caps up to 64 within 2^-21 soft_cap, of others within 2^-19
    /// of themselves; 0 or infinity for none. Caps are within 2^-100 and 2^127: others count as the nearer of these.
    float soft_cap = 0;
    /// Added to scores then: sequences, heads, queries, keys, of Q's type; one sequence or head is for all of them.
    std::optional<TensorView> bias{};
    /// What scores become then, and which keys a query sees of those that it sees by the options above: functions of
    /// your own, see own_scores.hpp. Tiles of keys of which no query of a block sees one, as far as sees() tells of
    /// tiles, are not read.
    std::optional<OwnScores> scores{};
    std::optional<OwnSight> sees{};
    /// Learned sinks: a score for each head of Q, of float, which each query has in addition to those of its keys,
    /// without a value. It is not multiplied, and no function is given it; -infinity is none. A query that sees no keys
    /// has it alone.
    std::optional<TensorView> sinks{};
    /// Where the logarithm of the sum of exp(score) of each query goes, with that of its sink: queries, heads of them
    /// or sequences of heads, of float; -infinity where there is no score.
    std::optional<MutableTensorView> log_sum{};
    /// Sequences of different lengths, one after the other: Q, K, V and O are (heads, rows, elements) of all of them,
    /// log_sum is (heads, rows). Sequence s has the queries of rows query_offsets[s] to query_offsets[s + 1] - 1, and
    /// likewise keys: std::uint32_t, one more than there are sequences, in ascending order up to the number of rows at
    /// most, which is not checked: what they give beyond Q, K and V is an access out of bounds, which the emulator
    /// reports. Both or neither. The bias is (1, heads, rows, columns) then: a row for each query, whose elements are
    /// for the keys of its sequence; keys after the last column have none. O has the bits of calls for each sequence,
    /// by the same path with as many queries of a block and keys of a tile.
    std::optional<TensorView> query_offsets{}, key_offsets{};
    /// K and V are (pages, kv_heads, rows, head_dim), and key j of sequence s is row j % rows of page
    /// pages(s, j / rows): std::uint32_t, sequences by the most pages that one has, as in IncrementalOptions. A
    /// sequence has as many keys as its pages have room for, or, with offsets, key_offsets[s + 1] - key_offsets[s];
    /// entries after these are not read. By mma.sync.
    std::optional<TensorView> pages{};
    /// wgmma needs a device that is opened for sm_90a, elements of 16 bits, rows of Q, K, V and O that begin at
    /// multiples of 16 bytes; otherwise it is an error. Chosen where it can be, of more than 64 queries, on average of
    /// all sequences.
    AttentionPath path = AttentionPath::chosen;
    /// The queries of a block: 64 or, without a bias, 128, of rows of less than 128 elements, of f32 only if K and V
    /// are neither encoded nor in pages, and of rows of 128 elements of 16 bits, also without a soft cap, encodings and
    /// pages; by wgmma 64, 128 or, of rows of 64 elements, 192. 0: chosen, as many as leave no multiprocessor without a
    /// block.
    std::uint32_t queries_of_block = 0;
};

/// O = softmax(scale * Q K^T) V for each head of each sequence. Q, K, V and O are views of sequences of heads of rows,
/// heads of rows, or rows; sequences, heads and rows may be any number of elements apart. A row has 64, 80, 96, 128 or
/// 256 elements. Q and O have the same extents, K and V, too; Q has as many heads as they, or a multiple: then several
/// heads, one after the other, share one of K and V. Numbers of queries and keys, also 0, are free. O is 0 where a
/// query sees no keys.
///
/// K and V may be encoded both, in e4m3 or in blocks of Q8_0, see quantised_view(): elements are decoded to the type of
/// Q, each rounded once; rows of blocks begin at even bytes. By mma.sync, on sm_90a, too.
///
/// What K has where a query does not see a key does not matter. V is multiplied with 0 there, which makes NaN of NaN
/// and of infinities: so it is for all queries of a block where the block reads the key, that is, in whole tiles of
/// keys, counted from the first key, from the first one that one of its queries sees to the last. Blocks are of
/// queries_of_block queries, tiles of AttentionTile::keys or WgmmaAttentionTile::keys keys. Keep V finite, also where
/// it is padding.
/// Throws Error for sizes and types that do not fit.
void flash_attention(const Queue& queue, const TensorView& Q, const TensorView& K, const TensorView& V,
                     const MutableTensorView& O, const AttentionOptions& options = {});

}  // namespace ikat::stdlib
