// SPDX-License-Identifier: Apache-2.0
// Checks of the calls between a module's functions.
#pragma once
#include "codegen/ir/verify.hpp"

namespace ikat::ir {

/// Reports functions with the same name; calls of a function that does not exist, comes later or is a kernel, or with
/// operands or results that do not match; calls of functions with features that only kernels have; pure calls of
/// functions that are not pure. The functions themselves must be well formed.
std::vector<Diagnostic> call_problems(std::span<const Function> functions, Level level);

}  // namespace ikat::ir
