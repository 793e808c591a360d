// SPDX-License-Identifier: Apache-2.0
// Findings as messages: what happened, where in the grid, in the PTX and in the kernel's source.
#pragma once
#include "runtime/emulator/machine/block.hpp"

namespace ikat::emulator {

/// The finding of a warp that stopped with Leave::Fault; or about something that it has started `at` an instruction.
Error fault_error(const ThreadBlock& block, const ScheduledWarp& warp, const ptx::Instruction* at = nullptr);
/// The code of a finding by what is at its address: an access right after shared memory, one of a copy in flight or of
/// a barrier.
FaultCode refined_code(const Fault& fault, const ThreadBlock& block);
/// What it is to read or write bytes of shared memory that an agent has; nothing: none has.
std::optional<FaultCode> claim_of_agents(const Fault& access, const ThreadBlock& block, bool writes);
/// A warp whose lanes wait for lanes that can never arrive.
Error stuck_error(const ThreadBlock& block, const ScheduledWarp& warp);
/// A warp ends when it must not, because of the instruction.
Error product_error(const ThreadBlock& block, const Warp& warp, FaultCode code, std::string message,
                    const ptx::Instruction* instruction);
/// No warp of the block can continue.
Error deadlock_error(const ThreadBlock& block);
/// A barrier used wrongly by this warp. The default hint is that of the code.
Error barrier_error(const ThreadBlock& block, const ScheduledWarp& warp, FaultCode code, std::string message,
                    const char* hint = "");
/// The budget of a warp is spent, or that of the launch.
Error budget_error(const ThreadBlock& block, const ScheduledWarp& warp);
Error budget_error(const ThreadBlock& block);
/// A warp that repeats its state and reads nothing that could change.
Error endless_error(const ThreadBlock& block, const ScheduledWarp& warp);
/// All warps of the block poll memory that no thread can change any more.
Error waiting_error(const ThreadBlock& block);
/// The launch does not fit the kernel, or a device.
void check_launch(const ptx::Module& module, const DecodedKernel& kernel, const Launch& launch);

/// A diagnostic with the code, the message and the hint of a fault.
Diagnostic diagnostic_of(FaultCode code);

Location location(const ptx::Module& module, const ptx::Position& where);
/// Of an instruction: its line in the kernel's source if that is known, else in the PTX.
Location location(const LaunchState& state, const ptx::Instruction& instruction);
/// An instruction as PTX, cut to 160 characters.
std::string text_of(const ptx::Module& module, const ptx::Instruction& instruction);

const ptx::Instruction* instruction_at(const Warp& warp, std::uint32_t pc);
/// Says where it is: the line of the kernel's source if there is a table for it, and that of the PTX.
void place(Diagnostic& diagnostic, const ThreadBlock& block, const ptx::Instruction* instruction);
void place(Diagnostic& diagnostic, const ThreadBlock& block, const Warp& warp, std::uint32_t pc);

/// "at offset 12 of buffer 'x' (64 bytes)"
std::string bytes_text(const AccessedBytes& at, const ThreadBlock& block);
/// "block (0,0,0) thread (1,0,0)"
std::string who(const ThreadBlock& block, const Warp& warp, unsigned lane);
/// "thread (1,0,0)", by its number in the block
std::string thread_text(const ThreadBlock& block, std::uint32_t number);

}  // namespace ikat::emulator
