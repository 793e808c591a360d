// SPDX-License-Identifier: Apache-2.0
// The text of stdlib/batch/members.inl, which follows from the catalogue.
#pragma once
#include <span>
#include <string>

#include "stdlib/spec/functions.hpp"

namespace ikat::tests {

/// Whether a function is a member of Batch: where names are made of parts, as "gemm_tensor_core_bf16_nt_bias" is, it is
/// called by its name.
bool is_member(const stdlib::NamedFunction& function);

/// The file for these functions, those that are members.
std::string members_text(std::span<const stdlib::NamedFunction> functions);

}  // namespace ikat::tests
