// SPDX-License-Identifier: Apache-2.0
// Constants as text, exactly: the shortest decimal that reads back to the same bits (1.5, -0.0, inf), "nan" for the
// canonical NaN and hexadecimal bits for any other, true and false, integers in decimal, large unsigned ones in
// hexadecimal.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "codegen/ir/op/evaluate.hpp"

namespace ikat::ir {

std::string literal_text(Type type, Word bits);

/// The bits of a literal of `type`; nothing if it is malformed or out of the type's range. For any type, hexadecimal
/// gives the bits.
std::optional<Word> literal_bits(Type type, std::string_view text);

/// Whether the bits fit in the type's width.
constexpr bool fits(Type type, Word word) { return bits(type) == 64 || word >> bits(type) == 0; }

}  // namespace ikat::ir
