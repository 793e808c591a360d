// SPDX-License-Identifier: Apache-2.0
// PTX text in a kernel: `lop3.b32 {0}, {1}, {2}, {3}, 0xEA;`, where {k} is operand k. It is parsed and checked at
// capture, and parsed again with registers as operands when the kernel's PTX is generated.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/ptx/text/module.hpp"
#include "codegen/support/diagnostic.hpp"

namespace ikat::ptx {

/// The result of reading a text.
struct InlineText {
    std::vector<Diagnostic> findings;  // with lines and columns in the text; empty: it is valid
    /// Its results depend only on its operands: it may be removed, merged and moved.
    bool pure = false;
};

/// Reads a text in which {k} is a register of type types[k], "b32".
InlineText read_inline(std::string_view text, std::span<const std::string_view> types);

/// The text with operands[k] instead of {k}.
std::string with_operands(std::string_view text, std::span<const std::string> operands);

/// A text accepted by read_inline as the body of a module's only function, with operands[k] instead of {k}.
Module parse_inline(std::string_view text, std::span<const std::string> operands);

/// Whether results may be written before all operands are read: they must not share registers.
bool writes_early(std::string_view text);

}  // namespace ikat::ptx
