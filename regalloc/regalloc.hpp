// SPDX-License-Identifier: Apache-2.0
// Register allocation as an isolated component: a plain problem in, a plain answer out. Knows no opcode, no type, no
// PTX.
// A Problem is a function in SSA form with block arguments, reduced to uses, definitions and register classes. An
// Allocation gives every value a register and lists the necessary moves. Registers of one class are numbered from 0 and
// are interchangeable; classes never overlap. See README.md for the algorithm.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codegen/support/allocation_method.hpp"
#include "codegen/support/id.hpp"
#include "codegen/support/inline_vector.hpp"

namespace ikat::regalloc {

enum class LiveRange : std::uint32_t {};  // of a value, which has just one; dense from 0
enum class FlowBlock : std::uint32_t {};  // dense from 0; block 0 is the entry
using Class = std::uint8_t;               // a register pool; dense from 0
using Register = std::uint32_t;           // within its class

inline constexpr Register no_register = ~0u;
inline constexpr std::uint32_t unlimited = ~0u;

/// Definition `definition` must get the register of use `use`: an accumulator, the pass-through of a predicated load.
/// The instruction reads that use in the definition's register. If the used value lives on, a move before the
/// instruction copies it there.
struct Tied {
    std::uint16_t definition, use;
};

struct Instruction {
    InlineVector<LiveRange, 4> uses{};
    InlineVector<LiveRange, 2> definitions{};
    InlineVector<Tied, 2> tied{};
    bool early = false;  // writes its definitions before it has read its untied uses, so these never share a register
    /// As `tied`, but only where the use dies here and no move on an edge vanishes by another choice: sums of products,
    /// which follow each other.
    InlineVector<Tied, 2> preferred{};
};

struct Edge {
    FlowBlock to;
    std::vector<LiveRange> arguments;  // one per parameter of `to`, of equal class
};

struct BasicBlock {
    std::vector<LiveRange> parameters;
    std::vector<Instruction> instructions;
    std::vector<LiveRange> terminator_uses;  // a branch's condition
    std::vector<Edge>
        edges;  // an edge with arguments leaves a block with one successor or enters one with one predecessor
};

struct Problem {
    struct Range {
        Class register_class;
        bool rematerialisable = false;  // can be recomputed anywhere without operands (a constant, a special register)
    };
    std::vector<Range> values;
    std::vector<BasicBlock> blocks;
    std::vector<std::uint32_t> limits;  // registers per class; `unlimited` = as many as needed
};

/// An inserted operation. Edits at the same point happen in list order.
struct Edit {
    enum class Kind : std::uint8_t {
        Move,           // register to ← register from
        Spill,          // stack slot ← register from
        Reload,         // register to ← stack slot
        Rematerialise,  // register to ← the recomputed value
    };
    Kind kind;
    FlowBlock block;
    std::uint32_t before;  // the edit is before instruction `before`; instructions.size() = before the terminator
    Class register_class;
    Register from = no_register, to = no_register;
    LiveRange value = no_id<LiveRange>;  // Spill, Reload, Rematerialise: the value
    std::uint32_t slot = 0;              // Spill, Reload: stack slot
};

/// The use of a spilled value at one instruction reads this register instead of the value's own.
struct Reassigned {
    FlowBlock block;
    std::uint32_t instruction;  // instructions.size() = the terminator
    std::uint32_t use;
    Register to;
};

/// Values in ascending order: few of many, where a Bitset for each block would take blocks times values.
class LiveSet {
public:
    bool contains(LiveRange v) const { return std::ranges::binary_search(values_, v); }
    auto begin() const { return values_.begin(); }
    auto end() const { return values_.end(); }
    /// Adds v, which no member follows; true if it is new.
    bool append(LiveRange v) {
        if (!values_.empty() && values_.back() == v) return false;
        values_.push_back(v);
        return true;
    }

private:
    std::vector<LiveRange> values_;
};

struct Allocation {
    std::vector<Register>
        registers;  // by LiveRange; no_register for a value that lives only in its stack slot or is never defined
    std::vector<Edit> edits;               // sorted by block, then position
    std::vector<Reassigned> reassigned{};  // sorted likewise
    std::vector<std::uint32_t> used;       // registers per class
    std::vector<std::uint32_t> max_live;   // per class: the highest pressure anywhere
    std::uint32_t stack_slots = 0;
    std::vector<LiveSet> live_in;  // by block: the values that are live at its start, its parameters left out; where no
                                   // path leads, none
};

struct Options {
    Method method = Method::Colouring;
    // Meet Problem::limits by spilling (Colouring only); else limits are ignored. The needs of a single point are never
    // reduced: the operands of an instruction (plus its definitions, if it is early), the parameters of the entry, a
    // branch's condition and one more register.
    bool spill = false;
};

/// Solves the problem. The answer is deterministic. Throws nothing; a malformed problem is an assertion.
Allocation allocate(const Problem& problem, const Options& options = {});

/// How many values of each class are live just before instruction i of block b: pressure[b][i][class]; the last row of
/// a block is the point before its terminator.
std::vector<std::vector<std::vector<std::uint32_t>>> pressure(const Problem& problem);

/// Verifies the answer by symbolic execution over all paths: every use finds its value in its register. Empty if right,
/// else one message per violation.
std::vector<std::string> check(const Problem& problem, const Allocation& allocation);

/// One move of a parallel copy.
struct Move {
    Register to, from;
    bool operator==(const Move&) const = default;
};

/// Orders a parallel copy (all sources read before any destination is written; destinations distinct) into sequential
/// moves. A cycle goes through `scratch`, which must be free.
std::vector<Move> sequentialise(std::span<const Move> parallel, Register scratch);

}  // namespace ikat::regalloc
