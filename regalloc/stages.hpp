// SPDX-License-Identifier: Apache-2.0
// The data passed between the stages of the allocator. Users of regalloc only need regalloc.hpp.
//
//     Problem ─▶ Flow ─▶ Liveness ─▶ max_live ─▶ registers (colour | simplest) ─▶ edits ─▶ Allocation
//         ▲                                                                                   │
//         └── spill rewrites the problem first, if requested, and translates the answer ◀─────┘
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codegen/support/bitset.hpp"
#include "regalloc/regalloc.hpp"

namespace ikat::regalloc {

std::size_t class_count(const Problem& problem);

/// The control-flow graph for the stages. Unreachable blocks are ignored.
struct Flow {
    std::vector<FlowBlock> order;  // reachable blocks in reverse postorder: each after all its dominators
    std::vector<std::uint32_t>
        predecessors;  // by FlowBlock: reachable edges into it; the function's entry counts as one for block 0
    std::vector<FlowBlock> source;     // by FlowBlock: the source of the first of these edges
    std::vector<std::uint32_t> depth;  // by FlowBlock: loops around it
    std::vector<bool> reachable;       // by FlowBlock

    // Predecessors of each block, with repetitions: all_sources[first_source[b] .. first_source[b + 1]).
    std::vector<std::uint32_t> first_source;
    std::vector<FlowBlock> all_sources;

    std::span<const FlowBlock> sources(FlowBlock b) const {
        const std::uint32_t first = first_source[index(b)];
        return std::span(all_sources).subspan(first, first_source[index(b) + 1] - first);
    }
};

Flow flow_of(const Problem& problem);

/// Asserts the preconditions of regalloc.hpp: ids in range, one definition per value, classes that agree, no
/// critical edge with arguments. Dominance is asserted by liveness.
void validate(const Problem& problem, const Flow& flow);

/// The edge whose moves are at the end of b, before its terminator: the only one that leaves b. Else null.
const Edge* edge_at_end(const Problem& problem, FlowBlock b);

/// The edge whose moves are at the start of b: the only one that enters b, from a block that has others. Else null.
const Edge* edge_at_start(const Problem& problem, const Flow& flow, FlowBlock b);

/// Whether the use is read in the register of a definition.
bool is_tied(const Instruction& instruction, std::size_t use);
/// Whether the instruction reads the value after it may have written definitions.
bool reads_late(const Instruction& instruction, LiveRange v);

/// Where values live and where they die.
struct Liveness {
    std::size_t classes = 0;
    std::vector<LiveSet> in;   // by FlowBlock: live at its start, its parameters left out
    std::vector<LiveSet> out;  // by FlowBlock: live before its terminator: what it reads, passes on, or leaves alone

    std::span<const LiveRange> dead_parameters(FlowBlock b) const { return slice(first_[index(b)], 1); }
    /// The uses of instruction i that die there, each once, except late uses.
    std::span<const LiveRange> dying(FlowBlock b, std::size_t i) const { return slice(first_[index(b)] + 1 + i, 0); }
    /// The unused definitions of instruction i, and its late uses that die there.
    std::span<const LiveRange> dead(FlowBlock b, std::size_t i) const { return slice(first_[index(b)] + 1 + i, 1); }
    /// By position in Instruction::tied: the used value lives on (or is claimed by an earlier pair), so the definition
    /// gets its own register and a copy is made before the instruction.
    std::span<const std::uint8_t> copied(FlowBlock b, std::size_t i) const {
        const Place& place = places_[first_[index(b)] + 1 + i];
        return std::span(copied_).subspan(place.tied, place.tied_count);
    }

