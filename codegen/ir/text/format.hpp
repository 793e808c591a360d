// SPDX-License-Identifier: Apache-2.0
// Texts of print() and check(): {} is the next value, {:5.2f} and {:#x} say how it is written, {{ and }} are braces.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/ir/type.hpp"

namespace ikat::ir {

/// A text in pieces: text[k] comes before hole k, the last piece after all holes. Braces are unescaped.
struct Format {
    std::vector<std::string> text;
    std::vector<std::string> holes;  // "5.2f", the text between {: and }
};

/// Nothing if a brace is unmatched.
std::optional<Format> read_format(std::string_view text);

/// The printf conversion of a hole for a value of that type: "%5.2f"; nothing if the type cannot be printed that way.
std::optional<std::string> conversion(std::string_view hole, Type type);

}  // namespace ikat::ir
