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

    /// Begins cluster number `number` (x fastest), before which `turn` others have been begun.
    void start(std::uint64_t number, std::uint64_t turn);
    /// Calls f(block, false) for each that has not ended, in an order that depends on the schedule; f returns true if
    /// it has ended. f(block, true) for one that is to give way soon, because the others go before it.
    template <class F>
    void each_running(F f) {
        order_.begin_round(random_);
        const auto call = [&](unsigned rank) {
            if ((running_ >> rank & 1) && f(blocks_[rank], rank == starved_)) running_ &= ~(1u << rank);
        };
        for (const unsigned rank : order_.turns())
            if (rank != starved_) call(rank);
        const unsigned last = starved_;
        if (last < blocks_.size() && !starves()) call(last);
    }
    bool has_ended() const { return !running_; }
    std::deque<ThreadBlock>& blocks() { return blocks_; }

private:
    bool starves();
    std::uint64_t executed_by_others() const;

    LaunchState& state_;
    std::deque<ThreadBlock> blocks_;  // by rank
    std::uint32_t running_ = 0;       // as a set
    TurnOrder order_;
    static constexpr unsigned nobody = ~0u;
    unsigned starved_ = nobody;        // the rank of the block that the others go before
    std::uint64_t starved_since_ = 0;  // when the others had executed this many instructions
    std::uint64_t starved_rounds_ = 0;
    std::minstd_rand random_;
};

}  // namespace ikat::emulator
