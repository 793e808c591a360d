// SPDX-License-Identifier: Apache-2.0
// The unit of a grid: blocks that start together, have their own barrier and reach each other's shared memory. A kernel
// without clusters has clusters of one block. The blocks of a cluster run in turn on one host thread, so all this needs
// no locks.
//
// In a kernel with mapa, generic addresses and .shared::cluster see the shared memory of all blocks:
//
//     | own | of rank 0 | of rank 1 | ...       each part has the same size, a power of two: ThreadBlock's shared_span_
// The first part is what .shared::cta sees, so a block's own addresses mean the same everywhere; mapa gives addresses
// in the other parts, even for the block itself.
#pragma once
#include <deque>

#include "runtime/emulator/machine/block.hpp"

namespace ikat::emulator {

class Cluster {
public:
    explicit Cluster(LaunchState& state);

    /// Begins cluster number `number` (x fastest).
    void start(std::uint64_t number);
    /// Calls f(block) for each that has not ended, in an order that depends on the seed; f returns true if it has
    /// ended.
    template <class F>
    void each_running(F f) {
        if (state_.options.seed) order_.shuffle(random_);
        for (const unsigned rank : order_.turns)
            if ((running_ >> rank & 1) && f(blocks_[rank])) running_ &= ~(1u << rank);
    }
    bool has_ended() const { return !running_; }
    std::deque<ThreadBlock>& blocks() { return blocks_; }

private:
    LaunchState& state_;
    std::deque<ThreadBlock> blocks_;  // by rank
    std::uint32_t running_ = 0;       // as a set
    TurnOrder order_;
    std::minstd_rand random_;
};

}  // namespace ikat::emulator
