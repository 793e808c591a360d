// SPDX-License-Identifier: Apache-2.0
// compiles
#include "stdlib/spec/shape.hpp"

using namespace ikat::stdlib;

constexpr Operands sums{{"x", "... rows columns"}, {"y", "... rows", Access::Out}};
static_assert(sums.all().size() == 2 && sums.all()[1].shape.has_more());
constexpr OperandShape some("[planes] m k");
static_assert(some.names().size() == 3 && some.optional() == 1 && some.position("k") == 2);
constexpr ArraySizes sizes{{"x", "n"}, {"y", "rows columns /32 9"}};
static_assert(sizes.find("y")->factors().size() == 4 && !sizes.find("z"));
static_assert(sizes.find("y")->factors()[2].divides && sizes.find("y")->factors()[2].number == 32);
static_assert(sizes.find("y")->factors()[1].parameter == "columns");
