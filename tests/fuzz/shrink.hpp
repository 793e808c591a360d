// SPDX-License-Identifier: Apache-2.0
// A smaller program that still fails: instructions that leave it failing without them go, or become zeros, branches
// become jumps, until nothing more can go.
#pragma once
#include <functional>

#include "codegen/ast/ast.hpp"
#include "codegen/ir/function.hpp"

namespace ikat::test {

/// `fails` is asked of well-formed functions only. It must hold of fn.
ir::Function shrunk(ir::Function fn, const std::function<bool(const ir::Function&)>& fails);
ast::Kernel shrunk(ast::Kernel kernel, const std::function<bool(const ast::Kernel&)>& fails);

}  // namespace ikat::test