    /// Whether the two need different registers: one is live where the other is defined. A definition whose tied use is
    /// copied counts as defined by the copy, before the instruction; unused definitions and late uses count as live
    /// until just after it.
    bool interfere(LiveRange a, LiveRange b) const {
        return live_after_definition(a, b) || live_after_definition(b, a);
    }

private:
    friend struct LivenessBuilder;
    /// Time in a block: 0 = the parameters are written, 2i + 1 = copies before instruction i, 2i + 2 = it writes.
    struct Point {
        FlowBlock block = no_id<FlowBlock>;
        std::uint32_t time = 0;
    };
    bool live_after_definition(LiveRange v, LiveRange other) const;
    struct Place {
        std::uint32_t begin = 0, middle = 0, end = 0;  // in values_: dying, then dead
        std::uint32_t tied = 0, tied_count = 0;        // in copied_
    };
    std::span<const LiveRange> slice(std::size_t place, int which) const {
        const Place& p = places_[place];
        return which == 0 ? std::span(values_).subspan(p.begin, p.middle - p.begin)
                          : std::span(values_).subspan(p.middle, p.end - p.middle);
    }

    std::vector<std::uint32_t>
        first_;  // by FlowBlock: its first point; one for the parameters, then one per instruction
    std::vector<Place> places_;
    std::vector<LiveRange> values_;
    std::vector<std::uint8_t> copied_;
    std::vector<Point> definitions_;          // by LiveRange; no block for one that no reachable block defines
    std::vector<std::uint32_t> first_death_;  // by LiveRange, into deaths_
    std::vector<Point> deaths_;               // at most one per block: live before this time, not after
};

Liveness liveness_of(const Problem& problem, const Flow& flow);

/// Registers needed at every point of block b, row after row, a column per class: the values live there, plus the
/// larger of the unused definitions and late uses of the instruction above, and the copies of the one below.
std::vector<std::uint32_t> block_pressure(const Problem& problem, const Liveness& liveness, FlowBlock b);

std::vector<std::uint32_t> max_live(const Problem& problem, const Flow& flow, const Liveness& liveness);

/// By LiveRange: the first of the values that must share its register through tied pairs (usually itself).
std::vector<LiveRange> tied_leaders(const Problem& problem, const Flow& flow, const Liveness& liveness);

/// A register for every value that a reachable block defines. `available` is max_live.
std::vector<Register> colour(const Problem& problem, const Flow& flow, const Liveness& liveness,
                             const std::vector<std::uint32_t>& available);
std::vector<Register> simplest(const Problem& problem, const Flow& flow, const Liveness& liveness);

/// Adds the copies of tied uses and the moves on edges to an answer with chosen registers, and fills in `used`.
/// A cycle of moves takes a free register, else a new one within `limits`, else a stack slot.
void insert_moves(const Problem& problem, const Flow& flow, const Liveness& liveness,
                  const std::vector<std::uint32_t>& limits, Allocation& answer);

/// A problem in which spilled values are split into short pieces, and the information to translate its answer.
struct Spilled {
    struct Origin {
        enum class Kind : std::uint8_t { Instruction, Spill, Reload, Rematerialise } kind;
        LiveRange value = no_id<LiveRange>;  // of the original problem
        std::uint32_t slot = 0;
    };
    Problem problem;                           // a value of the original keeps its number; pieces follow
    std::vector<LiveRange> original;           // by LiveRange of `problem`
    std::vector<std::vector<Origin>> origins;  // by FlowBlock, by instruction of `problem`
    std::uint32_t stack_slots = 0;
};

/// The values to keep in memory so that `limits` are met; none if they are already.
Bitset choose_spilled(const Problem& problem, const Flow& flow, const Liveness& liveness);
struct StackSlots {
    std::vector<std::uint32_t> of;  // by LiveRange, for those that have one
    std::uint32_t count = 0;
};
StackSlots share_slots(const Problem& problem, const Flow& flow, const Liveness& liveness, const Bitset& values);

Spilled spill(const Problem& problem, const Flow& flow, const Liveness& liveness, const Bitset& chosen);

/// The answer to `original`, given the answer to the rewritten problem.
Allocation translate(const Problem& original, const Spilled& spilled, Allocation answer);

}  // namespace ikat::regalloc
