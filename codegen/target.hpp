// SPDX-License-Identifier: Apache-2.0
// What a target is to the compiler: the limits of its machine, what it can do, the stages that lead from IR to its own
// instructions, its registers, and its text. A target is a value of this struct; nvptx/target.hpp has those for
// NVIDIA's GPUs by PTX.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/ir/function.hpp"
#include "codegen/kernel/pressure.hpp"
#include "codegen/pipeline/stage.hpp"
#include "regalloc/regalloc.hpp"

namespace ikat {

/// The registers of a function's values. Its instructions and the problem's are numbered alike, block by block.
struct Registers {
    regalloc::Problem problem;
    std::vector<regalloc::LiveRange> ranges;  // by ir::Value; no_id for a value without a register
    regalloc::Allocation allocation;

    regalloc::Register of(ir::Value value) const { return allocation.registers[index(ranges[index(value)])]; }
};

/// A kernel and what it calls, as the target has them.
struct TargetText {
    std::string text;
    std::vector<Location> source_lines;  // by line of the text
};

struct Target {
    std::string_view name;  // "sm_90a"

    // ---- limits
    std::uint32_t shared_static = 0;    // bytes of shared memory of a block without asking ...
    std::uint32_t shared_opt_in = 0;    // ... and at most
    std::uint32_t vector_elements = 1;  // of one access to memory

    // ---- capabilities: what it does not have is expanded (codegen/legalise)
    bool async_copies = false;   // that continue after their instruction
    bool matrix_stores = false;  // by a warp
    bool grids_overlap = false;  // of a stream, where kernels ask for it
    /// Whether it has the atomic, or the reduction of a vector.
    bool (*has_atomic)(const Target&, const ir::Instruction&) = nullptr;

    // ---- stages between "opt" and "select"
    std::span<const pipeline::Stage> steps{};       // its own
    std::span<const std::string_view> selection{};  // in this order, with passes between them

    // ---- registers
    std::span<const std::string_view> pools{};  // "b32"
    Registers (*allocate)(const ir::Function&, const regalloc::Options&) = nullptr;
    std::string (*print)(const ir::Function&, const Registers&) = nullptr;
    /// Empty, or what is wrong with the registers.
    std::string (*complaint)(const ir::Function&, const Registers&) = nullptr;
    SourcePressure (*pressure)(const ir::Function&, const Registers&) = nullptr;

    // ---- text, of selected functions with their registers in the same order
    TargetText (*emit)(const ir::Module&, std::span<const Registers>, const Target&, bool line_info) = nullptr;
};

}  // namespace ikat
