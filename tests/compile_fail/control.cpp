// SPDX-License-Identifier: Apache-2.0
// compiles: the include paths and flags of these tests are right.
#include <ikat/testing.hpp>

#include "codegen/support/id.hpp"

enum class Thing : std::uint32_t {};
static_assert(ikat::index(Thing(3)) == 3);
