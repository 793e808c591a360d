// SPDX-License-Identifier: Apache-2.0
// Constant expressions: 4*8, (1 << 10) - 1, WARP_SZ*2, 0x80U >> 3, 1.5*2, x < 3 ? 1 : 0, (.u64)-1. A single literal is
// the most common case. An expression becomes a literal with its value; it keeps its spelling, so that it prints as
// written except for blanks.
#pragma once
#include "codegen/ptx/text/parse/build.hpp"

namespace ikat::ptx {

/// Registers and names, the most common operands, start differently.
inline bool may_begin_expression(char c) {
    return characters::is(c, characters::Digit) || c == '-' || c == '(' || c == '!' || c == '~' || c == '+' || c == 'W';
}

/// Reads the expression at `first` and the blanks after it. If there is none, returns false and moves nothing; throws
/// if it is malformed.
bool scan_expression(Build& build, const char*& first, Operand& out);

}  // namespace ikat::ptx
