// SPDX-License-Identifier: Apache-2.0
// What all threads of a block (CTA) agree on.
//
// A value is uniform if every thread that computes it at the same moment computes the same; else it varies. A block is
// divergent if it may be executed by some threads while others are elsewhere: there, barriers and full-mask operations
// are wrong.
//
//     %0 = special.u32 tid.x          varies
//     %1 = special.u32 ctaid.x        uniform
//     %2 = lt.u32 %0, %1              varies
//     branch %2, ^1, ^2
//   ^1:                               divergent
//     jump ^2(%1)
//   ^2(%3: u32):                      not divergent (the ways have met); %3 varies: which way a thread came decides it
//
// Sources of variation: tid, laneid, shuffles, votes, atomics, carried PTX, local memory, loads at varying addresses;
// what is computed from them; parameters of blocks in which ways of a varying branch meet; what is loaded in a
// divergent block from memory that may change. A function that is called may be called by some threads, each with
// arguments of its own: its parameters vary, and all of its blocks are divergent. Answers are conservative: "uniform"
// is proved, "varies" is not.
#pragma once
#include <vector>

#include "codegen/analysis/dominators.hpp"

namespace ikat::analysis {

class Uniformity {
public:
    Uniformity(const ir::Function& fn, const Dominators& dominators);

    bool is_uniform(ir::Value value) const { return !varies_[index(value)]; }
    bool is_divergent(ir::Block block) const { return divergent_[index(block)]; }
    /// The block whose varying branch made `block` divergent; for messages. no_id where none did.
    ir::Block cause(ir::Block block) const { return cause_[index(block)]; }

    bool operator==(const Uniformity&) const = default;

private:
    std::vector<bool> varies_;      // by value
    std::vector<bool> divergent_;   // by block
    std::vector<ir::Block> cause_;  // by block
};

}  // namespace ikat::analysis
