// SPDX-License-Identifier: Apache-2.0
// Operands of which the output has an extent that no input has, and a shape with a name twice.
// expect: an output has an extent that no input has
// expect: a shape has each name once
#include "stdlib/spec/shape.hpp"

using namespace ikat::stdlib;

constexpr Operands sums{{"x", "... columns"}, {"y", "rows", Access::Out}};
constexpr OperandShape twice("rows rows");
