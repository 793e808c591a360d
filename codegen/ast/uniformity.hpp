// SPDX-License-Identifier: Apache-2.0
// Finds barriers and full-warp operations in divergent code.
#pragma once
#include <vector>

#include "codegen/ast/ast.hpp"

namespace ikat::ast {

/// A diagnostic for each barrier that not all threads of a block reach together, and for each operation of all 32 lanes
/// that not all lanes of a warp reach together, with both lines. A reported operation is wrong on nearly any grid; what
/// cannot be known (a value loaded from one address, the shape of the block) is assumed to be uniform: the emulator
/// finds the rest.
std::vector<Diagnostic> divergent_operations(const KernelTree& kernel);

}  // namespace ikat::ast
