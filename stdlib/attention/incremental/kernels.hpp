// SPDX-License-Identifier: Apache-2.0
// The kernels of incremental_attention().
#pragma once
#include <compare>
#include <cstdint>
#include <string>

#include "dsl/record/capture.hpp"
#include "stdlib/attention/encoding.hpp"
#include "stdlib/attention/own_attention.hpp"

namespace ikat::stdlib {

/// A block has up to 16 rows, of queries of the heads that share one of K and V, and a part of its keys. These it
/// divides among its warps in chunks of 16, of which each warp has `stages` of K and as many of V in shared memory.
struct DecodeTile {
    std::uint32_t warps = 4, stages = 2;
    static constexpr std::uint32_t keys = 16;
    constexpr std::uint32_t threads() const { return 32 * warps; }
};
/// For rows of this many bytes: at most 80 KiB of shared memory.
constexpr DecodeTile decode_tile(std::uint32_t row_bytes) {
    return {.warps = row_bytes <= 384 ? 4u : row_bytes <= 512 ? 2u : 1u, .stages = row_bytes < 256 ? 3u : 2u};
}

/// Which of the kernels.
struct DecodeKernel {
    /// The attention of parts of the keys, and how these become one:
    ///     Whole   all keys are one part: to O
    ///     Part    sums and statistics of a part: to memory
    ///     Merge   from there to O
    /// Parameters of the first two, of which those in brackets are there only where `has_` says so:
    ///
    ///     Q, K, V                     views (sequences, heads, rows, elements); of pages K and V are (pages, heads,
    ///                                 rows of a page, elements), or, encoded, bytes of elements
    ///     O                           of Whole: as Q
    ///     sums                        of Part: f32, sequences x heads x queries x parts x head_dim
    ///     statistics                  ... for each row of sums: the largest exponent, the sum of 2^(exponent - that)
    ///     with                        numbers, a DecodeParameters:
    ///         keys                    of the sequences, or the most that they may have
    ///         group                   see AttentionKernel
    ///         parts                   of the keys of each sequence
    ///         page_shift              log2 of the rows of a page
    ///         factor, cap             see AttentionKernel
    ///         before                  query i sees keys from i + length - queries - before on, if has_before
    ///     (lengths)                   keys of each sequence
    ///     (pages)                     a view with a row for each sequence: the pages that its keys are in
    ///     (sinks)                     see AttentionKernel
    ///     (log_sum)                   of Whole: as of AttentionKernel
    ///     (own)                       the arguments of scores() and of sees()
    ///
    /// A launch has a block for each part of each `rows` rows of each head of K of each sequence.
    /// Merge has parameters sums and statistics, of Part, O, parts, (log_sum); a launch has a thread for each four
    /// elements of O.
    enum class Step : std::uint8_t { Whole, Part, Merge };
    Step step = Step::Whole;
    ir::Type type = ir::Type::F16;
    CacheEncoding encoding = CacheEncoding::none;  // of K and V
    std::uint32_t head_dim = 64;
    /// Of a block: 16; of f32 16, 8, 4, 2 or 1.
    std::uint32_t rows = 16;
    bool has_lengths = false, has_pages = false, is_causal = false, has_before = false, has_cap = false;
    bool has_sinks = false, has_log_sum = false;
    bool has_wide_cap = false;  // then has_cap, too, see soft_cap.hpp
    /// How many bytes are copied at once, of rows that begin at multiples of them: 16, 8, 4, or 0: by elements.
    std::uint32_t q_access = 16, k_access = 16, v_access = 16;
    /// Whether rows of O begin at multiples of four elements.
    bool o_is_aligned = true;
    OwnAttention own{};

    /// "incremental_attention_bf16_q8_0_d128_paged_part".
    std::string name() const;
    /// A new one, not yet captured.
    KernelHandle make() const;
    /// The same object for the same kernel; thread-safe.
    const KernelHandle& handle() const;
    auto operator<=>(const DecodeKernel&) const = default;
};

}  // namespace ikat::stdlib
