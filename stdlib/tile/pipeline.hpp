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
#include "dsl/threads/barrier.hpp"
#include "dsl/threads/control.hpp"
#include "dsl/threads/simt.hpp"
#include "stdlib/tile/shared_tile.hpp"

namespace ikat::stdlib {

/// What reads the slices: by wgmma, it sees what copies have written after a fence.
enum class PipelineReader : std::uint8_t { threads, wgmma };

/// Calls ask(stage, slice) for slices 0, 1, ... in order, then work(stage) for each of `count` slices, by all threads
/// of the block. The copies of a slice are one group of copy_async; slices from `count` on may be asked for, too: a
/// TileSource fills them with zeros. At the end none is in flight, and all threads are done. Where wgmma reads
/// a slice, work() waits for its products.
template <std::uint32_t stages, PipelineReader reader = PipelineReader::threads>
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
        if constexpr (reader == PipelineReader::wgmma) fence_async_shared();
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

/// The same for work of `steps` steps. While a step is worked on, the operands of the next one are loaded from shared
/// memory: so no step waits for them, and when threads have met, one is left that needs nothing else.
///
///     step         0             1             2             3                     of slice 5, three stages
///     load         5, step 1     5, step 2     5, step 3     meet; 6, step 0
///     ask          7, part 0     7, part 1     7, part 2
///
/// ask(stage, slice, part) asks for part 0 ... steps - 2 of a slice; load(stage) loads the first operands;
/// work(step, stage, next) works on a step, and loads the operands of step `next` of that stage. `part`, `step` and
/// `next` are numbers of the host.
template <std::uint32_t stages, std::uint32_t steps>
void pipeline_in_steps(const Word& count, auto&& ask, auto&& load, auto&& work, const Where& where = Where::current()) {
    static_assert(stages >= 2 && steps >= 2, "pipeline_in_steps: there are at least two stages, and two steps");
    const auto slices = word(count);
    const auto number = [&](const auto& stage) { return StageNumber(stage, stages, "pipeline", where); };
    for (std::uint32_t slice = 0; slice < stages - 1; ++slice) {
        for (std::uint32_t part = 0; part < steps - 1; ++part) ask(number(value(slice)), value(slice), part);
        copy_commit();
    }
    copy_wait<int(stages) - 2>();
    sync_block();
    load(number(value(0u)));
    u32 stage = 0;
    for (auto slice : range(slices)) {
        const auto before = value(select(stage == 0u, stages - 1, stage - 1u));
        const auto next = value(select(stage == stages - 1, 0u, stage + 1u));
        for (std::uint32_t step = 0; step + 1 < steps; ++step) {
            ask(number(before), value(slice + (stages - 1)), step);
            work(step, number(value(stage)), step + 1);
        }
        copy_commit();
        copy_wait<int(stages) - 2>();
        sync_block();
        work(steps - 1, number(next), 0u);
        stage = next;
    }
    copy_wait<0>();
    sync_block();
}

}  // namespace ikat::stdlib
