// SPDX-License-Identifier: Apache-2.0
// Attention of one query, or a few, of each sequence to the keys that are cached of it.
//
//     incremental_attention(device, Q.view(sequences, heads, 1, 128), K.view(sequences, kv_heads, capacity, 128),
//                           V.view(sequences, kv_heads, capacity, 128), O.view(sequences, heads, 1, 128),
//                           {.lengths = lengths});
//     incremental_attention(device, Q..., K.view(pages, kv_heads, 16, 128), V.view(pages, kv_heads, 16, 128), O...,
//                           {.lengths = lengths, .pages = table.view(sequences, max_pages)});
//
// Elements are float, half or bfloat16, scores and sums f32. Of half and bfloat16 products are by tensor cores, and the
// exponentials are rounded to the elements' type before they are multiplied with V, as is O at the end. Of float they
// are by fused multiply-adds.
#pragma once
#include <optional>

#include "stdlib/attention/attention.hpp"

namespace ikat::stdlib {

/// What queries see of the cache, and how the work is divided.
struct IncrementalOptions {
    /// How many keys each sequence has: std::uint32_t, one for each. Of a length that is larger than K has room for, O
    /// and log_sum are NaN. Without them, all have as many as there is room for.
    std::optional<TensorView> lengths{};
    /// K and V are (pages, kv_heads, rows, head_dim), and key j of sequence s is row j % rows of page
    /// pages(s, j / rows): std::uint32_t, sequences by the most pages that one has. A page has a power of two of rows,
    /// 16 or more. Entries after a sequence's length are not read. Others are not checked: one that is not below the
    /// number of pages reads outside of K and V, which the emulator reports.
    std::optional<TensorView> pages{};
    /// The last query belongs to the last key: query i is at key p = i + length - queries, and, causal, sees none
    /// after it. A window: it sees keys from p - window_left on.
    bool causal = false;
    std::optional<std::uint32_t> window_left{};
    /// See AttentionOptions.
    std::optional<float> scale{};
    float soft_cap = 0;
    std::optional<OwnScores> scores{};
    std::optional<OwnSight> sees{};
    std::optional<TensorView> sinks{};
    std::optional<MutableTensorView> log_sum{};
    /// Into how many parts the keys of each sequence are divided. A second kernel makes O of them, always in the same
    /// order: the bits are the same in every run. 0: as many as the device needs to be busy.
    std::uint32_t parts = 0;
    /// Where keys are divided: incremental_attention_workspace() bytes. Without it, the function allocates its own.
    WorkspaceSlice workspace{};
};

/// O = softmax(scale * Q K^T) V for each head of each sequence. Q and O are (sequences, heads, queries, head_dim), K
/// and V (sequences, kv_heads, keys, head_dim), or pages. Rows have 64, 80, 96, 128 or 256 elements, and may begin at
/// any element and be any number of elements apart: those of K and V that all begin at multiples of 16 bytes are copied
/// by as many at once, others by 8 or 4, or, slowest, by elements of 2. heads is a multiple of kv_heads: several heads,
/// one after the other, share one of K and V, which is read once for up to 16 queries of theirs. What is after a
/// sequence's length, or before its window, is not read. O is 0, and log_sum -infinity or the sink, where a query sees
/// no keys. K and V may be encoded both, in e4m3 or in blocks of Q8_0, see quantised_view(): elements are decoded to
/// the type of Q, each rounded once; rows of blocks begin at even bytes. A NaN or an infinity in V, from the first key
/// that the first query sees to the last one of the sequence, is multiplied with 0 where a query does not see it, and
/// makes that query's O NaN, too. Throws Error for sizes and types that do not fit.
void incremental_attention(const Queue& queue, const TensorView& Q, const TensorView& K, const TensorView& V,
                           const MutableTensorView& O, const IncrementalOptions& options = {});

/// The bytes of workspace that the same call needs: 0, unless keys are divided.
std::uint64_t incremental_attention_workspace(const Queue& queue, const TensorView& Q, const TensorView& K,
                                              const TensorView& V, const MutableTensorView& O,
                                              const IncrementalOptions& options = {});

}  // namespace ikat::stdlib
