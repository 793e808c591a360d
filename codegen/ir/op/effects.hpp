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
#include <array>

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

/// What the row says, of weak accesses and of others. Nothing is asked more often, so it is a table.
inline constexpr auto effects_of_rows = [] {
    std::array<std::array<Effects, 2>, op_count> out{};
    for (std::size_t op = 0; op < out.size(); ++op)
        for (const bool weak : {false, true}) {
            const OpInfo& row = op_table[op];
            Effects& its = out[op][weak];
            its.reads = has(Op(op), Reads), its.writes = has(Op(op), Writes);
            its.convergent = has(Op(op), Convergent), its.fails = has(Op(op), Fails);
            its.starts = row.starts == Work::Copies;  // nothing passes other work
            its.commits = row.commits == Work::Copies, its.awaits = row.awaits == Work::Copies;
            its.orders = its.reads && its.writes ? !its.starts : !weak;
        }
    return out;
}();
constexpr Effects effects(Op op, const MemoryInfo& memory = {}) {
    return effects_of_rows[std::size_t(op)][is_weak(memory)];
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
    return has(op, FormActs) ? conduct(op, form, memory).effects : effects(op, memory);
}

}  // namespace ikat::ir
