// SPDX-License-Identifier: Apache-2.0
// PTX for golden files: what a kernel becomes, with registers numbered in the order of the code. A value that comes or
// goes moves the numbers behind it, but does not shuffle them all, as colouring would.
#pragma once
#include <string>
#include <string_view>

#include "codegen/ast/ast.hpp"

namespace ikat::golden {

/// Throws Error for what is wrong with the kernel, as a launch would.
std::string ptx(const ast::Kernel& kernel, std::string_view target = "sm_80");

}  // namespace ikat::golden
