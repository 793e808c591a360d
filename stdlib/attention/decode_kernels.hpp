// SPDX-License-Identifier: Apache-2.0
// The kernels behind incremental_attention().
#pragma once
#include <compare>
#include <cstdint>
#include <string>

#include "dsl/record/capture.hpp"

namespace ikat::stdlib {

/// A block has up to 16 rows, of queries of the heads that share one of K and V, and a part of its keys. These it
/// divides among its warps in chunks of 16, of which each warp has `stages` of K and as many of V in shared memory.
struct DecodeTile {
    std::uint32_t warps = 4, stages = 2;
    static constexpr std::uint32_t keys = 16;
    constexpr std::uint32_t threads() const { return 32 * warps; }
};
/// For rows of so many bytes: at most 80 KiB of shared memory.
constexpr DecodeTile decode_tile(std::uint32_t row_bytes) {
    return {.warps = row_bytes <= 384 ? 4u : row_bytes <= 512 ? 2u : 1u, .stages = row_bytes < 256 ? 3u : 2u};
}

/// Which of the kernels.
struct DecodeKernel {
    /// The attention of parts of the keys, and how these become one:
    ///     Whole   all keys are one part: to O
    ///     Part    sums and statistics of a part: to memory
    ///     Merge   from there to O
    /// Parameters of the first two, of which those in brackets are there only where O is and `has_log_sum`:
    ///
    ///     Q, K, V                     the first element of the first head of the first sequence
    ///     O                           of Part: an array of f32, sequences x heads x queries x parts x head_dim
    ///     lengths, table              read only where `has_lengths` and `has_pages`
    ///     keys                        of the sequences, or the most that they may have
    ///     queries, heads, group       see AttentionKernel
    ///     parts                       of the keys of each sequence
    ///     Q_sequence ... O_row        elements from one to the next; K_sequence and V_sequence of pages, too
    ///     table_row, page_shift       elements from a sequence's pages to the next one's; log2 of the rows of a page
    ///     factor, cap                 see AttentionKernel
    ///     before                      query i sees keys from i + length - queries - before on, if has_before
    ///     (log_sum, log_sum_sequence, log_sum_head)
    ///     (statistics)                of Part: for each row of O: the largest exponent, the sum of 2^(exponent - that)
    ///
    /// A launch has a block for each part of each `rows` rows of each head of K of each sequence.
    /// Merge has parameters sums and statistics, of Part, O, rows, which are sequences x heads x queries, queries,
    /// heads, parts, O_sequence, O_head, O_row and those of log_sum; a launch has a thread for each four elements of O.
    enum class Step : std::uint8_t { Whole, Part, Merge };
    Step step = Step::Whole;
    ir::Type type = ir::Type::F16;
    std::uint32_t head_dim = 64;
    /// Of a block: 16; of f32 16, 8, 4, 2 or 1.
    std::uint32_t rows = 16;
    bool has_lengths = false, has_pages = false, is_causal = false, has_before = false, has_cap = false;
    bool has_log_sum = false;
    bool has_wide_cap = false;  // then has_cap, too, see soft_cap.hpp
    /// How many bytes are copied at once, of rows that begin at multiples of them: 16, 8, 4, or 0: by elements.
    std::uint32_t q_access = 16, k_access = 16, v_access = 16;
    /// Whether rows of O begin at multiples of four elements.
    bool o_is_aligned = true;

    /// "incremental_attention_bf16_d128_paged_part".
    std::string name() const;
    /// The same object for the same kernel; thread-safe.
    const trace::KernelHandle& handle() const;
    auto operator<=>(const DecodeKernel&) const = default;
};

}  // namespace ikat::stdlib
