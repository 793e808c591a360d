// SPDX-License-Identifier: Apache-2.0
// Inline PTX text of a kernel (ptx/check/inline.hpp), inserted among the emitted instructions.
#pragma once
#include <span>
#include <string_view>

#include "codegen/nvptx/emit/writer.hpp"

namespace ikat::nvptx {

/// Appends the statements of a text that read_inline accepted, with operand k in place of {k}.
void append_inline(Writer& writer, std::string_view text, std::span<const ptx::Operand> operands);

}  // namespace ikat::nvptx
