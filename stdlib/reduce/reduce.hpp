// SPDX-License-Identifier: Apache-2.0
// Reductions, running sums and broadcasts inside a kernel: over the lanes of a warp, over the threads of a block.
// Building blocks for any kernel.
//
//     f32 sum = 0;
//     for (auto i : grid_stride(n)) sum += x[i];
//     sum = block_sum(sum);                        // every thread of the block now has the block's sum
//
// The order of combination is fixed (a butterfly over lanes, then over warps), so results are the same in every run.
// Every thread of the block must get here: the reductions are full-warp and full-block operations. Blocks must be a
// multiple of 32 threads, for block_reduce in one dimension; launches of other blocks are an Error.
#pragma once
#include <limits>

#include "dsl/threads/simt.hpp"

namespace ikat::stdlib {

/// The lowest value of T for which max(lowest, x) = x: -infinity for floats.
template <class T>
constexpr T lowest() {
    if constexpr (std::numeric_limits<T>::has_infinity)
        return -std::numeric_limits<T>::infinity();
    else
        return std::numeric_limits<T>::lowest();
}

/// Combines a value of each of the 32 lanes, or of each group of this many lanes side by side; every lane gets the
/// result. `combine` is associative: (a, b) → a value.
/// Source: the butterfly exchange of the CUDA C++ Programming Guide, "Warp Shuffle Functions".
template <unsigned lanes = 32, DeviceValue V>
auto warp_reduce(const V& mine, auto&& combine) {
    static_assert(lanes == 2 || lanes == 4 || lanes == 8 || lanes == 16 || lanes == 32,
                  "warp_reduce<lanes>(): a warp is divided into groups of 2, 4, 8 or 16 lanes");
    require_whole_warps();
    Var total = value(mine);
    for (unsigned distance = lanes / 2; distance > 0; distance /= 2)
        total = combine(total, shuffle_xor(total, distance));
    return total;
}

/// Combines a value of each thread of the block; every thread gets the result. `neutral` leaves the other operand of
/// `combine` as it is. Uses 32 elements of shared memory and two barriers.
template <DeviceValue V>
auto block_reduce(const V& mine, auto neutral, auto&& combine) {
    using T = DeviceTypeOf<V>;
    require_linear_blocks();
    Shared<T, 32> of_warp;
    Var total = warp_reduce(mine, combine);
    sync_block();  // in a loop, some warps still read what the round before has left in of_warp
    if_(lane_id() == 0, [&] { of_warp[warp_id()] = total; });
    sync_block();
    total = neutral;
    if_(lane_id() < block_dim().x / 32, [&] { total = of_warp[lane_id()]; });
    return warp_reduce(total, combine);
}

/// Ways to combine two values. Of a NaN and a number, maximum and minimum give the number.
inline constexpr auto plus = [](const auto& a, const auto& b) { return a + b; };
inline constexpr auto maximum = [](const auto& a, const auto& b) { return max(a, b); };
inline constexpr auto minimum = [](const auto& a, const auto& b) { return min(a, b); };

/// The sum, maximum or minimum of a value of each lane; all lanes get it. In whole warps.
template <DeviceValue V>
auto warp_sum(const V& mine) {
    return warp_reduce(mine, plus);
}
template <DeviceValue V>
auto warp_max(const V& mine) {
    return warp_reduce(mine, maximum);
}
template <DeviceValue V>
auto warp_min(const V& mine) {
    return warp_reduce(mine, minimum);
}
/// The same of each thread of the block; all threads get it. As block_reduce: two barriers, all threads come here.
template <DeviceValue V>
auto block_sum(const V& mine) {
    return block_reduce(mine, DeviceTypeOf<V>(0), plus);
}
template <DeviceValue V>
auto block_max(const V& mine) {
    return block_reduce(mine, lowest<DeviceTypeOf<V>>(), maximum);
}

/// The value of one lane, for all lanes of the warp; of one thread, for all threads of the block.
template <DeviceValue V>
auto warp_broadcast(const V& mine, std::uint32_t lane = 0) {
    require_whole_warps();
    return value(shuffle_idx(mine, lane));
}
template <DeviceValue V>
auto block_broadcast(const V& mine, std::uint32_t thread = 0) {
    require_linear_blocks();
    Shared<DeviceTypeOf<V>, 1> shared;
    sync_block();  // in a loop, some warps still read what the round before has left
    if_(thread_id().x == thread, [&] { shared[0] = mine; });
    sync_block();
    return value(shared[0]);
}

/// The combination of the values of the lanes up to and with this one.
template <DeviceValue V>
auto warp_inclusive_scan(const V& mine, auto&& combine) {
    require_whole_warps();
    const auto lane = value(lane_id());
    Var total = value(mine);
    for (unsigned distance = 1; distance < 32; distance *= 2) {
        const auto before = value(shuffle_up(total, distance));
        if_(lane >= distance, [&] { total = combine(before, total); });
    }
    return total;
}

/// The combination of the values of the threads up to and with this one, in their order. Uses 32 elements of shared
/// memory and four barriers.
template <DeviceValue V>
auto block_inclusive_scan(const V& mine, auto neutral, auto&& combine) {
    require_linear_blocks();
    Shared<DeviceTypeOf<V>, 32> of_warp;
    const auto lane = value(lane_id()), warp = value(warp_id());
    Var total = warp_inclusive_scan(mine, combine);
    sync_block();
    if_(lane == 31, [&] { of_warp[warp] = total; });
    sync_block();
    Var<DeviceTypeOf<V>> before = neutral;
    if_(lane < block_dim().x / 32, [&] { before = of_warp[lane]; });
    const Var up_to = warp_inclusive_scan(before, combine);
    sync_block();
    if_(warp == 0, [&] { of_warp[lane] = up_to; });
    sync_block();
    if_(warp > 0, [&] { total = combine(of_warp[warp - 1], total); });
    return total;
}
template <DeviceValue V>
auto warp_inclusive_sum(const V& mine) {
    return warp_inclusive_scan(mine, plus);
}
template <DeviceValue V>
auto block_inclusive_sum(const V& mine) {
    return block_inclusive_scan(mine, DeviceTypeOf<V>(0), plus);
}

}  // namespace ikat::stdlib
