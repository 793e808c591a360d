// SPDX-License-Identifier: Apache-2.0
// PTX that stands as text in a kernel: `lop3.b32 {0}, {1}, {2}, {3}, 0xEA;`, where {k} is operand k. It is parsed and
// checked where it is written, and parsed again where the kernel becomes PTX, with registers for its operands.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/ptx/text/module.hpp"
#include "codegen/support/diagnostic.hpp"

namespace ikat::nvptx {

/// What is known of a text once it has been read.
struct InlineText {
    std::vector<Diagnostic> findings;  // their places are lines and columns of the text; empty: it is right
    /// It computes from its operands alone: it may be left out, merged and moved.
    bool pure = false;
};

/// Reads a text whose {k} stands for a register of type types[k], "b32".
InlineText read_inline(std::string_view text, std::span<const std::string_view> types);

/// The text with operands[k] in the place of {k}.
std::string with_operands(std::string_view text, std::span<const std::string> operands);

/// A text that read_inline found right as the body of a module's only function, operands[k] in the place of {k}.
Module parse_inline(std::string_view text, std::span<const std::string> operands);

/// Whether results may be written before all operands are read: they must not share registers.
bool writes_early(std::string_view text);

}  // namespace ikat::nvptx
