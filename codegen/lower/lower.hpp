// SPDX-License-Identifier: Apache-2.0
// AST → SSA.
#pragma once
#include "codegen/ast/ast.hpp"
#include "codegen/ir/function.hpp"

namespace ikat::lower {

/// The kernel as an IR function: variables become values, structured control flow becomes blocks, subscripts become
/// addresses. The kernel must have passed ast::check.
ir::Function ast_to_ssa(const ast::KernelTree& kernel);

/// The same with the functions that it calls before it.
ir::Module lower_module(const ast::KernelTree& kernel);

}  // namespace ikat::lower
