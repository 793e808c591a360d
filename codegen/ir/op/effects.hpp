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
#include "codegen/ir/op/form.hpp"
#include "codegen/ir/op/memory.hpp"
#include "codegen/ir/op/op.hpp"

namespace ikat::ir {

/// Whether a load or store is visible to other threads, or sees their writes, only after something that orders memory.
/// Volatile accesses, ordered ones and .cv access memory itself, at their place in the program.
constexpr bool is_weak(const MemoryInfo& memory) {
    return memory.order == Order::Weak && !memory.is_volatile && memory.cache != CacheOperator::Cv;
}

/// Whether the threads that take part must reach it together. For opaque text and calls this is up to their author.
constexpr bool is_collective(Op op) { return info(op).meets != Meeting::None; }

/// What the row says.
constexpr Effects effects(Op op, const MemoryInfo& memory = {}) {
    const OpInfo& row = info(op);
    Effects out{.reads = has(op, Reads),
                .writes = has(op, Writes),
                .convergent = has(op, Convergent),
                .fails = has(op, Fails),
                .starts = row.starts == Work::Copies,  // nothing passes other work
                .commits = row.commits == Work::Copies,
                .awaits = row.awaits == Work::Copies};
    out.orders = out.reads && out.writes ? !out.starts : !is_weak(memory);
    return out;
}
constexpr Conduct conduct(Op op, const MemoryInfo& memory = {}) {
    const OpInfo& row = info(op);
    return {effects(op, memory), row.meets, row.gives, row.gives, {row.starts, row.commits, row.awaits}};
}

/// ... and its form, if it has one.
Conduct conduct_of_form(Op op, Form form, const Conduct& row);
constexpr Conduct conduct(Op op, Form form, const MemoryInfo& memory = {}) {
    const Conduct row = conduct(op, memory);
    return has_form(op) ? conduct_of_form(op, form, row) : row;
}
constexpr Effects effects(Op op, Form form, const MemoryInfo& memory) {
    return has_form(op) ? conduct(op, form, memory).effects : effects(op, memory);
}

}  // namespace ikat::ir
