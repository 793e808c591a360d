// SPDX-License-Identifier: Apache-2.0
// setmaxnreg: how many registers the threads of a warp may use. What a warp gives back others of its block may take,
// waiting for it if need be (PTX ISA, "setmaxnreg").
#pragma once
#include <cstdint>
#include <vector>

#include "codegen/ptx/text/module.hpp"
#include "runtime/emulator/machine/machine.hpp"

namespace ikat::emulator {

class ScheduledWarp;

/// y is the new number, d whether it is to be more; x a barrier (control.hpp).
const MicroOp* change_registers(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);
/// Without effect: how many registers a thread has is not known.
const MicroOp* ignore_registers(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);

/// That of a block.
class RegisterPool {
public:
    /// A new block begins, with `registers` for each thread of its warps.
    void clear(std::size_t warps, std::uint32_t registers);
    enum class Change { Done, Waits, Finding };
    Change change(const MicroOp* op, Warp* w);
    /// Whether a warp that waits for registers can have them now.
    bool is_met(const Warp* w) const { return warps_[w->index].wants <= warps_[w->index].owns + free_; }
    std::uint32_t wanted_by(const Warp* w) const { return warps_[w->index].wants - warps_[w->index].owns; }
    std::uint32_t free() const { return free_; }
    /// Throws Error if a warp ends that has left one out that others of its warpgroup have executed.
    void end(const ThreadBlock& block, const ScheduledWarp& warp) const;

private:
    struct OfWarp {
        std::uint32_t owns = 0, wants = 0;  // registers of a thread
        std::size_t changes = 0;
    };
    bool agrees(const MicroOp* op, Warp* w, const nvptx::Instruction* instruction);

    std::uint32_t free_ = 0;  // by warp: of its 32 threads each
    std::vector<OfWarp> warps_;
    std::vector<std::vector<const nvptx::Instruction*>> changes_;  // by warpgroup
};

}  // namespace ikat::emulator
