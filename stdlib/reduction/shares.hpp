// SPDX-License-Identifier: Apache-2.0
// What the recipes of reductions share.
#pragma once
#include "stdlib/reduction/reduction.hpp"
#include "stdlib/spec/families.hpp"

namespace ikat::stdlib {

/// The launches of a sum: the blocks' shares, and where there are several, the sum of these. The kernel has parameters
/// n and, for the result or the shares, partial.
void sum_shares(Steps& steps);

/// f(part, its grid, how many shares come before its own) for the parts of a call: each block makes a share. Gives how
/// many shares there are.
std::uint32_t each_part(const Steps& steps, auto&& f) {
    std::uint32_t before = 0;
    for (const Steps::Part& part : steps.parts()) {
        const Grid grid = reduction_grid(part.call.count());
        f(part, grid, before);
        before += grid.blocks.x;
    }
    return before;
}
inline std::uint32_t number_of_shares(const Steps& steps) {
    return each_part(steps, [](const auto&...) {});
}

/// What a run of the kernel alone does: one block gives the whole result.
inline Grid one_block(const Call& call) { return {{1}, {call.threads(256)}}; }

inline std::uint64_t workspace_of_n(const Call& call) { return reduction_workspace(call.count()); }

inline constexpr std::string_view reduction_document =
    "partial[b] is the result over the elements that block b visits, in f32; with one block, which is the default,\n"
    "partial[0] is that over all n. The same in every run. Blocks have one dimension, a multiple of 32. Arrays begin\n"
    "at multiples of 16 bytes.";

}  // namespace ikat::stdlib
