// SPDX-License-Identifier: Apache-2.0
// The unit of a grid: blocks that start together and have their own barrier. A kernel without clusters has clusters of
// one block. The blocks of a cluster run in turn on one host thread, so their barrier needs no locks.
#pragma once
#include <deque>

#include "runtime/emulator/machine/block.hpp"

namespace ikat::emulator {

class Cluster {
public:
    explicit Cluster(LaunchState& state);

    /// Begins cluster number `number` (x fastest).
    void start(std::uint64_t number);
    /// Calls f(block) for each that has not ended; f returns true if it has ended.
    template <class F>
    void each_running(F f) {
        for (std::size_t rank = 0; rank < blocks_.size(); ++rank)
            if ((running_ >> rank & 1) && f(blocks_[rank])) running_ &= ~(1u << rank);
    }
    bool has_ended() const { return !running_; }
    const std::deque<ThreadBlock>& blocks() const { return blocks_; }

private:
    LaunchState& state_;
    std::deque<ThreadBlock> blocks_;  // by rank
    std::uint32_t running_ = 0;       // as a set
};

}  // namespace ikat::emulator
