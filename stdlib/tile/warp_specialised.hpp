// SPDX-License-Identifier: Apache-2.0
// Roles of warpgroups on sm_90a: one thread copies, which takes few registers, whole warpgroups work on what arrives.
//
//     warp_specialised<2>(                                         384 threads, launch_bounds(384, 1)
//         [&] { for (auto k : range(slices)) ring.fill(at, ...); },
//         [&](const auto& group) { ... ring.wait(at) ... });       0 or 1: the same in all threads of a warpgroup
#pragma once
#include "dsl/threads/cluster.hpp"
#include "dsl/threads/control.hpp"
#include "dsl/threads/warp.hpp"

namespace ikat::stdlib {

/// The threads of a block with this many warpgroups besides the first.
constexpr std::uint32_t specialised_threads(std::uint32_t groups) { return (groups + 1) * 128; }

/// The registers of a thread of these warpgroups when the first has given back all but `kept` of each of its threads.
constexpr std::uint32_t specialised_registers(std::uint32_t groups, std::uint32_t kept) {
    constexpr std::uint32_t all = 65536 / 128;  // of a thread of each warpgroup together
    const std::uint32_t at_launch = all / (groups + 1) / 8 * 8;
    return (at_launch * (groups + 1) - kept) / groups / 8 * 8;
}

/// Calls producer() by the first thread, and consumer(group) by `groups` warpgroups after the first. Registers go from
/// the first to those; it keeps `kept` for each thread, a multiple of 8 from 24 on. The block has
/// specialised_threads(groups), and the kernel says so: launch_bounds(threads, 1).
template <std::uint32_t groups, std::uint32_t kept = groups == 3 ? 32 : 40>
void warp_specialised(auto&& producer, auto&& consumer) {
    static_assert(groups >= 1 && groups <= 3, "warp_specialised: for one to three warpgroups besides the first");
    constexpr bool moves = groups > 1;  // with one, each thread may have as many as there can be from the beginning
    require_threads(specialised_threads(groups));
    if_(warpgroup_id() == 0u, [&] {
        if constexpr (moves) registers_shrink<kept>();
        if_(thread_id().x == 0u, [&] { producer(); });
    }).else_([&] {
        if constexpr (moves) registers_grow<specialised_registers(groups, kept)>();
        consumer(value(warp_uniform(warpgroup_id() - 1u)));
    });
}

}  // namespace ikat::stdlib
