// SPDX-License-Identifier: Apache-2.0
// Mistakes that a library in the language finds in the kernel that uses it.
#pragma once
#include <string>
#include <vector>

#include "codegen/support/diagnostic.hpp"
#include "dsl/record/trace.hpp"

namespace ikat::trace {

/// An error of the kernel that is captured: reported with the others at its end.
void complain(std::string message, std::string hint, const Where& where, std::vector<Diagnostic::Note> notes = {});

}  // namespace ikat::trace
