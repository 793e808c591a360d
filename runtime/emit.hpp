// SPDX-License-Identifier: Apache-2.0
// IKAT_EMIT=FOLDER: the compiler's output for each kernel that a program launches, as files.
#pragma once
#include <optional>
#include <string>

#include "codegen/pipeline/compile.hpp"

namespace ikat::runtime {

/// The folder given by IKAT_EMIT in the environment.
std::optional<std::string> emit_folder();

/// Writes NAME.ptx, NAME.ssa.ir and NAME.opt.ir (the IR after lowering, and after the passes) and NAME.report.txt into
/// the folder, which is created if needed. A second kernel of that name, or with other options, is NAME.2.ptx and so
/// on. The kernel must have been compiled with keep_stages and pressure. Throws Error if a file cannot be written.
void emit_files(const std::string& folder, const Compiled& compiled);

}  // namespace ikat::runtime
