// SPDX-License-Identifier: Apache-2.0
// Operands of which the output has an extent that no input has, a shape with a name twice; sizes of an array twice, by
// 0, and that begin with a division.
// expect: an output has an extent that no input has
// expect: a shape has each name once
// expect: sizes are of at most eight arrays, of each once
// expect: a factor of a size is not 0
// expect: a size begins with a parameter or a number
#include "stdlib/spec/shape.hpp"

using namespace ikat::stdlib;

constexpr Operands sums{{"x", "... columns"}, {"y", "rows", Access::Out}};
constexpr OperandShape twice("rows rows");
constexpr ArraySizes of_x{{"x", "n"}, {"x", "rows"}};
constexpr SizeProduct by_0("rows /0");
constexpr SizeProduct divided("/32 rows");
