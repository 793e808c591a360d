// SPDX-License-Identifier: Apache-2.0
// The words of declarations and directives by their meanings, for code that need not know how they are spelt.
#pragma once
#include <cstdint>

#include "codegen/ptx/table/modifier.hpp"
#include "codegen/ptx/text/module.hpp"

namespace ikat::ptx {

enum class StateSpace : std::uint8_t { Register, Const, Global, Local, Param, Shared, Other };
StateSpace space_of(const Module& module, const Variable& variable);
bool is_predicate(const Module& module, const Variable& variable);

enum class DirectiveKind : std::uint8_t {
    BranchTargets,
    CallPrototype,
    CallTargets,
    ExplicitCluster,
    MaxRegisters,
    MaxThreads,
    MinBlocks,
    RequiredCluster,
    RequiredThreads,
    Other
};
DirectiveKind kind_of(const Module& module, const Directive& directive);

/// Whether an instruction has a modifier.
bool has(const Module& module, const Instruction& instruction, Modifier modifier);

}  // namespace ikat::ptx
