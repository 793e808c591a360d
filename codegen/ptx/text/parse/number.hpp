// SPDX-License-Identifier: Apache-2.0
// Literals: 7 -7 0x1f 017 0b101 5U, 0f3F800000, 0d3FF0000000000000, 1.5, 2.5e-3. An operand keeps its spelling if
// printing its value would give another one.
#pragma once
#include "codegen/ptx/text/parse/build.hpp"

namespace ikat::ptx {

/// Reads the literal at `first` and the blanks after it. If there is none, returns false and moves nothing; throws if
/// it is malformed.
bool scan_number(Build& build, const char*& first, Operand& out);

}  // namespace ikat::ptx
