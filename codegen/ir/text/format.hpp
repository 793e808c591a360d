// SPDX-License-Identifier: Apache-2.0
// Texts of print() and check(): {} is the next value, {:5.2f} and {:#x} say how it is written, {{ and }} are braces.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/ir/type.hpp"

namespace ikat::ir {

/// A text in pieces: text[k] stands before hole k, the last one behind all of them. Braces are single.
struct Format {
    std::vector<std::string> text;
    std::vector<std::string> holes;  // "5.2f", what stands between {: and }
};

/// Nothing if a brace stands alone.
std::optional<Format> read_format(std::string_view text);

/// A hole as C's printf has it for a value of that type: "%5.2f"; nothing if the type is not written so.
std::optional<std::string> conversion(std::string_view hole, Type type);

}  // namespace ikat::ir
