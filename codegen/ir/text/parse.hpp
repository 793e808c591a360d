// SPDX-License-Identifier: Apache-2.0
// Reads the text that print.hpp writes. What is printed parses back to an equal function (see renumbered()); comments
// (`//` to the end of the line) and the numbers of values are free.
#pragma once
#include <string_view>

#include "codegen/ir/function.hpp"

namespace ikat::ir {

/// Source locations of instructions: those given in the text (loc "file":7), if any, or else their own lines in the
/// text.
enum class Lines : std::uint8_t { Said, Own };

/// Throws Error with line, column and what was expected. `file` names the text in messages. The result is not verified.
Module parse(std::string_view text, std::string_view file = "", Lines lines = Lines::Said);

/// The only function of a text.
Function parse_function(std::string_view text, std::string_view file = "");

/// The same function with its arenas in the order of the text: no dead instructions or values, no unused texts. Two
/// functions that print alike then compare equal.
Function renumbered(const Function& fn);

}  // namespace ikat::ir
