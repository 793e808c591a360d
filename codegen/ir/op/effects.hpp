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
//     copy_async                  reads and writes, and starts: until it is waited for, what it touches is in flight
//     copy_commit, copy_wait      stay, in the order of the copies that they are about
#pragma once
#include "codegen/ir/op/memory.hpp"
#include "codegen/ir/op/op.hpp"

namespace ikat::ir {

struct Effects {
    bool reads = false;       // memory, or a register that changes on its own
    bool writes = false;      // memory, or something visible to the host
    bool orders = false;      // other threads may act here: knowledge about memory from before is invalid after it
    bool convergent = false;  // communicates with other lanes or warps: no moves into or out of divergent control flow
    bool fails = false;       // has no result for some operands: only where the program asks for it
    // Work that goes on behind the instruction that starts it, in the order of the program for each thread:
    bool starts = false;   // its reads and writes happen at some time up to a wait for them: until then nobody else may
                           // touch what it writes or write what it reads, and no access of that memory passes it
    bool commits = false;  // closes a group of what was started
    bool awaits = false;   // what was started before, or all but the last groups of it, is done here

    /// Is about work in flight: stays where it is among others like it, and among accesses of the memory in flight.
    constexpr bool in_flight() const { return starts || commits || awaits; }
    /// Depends on operands and attribute alone and does nothing else.
    constexpr bool none() const { return !reads && removable(); }
    /// ... and may be computed where it would not have been.
    constexpr bool speculated() const { return none() && !fails; }
    /// May be removed if unused.
    constexpr bool removable() const { return !writes && !orders && !convergent && !in_flight(); }
    constexpr bool operator==(const Effects&) const = default;
};

/// Whether a load or store is visible to other threads, or sees their writes, only after something that orders memory.
/// Volatile accesses, ordered ones and .cv access memory itself, at their place in the program.
constexpr bool is_weak(const MemoryInfo& memory) {
    return memory.order == Order::Weak && !memory.is_volatile && memory.cache != CacheOperator::Cv;
}

/// Whether the threads that take part must reach it together. For opaque text and calls this is up to their author.
constexpr bool is_collective(Op op) { return has(op, Convergent) && op != Op::Opaque && op != Op::Call; }

/// Whether all lanes of a warp take part, not only those that a mask names.
constexpr bool takes_whole_warp(Op op) {
    return op == Op::Mma || op == Op::LoadMatrix || op == Op::StoreMatrix || op == Op::TransposeMatrix;
}

/// Whether all lanes of the four warps of a warpgroup take part.
constexpr bool takes_warpgroup(Op op) {
    return op == Op::Wgmma || op == Op::WgmmaFence || op == Op::WgmmaCommit || op == Op::WgmmaWait ||
           op == Op::SetRegisters;
}

constexpr Effects effects(Op op, const MemoryInfo& memory = {}) {
    Effects out{.reads = has(op, Reads),
                .writes = has(op, Writes),
                .convergent = has(op, Convergent),
                .starts = has(op, Starts),
                .commits = has(op, Commits),
                .awaits = has(op, Awaits)};
    out.fails = op == Op::Peer;  // of a block that the cluster does not have
    out.orders = op == Op::Load || op == Op::Store ? !is_weak(memory) : out.reads && out.writes && !out.starts;
    return out;
}
}  // namespace ikat::ir
