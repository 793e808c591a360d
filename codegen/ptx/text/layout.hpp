// SPDX-License-Identifier: Apache-2.0
// How much memory variables and parameters take, and how they are aligned.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "codegen/ptx/text/module.hpp"

namespace ikat::ptx {

/// Bytes of a type such as ".f16x2"; 0 for one without a size.
unsigned element_bytes(std::string_view type);

/// Bytes and alignment of a variable.
std::uint64_t variable_bytes(const Module& module, const Variable& variable, const Variable::Declarator& declarator);
std::uint64_t variable_alignment(const Module& module, const Variable& variable);

/// Where the parameters of a function start if they are packed: each at its natural alignment.
std::vector<std::uint64_t> parameter_offsets(const Module& module, const Function& function);

}  // namespace ikat::ptx
