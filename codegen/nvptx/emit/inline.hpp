// SPDX-License-Identifier: Apache-2.0
// PTX that stands as text in a kernel (ptx/check/inline.hpp), among the instructions that are written.
#pragma once
#include <span>
#include <string_view>

#include "codegen/nvptx/emit/writer.hpp"

namespace ikat::nvptx {

/// Appends the statements of a text that read_inline found right, operand k in the place of {k}.
void append_inline(Writer& writer, std::string_view text, std::span<const Operand> operands);

}  // namespace ikat::nvptx
