// SPDX-License-Identifier: Apache-2.0
// A ring of stages in shared memory between a thread that fills them with boxes of tensors, and warps that work on
// them: a pipeline in which they wait for each other at barriers only.
//
//     Ring<4> ring(2);                                             freed by two warpgroups
//     RingPlace<4> at;
//     if_(is_producer, [&] {                                       one thread
//         for (auto k : range(slices)) ring.fill(at, bytes, [&](const auto& stage, const auto& arrival) {
//             tma_load(a[stage] ..., from_a[row, k * 64], arrival);
//         });
//     }).else_([&] {                                               whole warpgroups
//         for (auto k : range(slices)) {
//             ring.wait(at);
//             ... a[at.stage()] ...
//             ring.free(at.stage());
//             at.next();
//         }
//     });
#pragma once
#include "dsl/threads/cluster.hpp"
#include "dsl/threads/control.hpp"
#include "dsl/threads/warp.hpp"
#include "stdlib/tile/shared_tile.hpp"

namespace ikat::stdlib {

/// The stage that a thread comes to next, and the parity of its phase.
template <std::uint32_t stages>
class RingPlace {
public:
    explicit RingPlace(const Where& where = Where::current()) : where_(where) {}

    StageNumber stage() const { return {value(stage_), stages, "ring", where_}; }
    Leaf<std::uint32_t> parity() const { return value(parity_); }
    void next() {
        const auto is_last = value(stage_ == stages - 1);
        parity_ = select(is_last, parity_ ^ 1u, parity_);
        stage_ = select(is_last, 0u, stage_ + 1u);
    }
    /// As next(), `count` times.
    void skip(const Word& count) {
        const auto further = value(stage_ + word(count));
        parity_ = parity_ ^ (further / stages & 1u);
        stage_ = further % stages;
    }

private:
    Where where_;
    u32 stage_ = 0, parity_ = 0;
};

/// Barriers for each stage: one for what arrives in it, one for those that are done with it.
template <std::uint32_t stages>
class Ring {
public:
    /// Stages are freed by `warps` warps of each of `blocks` blocks of the cluster. All threads of these blocks come
    /// here.
    explicit Ring(std::uint32_t warps, std::uint32_t blocks = 1) : blocks_(blocks) {
        if_(thread_id().x == 0, [&] {
            for (std::uint32_t s = 0; s < stages; ++s) {
                filled_[s].init(1u);
                free_[s].init(warps * blocks);
            }
            fence_barrier_init();
        });
        if (blocks > 1)
            cluster_sync();
        else
            sync_block();
    }

    /// By one thread: when the stage is free, begins to fill it with f(stage, barrier), copies of `bytes` bytes that
    /// arrive at the barrier. Continues with the next.
    void fill(RingPlace<stages>& at, const Word& bytes, auto&& f) const {
        const StageNumber stage = begin_to_fill(at, bytes);
        f(stage, filled_[stage]);
        at.next();
    }
    /// Until the stage is filled.
    void wait(const RingPlace<stages>& at) const { filled_[at.stage()].wait(at.parity()); }
    /// The same, but not before what `zero` is computed from: a number that is 0, which compilers do not know.
    void wait_after(const RingPlace<stages>& at, const Word& zero) const {
        const auto stage = at.stage();
        filled_[stage].wait(at.parity() ^ word(zero));
    }
    /// By whole warps, whose lanes are all done with a stage: after a sync_warp() if they have loaded from it.
    void free(const Word& stage) const {
        const auto number = word(stage);
        if (blocks_ > 1)
            if_(lane_id() < blocks_, [&] { peer(free_[number], lane_id()).arrive_relaxed(); });
        else
            if_(lane_id() == 0u, [&] { free_[number].arrive(); });
    }
    /// By the thread that fills, at the end: until all stages are free, so that no other block is left with arrivals to
    /// a block that has ended.
    void drain(RingPlace<stages>& at) const {
        for (std::uint32_t s = 0; s < stages; ++s) {
            free_[at.stage()].wait(at.parity() ^ 1u);
            at.next();
        }
    }

private:
    StageNumber begin_to_fill(const RingPlace<stages>& at, const Word& bytes) const {
        const auto stage = at.stage();
        free_[stage].wait(at.parity() ^ 1u);
        filled_[stage].arrive_expect(word(bytes));
        return stage;
    }

    std::uint32_t blocks_;
    Shared<Barrier, stages> filled_, free_;
};

}  // namespace ikat::stdlib
