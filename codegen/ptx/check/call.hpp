// SPDX-License-Identifier: Apache-2.0
// A direct call held against the declaration of what it calls.
#pragma once
#include <string>

#include "codegen/ptx/check/scopes.hpp"

namespace ikat::nvptx {

/// "f takes 2 arguments, not 1"; nothing where all fits, and for calls through registers.
std::string misfit_of_call(const Module& module, const Scopes& scopes, const Instruction& call);

}  // namespace ikat::nvptx
