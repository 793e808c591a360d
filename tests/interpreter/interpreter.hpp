// SPDX-License-Identifier: Apache-2.0
// Interprets an IR function with one thread, instruction by instruction with ir::evaluate: slow, obvious, and
// independent of selection, register allocation, PTX and the emulator. The reference for the tests of lowering and of
// the passes.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "codegen/ir/function.hpp"

namespace ikat::test {

/// The thread's inputs and its final state.
struct Thread {
    std::vector<ir::Word> scalars;                   // by parameter; for a pointer: its address
    std::map<std::uint64_t, std::uint8_t> memory{};  // all spaces; shared and local symbols start at address 0 up
    std::vector<ir::Word> special{};                 // by ir::SpecialRegister
    std::uint64_t step_budget = 1'000'000;
    /// Called with each result, and each parameter of a block, as it gets its value.
    std::function<void(ir::Block, ir::Value, ir::Word)> observe{};
    /// Called, before execution, with each instruction that does more than compute or access memory weakly (atomics,
    /// ordered and volatile accesses, fences, warp operations, prints) and its operands: other threads may have written
    /// by then, so the call may change the memory. It returns the result of operations that one thread alone cannot
    /// know, such as a shuffle; if empty, those are 0.
    std::function<ir::Word(const ir::Instruction&, std::span<const ir::Word>)> others{};
};

enum class End { Returned, Trapped, OutOfSteps };

/// Runs fn to its end and changes thread.memory. The function must be verified.
End interpret(const ir::Function& fn, Thread& thread);

}  // namespace ikat::test
