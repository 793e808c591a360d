// SPDX-License-Identifier: Apache-2.0
// Part of check(): barriers with a number.
#pragma once
#include "codegen/ast/ast.hpp"

namespace ikat::ast {

/// Barriers that are said to wait for different numbers of threads.
std::vector<Diagnostic> unequal_barriers(const KernelTree& kernel);

}  // namespace ikat::ast
