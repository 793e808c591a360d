// SPDX-License-Identifier: Apache-2.0
// An id is 32 bits wide: an enumeration with another underlying type is not an id.
// expect: Narrow
#include "codegen/support/id.hpp"

enum class Narrow : std::uint8_t {};
auto position = ikat::index(Narrow(3));
