// SPDX-License-Identifier: Apache-2.0
// Whether two kernels are the same, for those that keep what they were compiled to.
#pragma once
#include "codegen/ast/ast.hpp"
#include "codegen/support/digest.hpp"

namespace ikat::ast {

/// Of all that a kernel is: its name, its body, its contracts, and the lines that it comes from.
Digest digest(const KernelTree& kernel);

}  // namespace ikat::ast
