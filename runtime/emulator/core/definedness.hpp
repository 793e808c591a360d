// SPDX-License-Identifier: Apache-2.0
// Values from uninitialised memory or registers.
// A warp runs the plain code of its kernel until it loads an unwritten byte; loads test a bit for each byte. From then
// on it runs the *checked* code: the same ops over the same frame, most of them preceded by an op that computes the
// definedness of the result from that of the operands (tools/definedness). So a kernel that loads nothing unwritten
// only pays for the bits: no handler tests which code runs. Using an undefined value is a finding: as an address, in a
// branch, in a print. Copying one without using it is not, also to a buffer, whose bytes are then as if nothing had
// written them; storing there what arithmetic has made of one is.
// Definedness is a mask of lanes for each byte of each register (one for a predicate): a set bit means undefined. A
// second one, after the first, says which of these bytes are computed: not only moved, shuffled, packed or extracted.
#pragma once
#include <vector>

#include "runtime/emulator/core/kernel.hpp"
#include "runtime/emulator/core/warp.hpp"

namespace ikat::emulator {

/// What is known of a warp's registers.
struct Definedness {
    /// For a warp of this checked code, whose registers all are defined, or none is.
    void start(const DecodedKernel& checked, bool defined);

    std::uint32_t predicate_bytes = 0;     // at the beginning of the frame
    std::uint32_t words = 0;               // masks of each kind
    std::vector<std::uint32_t> undefined;  // masks of the registers: undefined bytes, then computed ones
    std::vector<std::uint32_t> made_by;    // by register: the op that has computed its undefined value
    const std::uint32_t *checked_of = nullptr, *plain_of = nullptr;  // ops of one code by ops of the other
    AccessedBytes unwritten{};      // the last undefined value: loaded, or from a missing lane in a shuffle
    std::uint32_t stored_of = ~0u;  // of a finding: the op that has computed the undefined value that is stored
};

/// The masks of the register at an offset of the frame, lowest byte first.
inline std::uint32_t* undefined_at(const Warp* w, std::uint32_t offset) {
    const std::uint32_t predicates = w->definedness->predicate_bytes;
    return w->definedness->undefined.data() +
           (offset < predicates ? offset / 4 : predicates / 4 + (offset - predicates) / 32);
}

/// The masks of its computed bytes.
inline std::uint32_t* computed_at(const Warp* w, std::uint32_t offset) {
    return undefined_at(w, offset) + w->definedness->words;
}

/// The op that has computed the undefined value of a register; ~0: none is known.
inline std::uint32_t& maker_of(const Warp* w, std::uint32_t offset) {
    return w->definedness->made_by[(offset - w->definedness->predicate_bytes) / 128];
}

/// Masks of a register are those of a result that an op has computed.
inline void set_computed(const Warp* w, std::uint32_t offset, std::uint32_t bytes, std::uint32_t op) {
    std::uint32_t* const masks = undefined_at(w, offset);
    std::uint32_t any = 0;
    for (std::uint32_t k = 0; k < bytes; ++k) any |= masks[w->definedness->words + k] = masks[k];
    if (any) maker_of(w, offset) = op;
}

/// A register becomes defined (or computed from undefined values) in some lanes; bytes is 0 for a predicate.
inline void set_undefined(const Warp* w, std::uint32_t offset, std::uint32_t bytes, std::uint32_t lanes, bool to) {
    std::uint32_t* const masks = undefined_at(w, offset);
    for (std::uint32_t* const each : {masks, masks + w->definedness->words})
        for (std::uint32_t k = 0; k < (bytes ? bytes : 1); ++k) each[k] = to ? each[k] | lanes : each[k] & ~lanes;
}

/// The value that a shuffle reads from lane sources[i] of register op.a is undefined if that is, or if the lane is not
/// in `there[i]`.
void shuffle_definedness(const MicroOp* op, Warp* w, std::uint32_t mask, const std::uint32_t* sources,
                         const std::uint32_t* there);

/// In plain code: the warp continues at this op in the checked code.
inline const MicroOp* go_on_checked(const MicroOp* op, Warp* w, std::uint32_t mask) {
    w->leave = Leave::Recheck;
    w->pc = w->index_of(op);
    w->mask = mask;
    return nullptr;
}

/// Where the plain code has an op of the code that the warp runs.
inline std::uint32_t plain_index_of(const Warp* w, const MicroOp* op) {
    const std::uint32_t at = w->index_of(op);
    return w->definedness ? w->definedness->plain_of[at] : at;
}

}  // namespace ikat::emulator
