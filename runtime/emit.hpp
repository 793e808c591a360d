// SPDX-License-Identifier: Apache-2.0
// IKAT_EMIT=FOLDER: what the compiler makes of each kernel that a program launches, as files.
#pragma once
#include <optional>
#include <string>

#include "codegen/pipeline/compile.hpp"

namespace ikat::runtime {

/// The folder that the environment's IKAT_EMIT names.
std::optional<std::string> emit_folder();

/// Writes NAME.ptx, NAME.ssa.ir and NAME.opt.ir (the IR as it was lowered, and behind the passes) and NAME.report.txt
/// into the folder, which is made if it is not there. A second kernel of that name, or for other options, is NAME.2.ptx
/// and so on. The kernel was compiled with keep_stages and pressure. Throws Error where a file cannot be written.
void emit_files(const std::string& folder, const Compiled& compiled);

}  // namespace ikat::runtime
