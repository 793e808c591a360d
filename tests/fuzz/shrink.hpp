// SPDX-License-Identifier: Apache-2.0
// Shrinks a failing program: instructions that are not needed for the failure are removed or replaced by zeros,
// branches become jumps, until nothing more can be removed.
#pragma once
#include <functional>

#include "codegen/ast/ast.hpp"
#include "codegen/ir/function.hpp"

namespace ikat::test {

/// `fails` is called only with well-formed functions. It must be true for fn.
ir::Function shrunk(ir::Function fn, const std::function<bool(const ir::Function&)>& fails);
ast::KernelTree shrunk(ast::KernelTree kernel, const std::function<bool(const ast::KernelTree&)>& fails);

}  // namespace ikat::test
