// SPDX-License-Identifier: Apache-2.0
// Which directives stand where, with how many numbers, from which .version and .target on.
#pragma once
#include "codegen/ptx/check/declarations.hpp"
#include "codegen/ptx/table/target.hpp"
#include "codegen/ptx/text/module.hpp"

namespace ikat::nvptx {

/// How often a directive stands in a function's head.
std::size_t count(const Module& module, const Function& function, std::string_view directive);

/// Of those of a module, between its functions.
void check_module_directive(const Module& module, const Directive& directive, const Report& report);

/// Of the directives of a function's head, and those of them that exclude each other. A target that is not known is
/// nullptr.
void check_head(const Module& module, const Function& function, const Target* target, const Report& report);

/// Of one of a body. It has a label if one stands directly before it.
void check_body_directive(const Module& module, const Directive& directive, bool has_label, const Report& report);

/// Of the attribute of a variable in `space`, or of a function where that is empty.
void check_attribute(const Module& module, Name attribute, Position where, std::string_view space, const Target* target,
                     const Report& report);

}  // namespace ikat::nvptx
