// SPDX-License-Identifier: Apache-2.0
// What an operation does besides computing its results. Whoever removes, moves, merges or repeats instructions, or
// forwards values from stores to loads, asks this and nothing else: a test looks for traits that are asked elsewhere.
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
    bool reads = false;       // memory, or what changes by itself
    bool writes = false;      // memory, or what the host sees
    bool orders = false;      // other threads may act here: what was known of memory before does not hold after
    bool convergent = false;  // speaks to other lanes or warps: no moves into or out of divergent control flow

    /// Depends on operands and attribute alone and does nothing else.
    constexpr bool none() const { return !reads && !writes && !orders && !convergent; }
    /// Unused, it may go.
    constexpr bool removable() const { return !writes && !orders && !convergent; }
    constexpr bool operator==(const Effects&) const = default;
};

/// Whether a load or store is this thread's own business: another thread may see it, or have written, only behind what
/// orders memory. Volatile accesses, ordered ones and .cv ask memory itself, at their place in the program.
constexpr bool is_weak(const MemoryInfo& memory) {
    return memory.order == Order::Weak && !memory.is_volatile && memory.cache != CacheOperator::Cv;
}

/// Whether the threads that take part must reach it together. Text and calls are their author's business.
constexpr bool is_collective(Op op) { return has(op, Convergent) && op != Op::Opaque && op != Op::Call; }

constexpr Effects effects(Op op, const MemoryInfo& memory = {}) {
    Effects out{.reads = has(op, Reads), .writes = has(op, Writes), .convergent = has(op, Convergent)};
    out.orders = op == Op::Load || op == Op::Store ? !is_weak(memory) : out.reads && out.writes;
    return out;
}
}  // namespace ikat::ir
