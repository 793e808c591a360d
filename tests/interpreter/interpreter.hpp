// SPDX-License-Identifier: Apache-2.0
// One thread of an IR function, run instruction by instruction on ir::evaluate: slow, obvious, and independent of
// selection, register allocation, PTX and the emulator. What the tests of lowering and of the passes compare with.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "codegen/ir/function.hpp"

namespace ikat::test {

/// What the thread starts with and what it leaves.
struct Thread {
    std::vector<ir::Word> scalars;                   // by parameter; of a pointer: its address
    std::map<std::uint64_t, std::uint8_t> memory{};  // all spaces; shared and local symbols start at address 0 up
    std::vector<ir::Word> special{};                 // by ir::SpecialRegister
    std::uint64_t step_budget = 1'000'000;
    /// Called with each result, and each parameter of a block, as it gets its value.
    std::function<void(ir::Block, ir::Value, ir::Word)> observe{};
    /// Called with each instruction that does more than compute, load and store weakly (atomics, ordered and volatile
    /// accesses, fences, what lanes do together, prints) and its operands, before it is executed: here other threads
    /// may have written, so the call may change the memory. What it gives is the result of those that one thread alone
    /// cannot know, such as a shuffle; without it they are 0.
    std::function<ir::Word(const ir::Instruction&, std::span<const ir::Word>)> others{};
};

enum class End { Returned, Trapped, OutOfSteps };

/// Runs fn to its end and changes thread.memory. The function must be verified.
End interpret(const ir::Function& fn, Thread& thread);

}  // namespace ikat::test
