// SPDX-License-Identifier: Apache-2.0
// PTX that stands as text in a kernel: `lop3.b32 {0}, {1}, {2}, {3}, 0xEA;`, where {k} is operand k. It is parsed and
// checked where it is written, and parsed again where the kernel becomes PTX, with registers for its operands.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "codegen/ir/type.hpp"
#include "codegen/nvptx/emit/writer.hpp"
#include "codegen/support/diagnostic.hpp"

namespace ikat::nvptx {

/// What is known of a text once it has been read.
struct InlineText {
    std::vector<Diagnostic> findings;  // their places are lines and columns of the text; empty: it is right
    /// It computes from its operands alone: it may be left out, merged and moved.
    bool pure = false;
};

/// Reads a text whose {k} has type operands[k].
InlineText read_inline(std::string_view text, std::span<const ir::Type> operands);

/// Appends the statements of a text that read_inline found right, operand k in the place of {k}.
void append_inline(Writer& writer, std::string_view text, std::span<const Operand> operands);

/// Whether results may be written before all operands are read: they must not share registers.
bool writes_early(std::string_view text);

}  // namespace ikat::nvptx
