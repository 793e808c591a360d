// SPDX-License-Identifier: Apache-2.0
// Detects a warp that loops forever without changing anything, unless another thread writes what it reads.
//
//     L:  bra L;                                          reads nothing: endless
//     L:  ld.volatile.u32 %r1, [flag];                    endless unless the flag is written
//         setp.eq.u32 %p1, %r1, 0;  @%p1 bra L;
// It is watched turn by turn (a turn ends at the first branch) until its lanes are at the same ops with the same
// registers and local memory as before. If all lanes that can run have run in between, and nothing they executed
// changed memory or depends on other state, the same will happen again.
#pragma once
#include <optional>
#include <span>

#include "runtime/emulator/machine/warp.hpp"

namespace ikat::emulator {

/// By op, the effects of the ops from this one to the next branch: ReadsBlock, ReadsOthers, Changes.
std::vector<std::uint8_t> effects_of_turns(const DecodedKernel& kernel);

class Watch {
public:
    /// `effects` are those of the kernel's turns.
    Watch(const DecodedKernel& kernel, const std::vector<std::uint8_t>& effects, ScheduledWarp& warp);

    /// Called before and after each turn of the warp. after() is true once the warp is known to repeat.
    void before();
    bool after();
    /// Instead of after(), where all warps of the block have met: whether it is as it was when it was last remembered.
    bool is_back();
    void remember();
    /// Whether something has changed, so the warp makes progress.
    bool is_alive() const { return reads_ & Changes; }
    /// What it reads in the cycle: ReadsBlock, ReadsOthers.
    std::uint8_t reads() const { return reads_; }
    const ScheduledWarp* warp() const { return &warp_; }
    /// Whether the warp still runs the code that is watched.
    bool is_valid() const { return warp_.kernel == &kernel_; }

private:
    std::span<const std::byte> local_memory() const;
    bool is_as_before(const std::vector<Split>& now) const;

    const DecodedKernel& kernel_;
    const std::vector<std::uint8_t>& effects_;
    ScheduledWarp& warp_;
    std::vector<Split> splits_;
    std::vector<std::byte> bytes_;  // registers, local memory
    std::uint32_t ran_ = 0;         // lanes
    std::uint8_t reads_ = 0;
    std::uint64_t changes_ = 0, turns_ = 0;
};

}  // namespace ikat::emulator
