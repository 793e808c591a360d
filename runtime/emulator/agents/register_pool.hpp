// SPDX-License-Identifier: Apache-2.0
// setmaxnreg: how many registers the threads of a warp may use. What a warp gives back others of its block may take,
// waiting for it if need be (PTX ISA, "setmaxnreg").
#pragma once
#include <cstdint>
#include <vector>

#include "codegen/ptx/text/module.hpp"
#include "runtime/emulator/agents/slots.hpp"
#include "runtime/emulator/core/agent.hpp"
#include "runtime/emulator/core/warp.hpp"

namespace ikat::emulator {

class ThreadBlock;

/// y is the new number, d whether it is to be more; x a barrier (control.hpp).
const MicroOp* change_registers(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);
/// Without effect: how many registers a thread has is not known.
const MicroOp* ignore_registers(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);

/// That of a block.
class RegisterPool final : public Agent {
public:
    static constexpr AgentSlot slot = AgentSlot::Registers;
    explicit RegisterPool(ThreadBlock& block) : block_(block) {}
    void start() override;
    enum class Change { Done, Waits, Finding };
    Change change(const MicroOp* op, Warp* w);
    bool is_met(const Warp& warp) override { return warps_[warp.index].wants <= warps_[warp.index].owns + free_; }
    std::string awaited_by(const Warp& warp) const override;
    FaultCode deadlock() const override { return FaultCode::RegisterPool; }
    /// Throws Error if a warp ends that has left one out that others of its warpgroup have executed.
    void end_warp(const Warp& warp) override;

private:
    struct OfWarp {
        std::uint32_t owns = 0, wants = 0;  // registers of a thread
        std::size_t changes = 0;
    };
    bool agrees(const MicroOp* op, Warp* w, const ptx::Instruction* instruction);

    ThreadBlock& block_;
    std::uint32_t free_ = 0;  // by warp: of its 32 threads each
    std::vector<OfWarp> warps_;
    std::vector<std::vector<const ptx::Instruction*>> changes_;  // by warpgroup
};

}  // namespace ikat::emulator
