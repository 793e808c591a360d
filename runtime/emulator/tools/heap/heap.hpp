// SPDX-License-Identifier: Apache-2.0
// Which instructions have allocated the memory that a launch has not freed.
#pragma once
#include "runtime/emulator/core/tool.hpp"

namespace ikat::emulator {

/// Fills Statistics::heap_left. Used with Options::asks_for_heap.
const Tool& heap_left();

}  // namespace ikat::emulator
