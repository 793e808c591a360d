// SPDX-License-Identifier: Apache-2.0
// What an operation does besides computing its results. Code that removes, moves, merges or repeats instructions, or
// forwards values from stores to loads, asks only this; a test finds code that queries the traits elsewhere.
//
//     add                         nothing: may go if unused, be computed elsewhere, once for two, or twice
//     load                        reads: may go if unused, must not pass a store
//     store                       writes: stays
//     atomic_add, fence           reads, writes, orders: stays, and no other access passes it
//     shuffle                     convergent: stays where the same threads execute it
//     barrier                     all of these
#pragma once
#include "codegen/ir/op/memory.hpp"
#include "codegen/ir/op/op.hpp"

namespace ikat::ir {

struct Effects {
    bool reads = false;       // memory, or a register that changes on its own
    bool writes = false;      // memory, or something visible to the host
    bool orders = false;      // other threads may act here: knowledge about memory from before is invalid after it
    bool convergent = false;  // communicates with other lanes or warps: no moves into or out of divergent control flow

    /// Depends on operands and attribute alone and does nothing else.
    constexpr bool none() const { return !reads && !writes && !orders && !convergent; }
    /// May be removed if unused.
    constexpr bool removable() const { return !writes && !orders && !convergent; }
    constexpr bool operator==(const Effects&) const = default;
};

/// Whether a load or store is visible to other threads, or sees their writes, only after something that orders memory.
/// Volatile accesses, ordered ones and .cv access memory itself, at their place in the program.
constexpr bool is_weak(const MemoryInfo& memory) {
    return memory.order == Order::Weak && !memory.is_volatile && memory.cache != CacheOperator::Cv;
}

/// Whether the threads that take part must reach it together. For opaque text and calls this is up to their author.
constexpr bool is_collective(Op op) { return has(op, Convergent) && op != Op::Opaque && op != Op::Call; }

constexpr Effects effects(Op op, const MemoryInfo& memory = {}) {
    Effects out{.reads = has(op, Reads), .writes = has(op, Writes), .convergent = has(op, Convergent)};
    out.orders = op == Op::Load || op == Op::Store ? !is_weak(memory) : out.reads && out.writes;
    return out;
}
}  // namespace ikat::ir
