// SPDX-License-Identifier: Apache-2.0
// PTX files as one module.
#pragma once
#include <string>
#include <vector>

#include "codegen/ptx/text/module.hpp"

namespace ikat::cli {

/// The file, or the files linked, whose lines are then those of the linked text. Throws Error for PTX that does not
/// parse or, if it is to be checked, that ptxas would refuse: of a complete one also functions without a body.
nvptx::Module read_modules(const std::vector<std::string>& paths, bool check, bool is_complete);

}  // namespace ikat::cli
