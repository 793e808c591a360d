// SPDX-License-Identifier: Apache-2.0
// PTX files as one module.
#pragma once
#include <string>
#include <vector>

#include "codegen/ptx/text/module.hpp"

namespace ikat::cli {

/// The file, or the linked files, with the line numbers of the linked text. Throws Error for PTX that does not parse
/// or, with `check`, that ptxas would reject; if it `is_complete`, functions without a body are errors, too.
ptx::Module read_modules(const std::vector<std::string>& paths, bool check, bool is_complete);

}  // namespace ikat::cli
