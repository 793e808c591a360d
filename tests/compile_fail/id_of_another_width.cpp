// SPDX-License-Identifier: Apache-2.0
// An id is 32 bits wide: an enumeration over another type is none.
// expect: Narrow
#include "codegen/support/id.hpp"

enum class Narrow : std::uint8_t {};
auto position = ikat::index(Narrow(3));
