// SPDX-License-Identifier: Apache-2.0
// The kernels of flash_attention() on sm_90a, by TMA and wgmma.
#pragma once
#include <compare>
#include <cstdint>
#include <string>

#include "dsl/record/capture.hpp"
#include "stdlib/attention/own_attention.hpp"

namespace ikat::stdlib {

/// A block has 64 queries for each of its `groups` warpgroups, after one that copies, and goes through tiles of keys.
struct WgmmaAttentionTile {
    std::uint32_t head_dim = 64, groups = 2;
    std::uint32_t max_keys = 128;
    static constexpr std::uint32_t many_keys = 176;

    constexpr std::uint32_t queries() const { return 64 * groups; }
    constexpr std::uint32_t keys() const { return head_dim == 256 ? 64 : max_keys; }
    /// Elements of a row in shared memory: panels of 64 or 128 bytes. What is after the row is zero.
    constexpr std::uint32_t row() const { return head_dim == 80 ? 96 : head_dim; }
    static constexpr std::uint32_t stages = 4;  // of tiles of K or V
    constexpr std::uint32_t threads() const { return 128 * (groups + 1); }
    /// How many there may be: three have 160 registers for each thread, two have 232.
    static constexpr std::uint32_t max_groups(std::uint64_t head_dim) { return head_dim == 64 ? 3 : 2; }
};
/// Which of the kernels. Its parameters, of which those in brackets are there only where `has_` says so:
///
///     Q, K, V, O                  maps (sequences, heads, rows, elements); with offsets (heads, rows, box, elements),
///                                 see add_map()
///     extents                     numbers, a WgmmaExtents:
///         queries, keys, heads    heads of Q
///         tiles                   of `queries()` queries, of all heads of all sequences; with offsets as many as
///                                 there are blocks of AttentionKernel
///     with ... (own)              as of AttentionKernel; without has_before, first is before all keys
///
/// The grid is any number of blocks, which take tile after tile.
struct WgmmaAttentionKernel {
    ir::Type type = ir::Type::F16;
    std::uint32_t head_dim = 64, groups = 2;
    bool has_offsets = false;
    bool has_before = false, has_after = false, has_cap = false, has_bias = false, has_sinks = false,
         has_log_sum = false;
    bool has_wide_cap = false;  // then has_cap, too, see soft_cap.hpp
    OwnAttention own{};
    /// Tiles of many_keys, for which registers are left where can_have_many_keys().
    bool has_many_keys = false;

    bool can_have_many_keys() const {
        const bool changes_scores = has_before || has_after || has_cap || has_bias || own;
        return head_dim == 128 && groups == 2 && !changes_scores && !has_offsets;
    }
    WgmmaAttentionTile tile() const { return {head_dim, groups, max_keys()}; }
    /// "flash_attention_bf16_d128_wgmma_after".
    std::string name() const;
    /// A new one, not yet captured.
    KernelHandle make() const;
    /// The same object for the same kernel; thread-safe.
    const KernelHandle& handle() const;
    auto operator<=>(const WgmmaAttentionKernel&) const = default;

private:
    /// Biases, and functions where there are three warpgroups, leave registers for fewer.
    std::uint32_t max_keys() const {
        if (has_bias || (own && groups == 3)) return 64;
        return has_many_keys ? WgmmaAttentionTile::many_keys : 128;
    }
};

}  // namespace ikat::stdlib
