// SPDX-License-Identifier: Apache-2.0
// A loop whose copies from global memory are some iterations ahead of the work on them.
//
//     pipeline<3>(count,
//         [&](const auto& stage, const auto& slice) { rows.load(a[stage], slice); },      asks for a slice
//         [&](const auto& stage) { ... a[stage] ... });                                   works on what is there
//
// With three stages, when a slice is worked on, the next two are on their way:
//
//     slice     0     1     2     3     4                     the copies of slice 3 go to the stage of slice 0, when
//     all stage     0     1     2     0     1                     threads are done with that
#pragma once
#include "dsl/memory/async.hpp"
#include "dsl/threads/control.hpp"
#include "dsl/threads/simt.hpp"
#include "stdlib/tile/shared_tile.hpp"

namespace ikat::stdlib {

/// Calls ask(stage, slice) for slices 0, 1, ... in order, then work(stage) for each of `count` slices, by all threads
/// of the block. The copies of a slice are one group of copy_async; slices from `count` on may be asked for, too: a
/// TileSource fills them with zeros. At the end none is in flight, and all threads are done.
template <std::uint32_t stages>
void pipeline(const Word& count, auto&& ask, auto&& work, const Where& where = Where::current()) {
    static_assert(stages >= 2, "pipeline: one stage is worked on while others are filled: there are at least two");
    const auto slices = word(count);
    const auto number = [&](const auto& stage) { return StageNumber(stage, stages, "pipeline", where); };
    for (std::uint32_t slice = 0; slice < stages - 1; ++slice) {
        ask(number(value(slice)), value(slice));
        copy_commit();
    }
    u32 stage = 0, before = stages - 1;  // `before`: the one that was worked on last
    for (auto slice : range(slices)) {
        copy_wait<int(stages) - 2>();
        sync_block();
        ask(number(value(before)), value(slice + (stages - 1)));
        copy_commit();
        work(number(value(stage)));
        before = stage;
        stage = select(stage == stages - 1, 0u, stage + 1u);
    }
    copy_wait<0>();
    sync_block();
}

}  // namespace ikat::stdlib
