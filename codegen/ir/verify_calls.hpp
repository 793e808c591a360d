// SPDX-License-Identifier: Apache-2.0
// What calls of a module's functions must fit.
#pragma once
#include "codegen/ir/verify.hpp"

namespace ikat::ir {

/// Functions with one name; calls of what is not there, stands further down or is a kernel, with other operands or
/// results than the function has; of functions with what only kernels have; pure ones of functions that are not. The
/// functions themselves are well formed.
std::vector<Diagnostic> call_problems(std::span<const Function> functions, Level level);

}  // namespace ikat::ir
