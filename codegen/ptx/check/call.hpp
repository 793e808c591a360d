// SPDX-License-Identifier: Apache-2.0
// Checks a direct call against the declaration of its callee.
#pragma once
#include <string>

#include "codegen/ptx/check/scopes.hpp"

namespace ikat::ptx {

struct CallMisfit {
    std::string what{};  // "f takes 2 arguments, not 1"; empty if all fit, and for calls through registers
    std::string hint = "see its declaration";
};
CallMisfit misfit_of_call(const Module& module, const Scopes& scopes, const Instruction& call);

}  // namespace ikat::ptx
