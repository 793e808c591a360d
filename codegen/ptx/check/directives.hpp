// SPDX-License-Identifier: Apache-2.0
// Checks where directives are allowed, with how many numbers, and from which .version and .target on.
#pragma once
#include "codegen/ptx/check/declarations.hpp"
#include "codegen/ptx/table/target.hpp"
#include "codegen/ptx/text/module.hpp"

namespace ikat::ptx {

/// How often a directive occurs in a function's head.
std::size_t count(const Module& module, const Function& function, std::string_view directive);

/// Checks a directive of the module, between functions.
void check_module_directive(const Module& module, const Directive& directive, const Report& report);

/// Checks the directives of a function's head, including those that exclude each other. An unknown target is nullptr.
void check_head(const Module& module, const Function& function, const Target* target, const Report& report);

/// Checks a directive in a body. It has a label if one directly precedes it.
void check_body_directive(const Module& module, const Directive& directive, bool has_label, const Report& report);

/// Checks the attribute of a variable in `space`, or of a function if that is empty.
void check_attribute(const Module& module, Name attribute, Position where, std::string_view space, const Target* target,
                     const Report& report);

}  // namespace ikat::ptx
