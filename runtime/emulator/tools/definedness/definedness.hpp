// SPDX-License-Identifier: Apache-2.0
// The ops of the checked code (core/definedness.hpp).
#pragma once
#include "runtime/emulator/core/definedness.hpp"
#include "runtime/emulator/core/tool.hpp"

namespace ikat::emulator {

/// Inserts them; the last tool of the code that checks.
const Tool& definedness();

/// Whether the result is no more than parts of sources.
constexpr bool moves(Propagation rule) { return rule >= Propagation::And; }

/// Before an op: d is the Propagation, whose parameter is x, or a DefinedUse from first_use on; a and b are the sets of
/// fields that the op reads and writes, c the bytes of each field's value, 4 bits each (0: a predicate); y is 1 + the
/// number of results in the op's list, if it has one.
Handler select_definedness();
inline constexpr std::uint32_t first_use = 64;
/// Replaces a load or store (and continues after it): d is the set of fields that are its elements, a the Space, b the
/// bytes of an element, c those of the address.
Handler select_checked_load();
Handler select_checked_store();

}  // namespace ikat::emulator
