// SPDX-License-Identifier: Apache-2.0
// Handlers that are the same on every instruction set: control flow, predicates, barriers, warp-wide instructions.
// Ops that end a straight run of instructions carry its length in y and count it.
#pragma once
#include <string_view>

#include "runtime/emulator/ops/handlers.hpp"

namespace ikat::emulator {

#define IKAT_CONTROL_HANDLER(name) const MicroOp* name(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask)

// Control flow. x is the distance to the target, in ops.
IKAT_CONTROL_HANDLER(jump);
IKAT_CONTROL_HANDLER(branch_if);          // lanes in predicate a jump
IKAT_CONTROL_HANDLER(branch_unless);      // the others do
IKAT_CONTROL_HANDLER(branch_if_uniform);  // bra.uni: a finding if they diverge
IKAT_CONTROL_HANDLER(branch_unless_uniform);
IKAT_CONTROL_HANDLER(branch_table);  // lane goes to lists[x + 1 + a], an op index; lists[x] is the length
IKAT_CONTROL_HANDLER(join);          // falls into a block that has other predecessors
IKAT_CONTROL_HANDLER(count_run);
IKAT_CONTROL_HANDLER(end_lanes);
IKAT_CONTROL_HANDLER(trap);
// Calls: see call.cpp.
IKAT_CONTROL_HANDLER(push_frame);     // a frame with x bytes of parameters on top of the stack; d = its address
IKAT_CONTROL_HANDLER(call_lanes);     // of function c (~0: at address a) with b bytes of parameters; lists[x]: to keep
IKAT_CONTROL_HANDLER(restore_lanes);  // restores what the call saved
IKAT_CONTROL_HANDLER(read_frame);     // d = the stack pointer
IKAT_CONTROL_HANDLER(pop_frame);      // back to the caller's frame
IKAT_CONTROL_HANDLER(enter_frame);    // the callee's frame, x bytes in total; d = the stack pointer
IKAT_CONTROL_HANDLER(return_lanes);
// ... in the checked code (undefined.hpp), where a call also saves which values are undefined.
IKAT_CONTROL_HANDLER(call_lanes_checked);
IKAT_CONTROL_HANDLER(restore_lanes_checked);
IKAT_CONTROL_HANDLER(return_lanes_checked);
IKAT_CONTROL_HANDLER(allocate_on_stack);  // d = address of a bytes, aligned to x
IKAT_CONTROL_HANDLER(save_stack);         // d = top of the stack
IKAT_CONTROL_HANDLER(restore_stack);      // top of the stack = a
// Guards: lanes in predicate a execute the ops up to the next `unguard`; if there are none, x jumps past it.
IKAT_CONTROL_HANDLER(guard_if);
IKAT_CONTROL_HANDLER(guard_unless);
IKAT_CONTROL_HANDLER(unguard);

/// Predicates: d = a op b (And, Or, Xor), not a, a (Bitcast), c ? a : b (Select), x in all lanes (Const).
Behaviour select_predicate(Op op);

IKAT_CONTROL_HANDLER(fence);
/// Whether the addresses a + x are multiples of b; c are the bytes of a, y the space. For accesses made in parts.
IKAT_CONTROL_HANDLER(check_alignment);
IKAT_CONTROL_HANDLER(nothing);
IKAT_CONTROL_HANDLER(give_way);    // nanosleep: gives up the rest of the time slice at the next branch
IKAT_CONTROL_HANDLER(read_clock);  // d (8 bytes) = instructions the warp has executed

/// bar, barrier: a = id, b = threads, c = predicate, d = result; x = the bits below.
IKAT_CONTROL_HANDLER(barrier);
inline constexpr std::uint32_t BarrierAligned = 1,  // all lanes of the warp arrive at the same instruction
    BarrierCounted = 2,                             // b is given
    BarrierArrive = 4,                              // does not wait
    BarrierReduce = 8,                              // with one of the next three
    BarrierPopc = 16, BarrierAnd = 32, BarrierOr = 64,
                               BarrierCluster = 128,  // the cluster's barrier, which waits unless it arrives
    BarrierAgent = 256,                               // a wait for an agent, whose slot is further up
    BarrierReleases = 512;                            // an arrival at the cluster's barrier releases what came before
inline constexpr int barrier_agent_at = 16;

// Shared memory of the cluster; a: an address (8 bytes), x: whether it is generic.
IKAT_CONTROL_HANDLER(map_shared);      // d = the same in the block of rank b
IKAT_CONTROL_HANDLER(rank_of_shared);  // d = the rank of its block
IKAT_CONTROL_HANDLER(is_own_shared);   // d (a predicate): whether it is generic and in the block's own

Behaviour select_sync_warp();  // members x
enum class Shuffle : std::uint8_t { Up, Down, Butterfly, Index };
Behaviour select_shuffle(Shuffle mode);
struct ShuffleSource {
    int lane = 0;
    bool in_range = false;  // else the lane keeps its own
};
/// Where a lane gets its value (PTX ISA, shfl.sync): b is the lane or distance, c clamp and segments.
constexpr ShuffleSource shuffle_source(Shuffle mode, int lane, std::uint32_t b, std::uint32_t c) {
    const int segment = int(c >> 8 & 31), distance = int(b & 31);
    const int limit = (lane & segment) | (int(c & 31) & ~segment);
    const int j = mode == Shuffle::Up          ? lane - distance
                  : mode == Shuffle::Down      ? lane + distance
                  : mode == Shuffle::Butterfly ? lane ^ distance
                                               : (lane & segment) | (distance & ~segment);
    const bool in_range = mode == Shuffle::Up ? j >= limit : j <= limit;
    return {in_range ? j & 31 : lane, in_range};
}
/// A shuffle with literals among all lanes: d = a of the lanes shuffles[b], predicate c is set for those in range. If
/// lanes are missing it does nothing, and the general one after it does the work.
Behaviour select_known_shuffle();
enum class Vote : std::uint8_t { All, Any, Uniform, Ballot };
Behaviour select_vote(Vote mode);
Behaviour select_match(bool all, unsigned bytes);
enum class Reduction : std::uint8_t {
    Add,
    Min,
    Max,
    MinSigned,
    MaxSigned,
    And,
    Or,
    Xor,
    MinFloat,
    MaxFloat,
    MinFloatNan,  // a NaN if there is one
    MaxFloatNan,
};
Behaviour select_reduction(Reduction reduction);
Behaviour select_elect();
Behaviour select_active_mask();

/// malloc: d = the address of a bytes, or 0. free: a.
IKAT_CONTROL_HANDLER(heap_allocate);
IKAT_CONTROL_HANDLER(heap_free);
/// vprintf: a and b are the addresses of format and arguments (generic, 8 bytes); d = 0.
IKAT_CONTROL_HANDLER(print_formatted);
/// "file:line: function: ... Assertion `text` failed.": a, b, c the addresses of text, file, function; x the line.
IKAT_CONTROL_HANDLER(print_assertion);

#undef IKAT_CONTROL_HANDLER

}  // namespace ikat::emulator
