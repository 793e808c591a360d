// SPDX-License-Identifier: Apache-2.0
// The kernels of attention_backward().
#pragma once
#include <compare>
#include <cstdint>
#include <string>

#include "dsl/record/capture.hpp"
#include "stdlib/attention/own_attention.hpp"

namespace ikat::stdlib {

/// What a kernel makes. A block of `Rows` prepares 64 queries for the others, see GradientKernel::sums. A block of
/// `Queries` owns queries, and goes through keys; one of `Keys`, `Values` or both owns keys, and goes through the
/// queries of all heads that share them; one of `Bias` owns queries and keys, and goes through the heads and sequences
/// that share its bias.
enum class Gradient : std::uint8_t { Rows, Queries, Keys, Values, KeysAndValues, Bias };

/// A block has 4 warps, each with this many rows of what the block owns; `walked` are the rows of a tile of the other.
struct GradientTile {
    std::uint32_t rows, walked;
    static constexpr std::uint32_t warps = 4, threads = 32 * warps;
    constexpr std::uint32_t owned() const { return rows * warps; }
    /// The most that tiles may take of shared memory: 99 KB, which a block may have of any device from sm_80 on, but
    /// for what else there is.
    static constexpr std::uint32_t max_bytes = 100352;
    /// As many as registers have room for; `has_more`: scores are more than products times a number.
    static constexpr GradientTile of(Gradient of, std::uint32_t head_dim, bool has_more) {
        if (head_dim > 128) return {16, 16};
        if (of == Gradient::Bias) return {16, 32};
        const bool is_large = !has_more && (of == Gradient::Queries || head_dim == 64);
        return {is_large ? 32u : 16u, 32};
    }
};

/// On sm_90a, by TMA and wgmma: a block has two warpgroups, each with this many rows of what the block owns; tiles of
/// the others have as many.
struct WgmmaGradientTile {
    static constexpr std::uint32_t groups = 2, rows = 64, owned = groups * rows, threads = 128 * groups;
    static constexpr std::uint32_t stages(std::uint32_t head_dim) { return head_dim > 64 ? 4 : 6; }
};

/// The sums of keys and those of values are made together where a thread has registers for both.
constexpr bool makes_both(std::uint32_t head_dim) { return head_dim <= 128; }

/// Which of the kernels. Its parameters, of which those in brackets are there only where `has_` or `of` says so; of
/// Rows O, dO, log_sum, sums, with and the offsets:
///
///     Q, K, V, dO               views (sequences, heads, rows, elements), as those of attention
///     (dQ), (dK), (dV)          what is made
///     (dbias)                   a view (sequences, heads, queries, keys)
///     sums                      for each two queries, of 64 that a block of Rows has, minus the sums of dO * O of
///     both,
///                               the same once more, and minus log2(e) times their log_sum, -infinity where there are
///                               no queries or scores; numbers_of_two in all
///     scale                     what products of Q and K are multiplied with
///     with                      numbers, see AttentionKernel
///     (bias)                    see AttentionKernel
///     (query_offsets, key_offsets)
///     (own)                     the arguments of scores(), of its slope, and of sees()
///
/// By wgmma, Q, K, V, dO and what is made are maps (sequences, heads, rows, elements) whose boxes are panels of 64
/// rows; with offsets (heads, rows, box, elements), see WgmmaRows. After the scale there are then
///
///     queries, keys, heads      of Q and K, which a kernel cannot ask maps for
///
/// A launch has a block for each owned() queries or keys of each head of each sequence, in the order of those of
/// attention; of Bias, for each owned() queries and `walked` keys of each head
/// and sequence of the bias.
struct GradientKernel {
    Gradient of = Gradient::Queries;
    ir::Type type = ir::Type::F16;
    std::uint32_t head_dim = 64;
    bool has_offsets = false, has_before = false, has_after = false, has_cap = false, has_wide_cap = false,
         has_bias = false;
    std::uint32_t access = 16;  // bytes at once, of all that is read, see TileAccess
    bool is_aligned = true;     // what is made, to 16 bytes
    OwnAttention own{};
    bool by_wgmma = false;

    /// The queries that a block of Rows has.
    static constexpr std::uint32_t rows = 64;
    static constexpr std::uint32_t numbers_of_two = 8;
    /// Where registers are enough for it.
    bool can_be_by_wgmma() const {
        const bool is_large = of == Gradient::Queries || of == Gradient::KeysAndValues;
        return is_large && (head_dim == 64 || head_dim == 128) && !has_more() && !own;
    }
    bool has_more() const { return has_cap || has_bias || own.has_scores(); }
    GradientTile tile() const { return GradientTile::of(of, head_dim, has_more()); }
    /// The rows that a block owns, and its threads.
    std::uint32_t owned() const { return by_wgmma ? WgmmaGradientTile::owned : tile().owned(); }
    std::uint32_t threads() const { return by_wgmma ? WgmmaGradientTile::threads : GradientTile::threads; }
    /// "attention_backward_keys_bf16_d128_after".
    std::string name() const;
    /// A new one, not yet captured.
    KernelHandle make() const;
    /// The same object for the same kernel; thread-safe.
    const KernelHandle& handle() const;
    auto operator<=>(const GradientKernel&) const = default;
};

}  // namespace ikat::stdlib
