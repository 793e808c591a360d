// SPDX-License-Identifier: Apache-2.0
// Part of check(): copies in flight.
#pragma once
#include "codegen/ast/ast.hpp"

namespace ikat::ast {

/// Reads of shared memory to which the thread has surely begun to copy, with no wait between; waits for groups of
/// copies where none has been committed.
std::vector<Diagnostic> unfinished_copies(const KernelTree& kernel);

}  // namespace ikat::ast
