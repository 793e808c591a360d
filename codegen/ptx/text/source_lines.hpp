// SPDX-License-Identifier: Apache-2.0
// The source lines that the directives .file and .loc of a module tell.
#pragma once
#include <vector>

#include "codegen/ptx/text/module.hpp"
#include "codegen/support/diagnostic.hpp"

namespace ikat::ptx {

/// By line of the PTX (index 0 unused), the source line of the instruction there; empty if the module tells none. Of
/// inlined functions it is their own line.
std::vector<Location> source_lines(const Module& module);

}  // namespace ikat::ptx
