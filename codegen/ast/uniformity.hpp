// SPDX-License-Identifier: Apache-2.0
// Barriers and operations of a whole warp in code that only some threads reach.
#pragma once
#include <vector>

#include "codegen/ast/ast.hpp"

namespace ikat::ast {

/// A diagnostic for each barrier that not all threads of a block reach together, and for each operation of all 32 lanes
/// that not all lanes of a warp reach together, with both lines. What it reports is wrong on any grid but odd ones;
/// what it cannot know (a value loaded from one address, the shape of the block) it takes to be uniform: the emulator
/// sees the rest.
std::vector<Diagnostic> divergent_operations(const Kernel& kernel);

}  // namespace ikat::ast
