// SPDX-License-Identifier: Apache-2.0
// Rows of heads that become rows of a cache, turned by rotary position embedding or as they are: the kernels of
// rope_scatter(), and of kv_scatter() to caches whose elements are not those of x.
#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "dsl/record/capture.hpp"
#include "stdlib/layout/layout.hpp"

namespace ikat::stdlib {

/// Which of the kernels. Its parameters, of which those in brackets are there only if there is a form:
///
///     x                       tokens x heads x head_dim
///     slots                   the row of the cache for each token
///     cache                   elements of x's type, or bytes
///     with                    numbers, a CacheNumbers: heads, head_dim; how many elements from a token of x to the
///                             next, and from a head; ... of the cache, from a row and from a head, in bytes where it
///                             has bytes; its rows; (rotary, base)
///     (positions)             of the tokens
///
/// A launch has a block for each token.
struct CacheKernel {
    static constexpr std::uint32_t threads = 256, max_rotary = 512;
    ir::Type x = ir::Type::F32;
    /// Void: blocks of Q8_0.
    ir::Type cache = ir::Type::F32;
    std::optional<Rope> form{};
    /// Whether heads begin at multiples of four elements, and have so many; those of the cache, too. The halves that
    /// Rope::Neox turns are as long, if x is.
    bool x_is_aligned = true, cache_is_aligned = true;

    /// Whether the elements of a cache have to be made of those of x.
    static bool encodes(const TensorView& cache) { return cache.format || cache.type == ir::Type::E4M3; }

    /// "rope_neox_scatter_f16_to_q8_0".
    std::string name() const;
    /// A new one, not yet captured.
    KernelHandle make() const;
    /// The same object for the same kernel; thread-safe.
    const KernelHandle& handle() const;
    auto operator<=>(const CacheKernel&) const = default;
};

/// kv_scatter() to such a cache.
void scatter_encoded(const Queue& queue, const TensorView& x, const TensorView& slots, const MutableTensorView& cache);

}  // namespace ikat::stdlib
