// SPDX-License-Identifier: Apache-2.0
// The ops of the checked code (core/definedness.hpp).
#pragma once
#include "runtime/emulator/core/definedness.hpp"
#include "runtime/emulator/core/tool.hpp"

namespace ikat::emulator {

/// Inserts them; the last tool of the code that checks.
const Tool& definedness();

/// How the definedness of results follows from that of sources, byte by byte. For one lane: u are the undefined bits, v
/// the values.
enum class Propagation : std::uint8_t {
    Mix,     // all undefined if any source is; op.x is how many bytes of the first source count, 0: all
    Upward,  // sums and low products: from the lowest undefined bit upwards
    Either,  // bit by bit: or, xor, not, lop3
    And,     // ... from here on, results are parts of their sources
    Or,      // ... where a defined 0, or 1, decides
    ShiftLeft,
    ShiftRight,
    ShiftRightSigned,
    FunnelLeft,
    FunnelRight,
    Extract,
    Insert,  // bfe, bfi
    Choose,  // c ? a : b
    Pack,    // a in the low half, b in the high half
    ZeroExtend,
    SignExtend,  // of the low op.x bytes
    Permute,     // prmt
    Use,         // a finding: op.x is a DefinedUse
};
/// Whether the result is no more than parts of sources.
constexpr bool moves(Propagation rule) { return rule >= Propagation::And && rule != Propagation::Use; }
/// In the order of their faults.
enum class DefinedUse : std::uint8_t { Address, Branch, Guard, Barrier, Warp, Atomic, Print, Call, Store, Shuffle };

/// Before an op: d is the Propagation, a and b are the sets of fields that the op reads and writes, c the bytes of each
/// field's value, 4 bits each (0: a predicate); y is 1 + the number of results in the op's list, if it has one.
Handler select_definedness();
/// Replaces a load or store (and continues after it): d is the set of fields that are its elements, a the Space, b the
/// bytes of an element, c those of the address.
Handler select_checked_load();
Handler select_checked_store();

}  // namespace ikat::emulator
