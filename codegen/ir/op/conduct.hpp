// SPDX-License-Identifier: Apache-2.0
// What there is to say of an op besides its result: what it does to memory, which threads take part, what it leaves in
// flight. Rows of ops.def say it in columns; a form (forms/) changes what its row says.
#pragma once
#include <cstdint>
#include <string_view>

namespace ikat::ir {

/// What happens at an instruction. Code that removes, moves, merges or repeats instructions, or forwards values from
/// stores to loads, asks only this.
struct Effects {
    bool reads = false;       // memory, or a register that changes on its own
    bool writes = false;      // memory, or something visible to the host
    bool orders = false;      // other threads may act here: knowledge about memory from before is invalid after it
    bool convergent = false;  // communicates with other lanes or warps: no moves into or out of divergent control flow
    bool fails = false;       // has no result for some operands: only where the program asks for it
    // Asynchronous work: it continues after the instruction that starts it, in the order of the program for each
    // thread:
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

/// All threads of one of these have the same value, or are in the same place. Those of a cluster are it in each of its
/// blocks, too, and so on.
enum class Extent : std::uint8_t { Cluster, Block, Warpgroup, Warp, Thread };
inline constexpr std::string_view extent_names[] = {"cluster", "block", "warpgroup", "warp", "thread"};

/// Which threads take part in an instruction, and have to come to it together.
enum class Meeting : std::uint8_t {
    None,       // each for itself; or this is up to the author, of text and of calls
    Whoever,    // those that happen to be there
    Members,    // those that a mask names, its last operand
    Warp,       // all lanes of it
    Warpgroup,  // all lanes of its four warps
    Block,
    Cluster,
};

/// Kinds of asynchronous work.
enum class Work : std::uint8_t {
    None,
    Copies,    // of a few bytes by each thread; other accesses may pass them
    Loads,     // of many bytes, that arrive at a barrier in shared memory
    Stores,    // of many bytes, in groups of their own
    Products,  // of matrices by a warpgroup, in registers
};
inline constexpr std::string_view work_names[] = {"", "copies", "loads", "stores", "products"};

/// What an instruction is to work in flight.
struct Flight {
    Work starts = Work::None;
    Work commits = Work::None;  // what was started before becomes a group
    Work awaits = Work::None;   // ... is done here,
    std::uint32_t groups = 0;   // but for that many last groups,
    bool all = false;           // or even what is in no group
};

/// All of it, of one instruction.
struct Conduct {
    Effects effects;
    Meeting meets = Meeting::None;
    Extent gives = Extent::Thread;   // all threads of it get the same
    Extent likely = Extent::Thread;  // the same, as Doubt::Agrees takes it (uniformity.hpp)
    Flight flight;
};

}  // namespace ikat::ir
