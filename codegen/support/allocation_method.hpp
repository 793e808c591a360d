// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace ikat::regalloc {

/// How registers are given to values; see regalloc/README.md.
enum class Method : std::uint8_t {
    Colouring,  // minimal registers: chordal colouring in dominance order, coalesced
    Simplest,   // one register per value, in definition order; for bisecting and for stable golden files
};

}  // namespace ikat::regalloc
