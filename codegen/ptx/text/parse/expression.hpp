// SPDX-License-Identifier: Apache-2.0
// Constant expressions: 4*8, (1 << 10) - 1, WARP_SZ*2, 0x80U >> 3, 1.5*2, x < 3 ? 1 : 0, (.u64)-1. A lone literal is
// one, too, and the common one. An expression becomes a literal with the value it has; it keeps the spelling, so that
// it prints as it was written but for blanks.
#pragma once
#include "codegen/ptx/text/parse/build.hpp"

namespace ikat::nvptx {

/// Registers and names, the commonest operands, begin otherwise.
inline bool may_begin_expression(char c) {
    return characters::is(c, characters::Digit) || c == '-' || c == '(' || c == '!' || c == '~' || c == '+' || c == 'W';
}

/// Reads the expression at `first` and what is blank after it. False, with nothing moved, where there is none; throws
/// where there is a wrong one.
bool scan_expression(Build& build, const char*& first, Operand& out);

}  // namespace ikat::nvptx
