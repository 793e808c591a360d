// SPDX-License-Identifier: Apache-2.0
// Values from uninitialised memory or registers.
// A warp runs the plain code of its kernel until it loads an unwritten byte; loads test a bit for each byte. From then
// on it runs the *checked* code: the same ops over the same frame, most of them preceded by an op that computes the
// definedness of the result from that of the operands (attach_undefined.cpp). So a kernel that loads nothing unwritten
// only pays for the bits: no handler tests which code runs. Using an undefined value is a finding: as an address, in a
// branch, in a print. Copying one without using it is not, also to a buffer, whose bytes are then as if nothing had
// written them; storing there what arithmetic has made of one is.
// Definedness is a mask of lanes for each byte of each register (one for a predicate): a set bit means undefined. A
// second one, behind the first, says which of these bytes are computed: not only moved, shuffled, packed or extracted.
#pragma once
#include <vector>

#include "runtime/emulator/ops/handlers.hpp"

namespace ikat::emulator {

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

/// The masks of the register at an offset of the frame, lowest byte first.
inline std::uint32_t* undefined_at(const Warp* w, std::uint32_t offset) {
    const std::uint32_t predicates = w->predicate_bytes;
    return w->undefined + (offset < predicates ? offset / 4 : predicates / 4 + (offset - predicates) / 32);
}

/// The masks of its computed bytes.
inline std::uint32_t* computed_at(const Warp* w, std::uint32_t offset) {
    return undefined_at(w, offset) + w->undefined_words;
}

/// The op that has computed the undefined value of a register; ~0: none is known.
inline std::uint32_t& maker_of(const Warp* w, std::uint32_t offset) {
    return w->made_by[(offset - w->predicate_bytes) / 128];
}

/// Masks of a register are those of a result that an op has computed.
inline void set_computed(const Warp* w, std::uint32_t offset, std::uint32_t bytes, std::uint32_t op) {
    std::uint32_t* const masks = undefined_at(w, offset);
    std::uint32_t any = 0;
    for (std::uint32_t k = 0; k < bytes; ++k) any |= masks[w->undefined_words + k] = masks[k];
    if (any) maker_of(w, offset) = op;
}

/// A register becomes defined (or computed from undefined values) in some lanes; bytes is 0 for a predicate.
inline void set_undefined(const Warp* w, std::uint32_t offset, std::uint32_t bytes, std::uint32_t lanes, bool to) {
    std::uint32_t* const masks = undefined_at(w, offset);
    for (std::uint32_t* const each : {masks, masks + w->undefined_words})
        for (std::uint32_t k = 0; k < (bytes ? bytes : 1); ++k) each[k] = to ? each[k] | lanes : each[k] & ~lanes;
}

/// The value that a shuffle reads from lane sources[i] of register op.a is undefined if that is, or if the lane is not
/// in `there[i]`.
void shuffle_definedness(const MicroOp* op, Warp* w, std::uint32_t mask, const std::uint32_t* sources,
                         const std::uint32_t* there);

/// Whether a copy is in flight to one of these bytes of shared memory, which are read or written, or a barrier has one:
/// that is a finding.
bool touches_copy(const MicroOp* op, Warp* w, Space space, unsigned lane, std::uint64_t address, std::uint32_t bytes,
                  bool writes);

/// In plain code: the warp continues at this op in the checked code.
inline const MicroOp* go_on_checked(const MicroOp* op, Warp* w, std::uint32_t mask) {
    w->leave = Leave::Recheck;
    w->pc = w->index_of(op);
    w->mask = mask;
    return nullptr;
}

}  // namespace ikat::emulator
