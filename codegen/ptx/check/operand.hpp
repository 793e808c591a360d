// SPDX-License-Identifier: Apache-2.0
// Checks one operand against the rule of a form.
#pragma once
#include <string>

#include "codegen/ptx/check/scopes.hpp"
#include "codegen/ptx/table/forms.hpp"
#include "codegen/ptx/text/module.hpp"

namespace ikat::ptx {

struct OperandContext {
    const Module& module;
    const Scopes& scopes;
    const Match& match;
    bool short_addresses;  // 32 bits address the instruction's space
    bool vectors_of_one;   // {%r1} is %r1
};

/// Why the operand does not match the rule, as the rest of a sentence that begins with the operand: "is a predicate,
/// not a 32-bit integer". Empty if it matches. Names must have been declared.
std::string misfit(const OperandContext& context, const Operand& operand, const OperandRule& rule);

}  // namespace ikat::ptx
