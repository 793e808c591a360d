// SPDX-License-Identifier: Apache-2.0
// Two warpgroups that take turns at something, warpgroup 0 first: at the products of a ring of which each works on
// every second run of slices. Only one at a time may wait for stages, because the parity of a phase says nothing about
// the phases before the last.
//
//     Turns turns;              before the Ring, whose barrier it needs
//     Ring<4> ring(4);
//     Turn turn(turns, group);
//     for (...) {
//         turn.begin();
//         ... ring.wait(at) ...
//         turn.end();           the other may begin
//         ...                   what needs no turn
//     }
#pragma once
#include "dsl/threads/barrier.hpp"
#include "dsl/threads/control.hpp"
#include "dsl/threads/simt.hpp"
#include "dsl/threads/warp.hpp"

namespace ikat::stdlib {

/// A barrier for each warpgroup: phases end with the turns of the other.
class Turns {
public:
    /// All threads come here, and then to a fence_barrier_init() and a sync_block().
    Turns() {
        if_(thread_id().x == 0, [&] {
            for (std::uint32_t group = 0; group < 2; ++group) ended_[group].init(4u);  // warps
        });
    }

private:
    friend class Turn;
    Shared<Barrier, 2> ended_;
};

/// The turns of warpgroup `group`, 0 or 1, whose threads all call the same.
class Turn {
public:
    Turn(const Turns& of, const Leaf<std::uint32_t>& group) : of_(of), group_(group), parity_(1u - group) {}

    /// Until the other has ended its turn.
    void begin() {
        of_.ended_[group_].wait(parity_);
        parity_ = parity_ ^ 1u;
    }
    void end() const {
        if_(lane_id() == 0u, [&] { of_.ended_[1u - group_].arrive(); });
    }

private:
    const Turns& of_;
    Leaf<std::uint32_t> group_;
    u32 parity_;
};

}  // namespace ikat::stdlib
