// SPDX-License-Identifier: Apache-2.0
// The kernels of flash_attention().
#pragma once
#include <compare>
#include <cstdint>
#include <string>

#include "dsl/record/capture.hpp"
#include "stdlib/attention/encoding.hpp"
#include "stdlib/attention/own_attention.hpp"

namespace ikat::stdlib {

/// A block has `queries` queries of a head, a quarter of them each of its warps, and goes through tiles of `keys` keys,
/// of rows of this many bytes.
struct AttentionTile {
    std::uint32_t queries = 128;
    /// The keys of a tile, by the bytes of a row.
    static constexpr std::uint32_t keys(std::uint32_t row_bytes) { return row_bytes <= 512 ? 64 : 16; }
    static constexpr std::uint32_t warps = 4, threads = 32 * warps;
    constexpr std::uint32_t rows() const { return queries / warps; }
    /// Whether there are blocks of 128 queries, of `head_dim` elements of `bits` bits: not where a thread would not
    /// have enough registers. `are_bytes`: K and V are encoded or in pages.
    static constexpr bool has_large(std::uint32_t head_dim, int bits, bool are_bytes) {
        if (head_dim < 128) return bits == 16 || !are_bytes;
        return head_dim == 128 && bits == 16 && !are_bytes;
    }
    /// The shared memory of a block of 128 queries of 128 elements: their rows, and those of K and V, padded by 16
    /// bytes, and its place.
    static constexpr std::uint32_t large_bytes = (128 + 2 * 64) * (2 * 128 + 16) + 20;
};
/// Which of the kernels. Its parameters, of which those in brackets are there only where `has_` says so:
///
///     Q, K, V, O                  views (sequences, heads, rows, elements); encoded K and V, and those in pages, are
///                                 bytes of elements; of pages (pages, heads, rows of a page, bytes)
///     with                        numbers, a ScoreParameters:
///         group                   how many heads of Q share one of K and V
///         factor                  products are multiplied with it: log2(e) * scale; with a cap 2 log2(e) * scale /
///                                 cap, with a wide one scale; with a bias, or scores(), and no cap scale
///         cap                     scores become cap * tanh(scale / cap * product), if has_cap
///         first, last             query i sees keys from i + first on, if has_before, and to i + last, if has_after
///         sequences               by offsets; else 0
///     (bias)                      a view (sequences, heads, queries, keys), added to scores; with a pitch of 0 where
///                                 all share it
///     (query_offsets, key_offsets)    the rows that sequences begin at, and the last ends; then first and last are
///                                 those of sequences of as many queries as keys, and the bias has the rows of Q and
///                                 as many columns as a sequence has keys at most: keys after these have none
///     (sinks)                     for each head a score without a value
///     (log_sum)                   a view (sequences, heads, queries): the logarithm of the sum of exp(score)
///     (pages)                     a view with a row for each sequence: the pages that its keys are in
///     (own)                       the arguments of scores() and of sees()
///
/// A launch has a block for each `queries` of each head of each sequence; with offsets, for each head, rows / `queries`
/// + sequences. f32 is multiplied without tensor cores.
struct AttentionKernel {
    ir::Type type = ir::Type::F16;
    CacheEncoding encoding = CacheEncoding::none;  // of K and V
    std::uint32_t head_dim = 64;
    std::uint32_t queries = 128;  // of a block, 128 or 64
    bool has_offsets = false, has_pages = false;
    bool has_before = false, has_after = false, has_cap = false, has_bias = false, has_sinks = false,
         has_log_sum = false;
    bool has_wide_cap = false;                                  // then has_cap, too, see soft_cap.hpp
    std::uint32_t q_access = 16, k_access = 16, v_access = 16;  // bytes at once, see TileAccess
    bool o_is_aligned = true;                                   // to 16 bytes
    OwnAttention own{};

    /// "flash_attention_bf16_e4m3_d128_after".
    std::string name() const;
    /// A new one, not yet captured.
    KernelHandle make() const;
    /// The same object for the same kernel; thread-safe.
    const KernelHandle& handle() const;
    auto operator<=>(const AttentionKernel&) const = default;
};

}  // namespace ikat::stdlib
