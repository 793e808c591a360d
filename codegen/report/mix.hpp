// SPDX-License-Identifier: Apache-2.0
// Kinds of PTX instructions.
#pragma once
#include <string_view>
#include <vector>

#include "codegen/ptx/text/module.hpp"

namespace ikat {

/// All kinds, in the order in which reports show them.
std::vector<std::string_view> instruction_kinds();

/// "global loads", "floating point", ...: one of instruction_kinds().
std::string_view kind_of(const ptx::Module& module, const ptx::Instruction& instruction);

}  // namespace ikat
