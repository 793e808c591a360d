// SPDX-License-Identifier: Apache-2.0
// What threads agree on, and which of them are in a block together.
//
// A value is the same in a cluster, a block (CTA), a warpgroup or a warp if all of its threads that compute it at the
// same moment compute the same. Control of a block has the extent within which threads may be elsewhere meanwhile:
// where it is warps, whole warps come or not; where it is threads, barriers and full-mask operations are wrong.
//
//     %0 = special.u32 tid.x          of the thread
//     %1 = special.u32 ctaid.x        of the block
//     %2 = lt.u32 %0, %1              of the thread
//     branch %2, ^1, ^2
//   ^1:                               divergent, by thread
//     jump ^2(%1)
//   ^2(%3: u32):                      not divergent (the ways have met); %3 of the thread: which way decides it
//
// What operations make of their operands is said in ir/op/uniformity.hpp, for the kernel as captured, too. Here is what
// blocks add: parameters where ways of a branch meet that its threads have parted at; what is loaded meanwhile from
// memory that may change. A function that is called may be called by some threads, each with arguments of its own: its
// parameters differ, and all of its blocks are divergent.
//
// With Doubt::Differs, the usual one, answers are conservative: that threads agree is proved. With Doubt::Agrees it is
// proved that they do not, as far as it holds for blocks of whole rows of warps: what divergent_operations asks.
#pragma once
#include <vector>

#include "codegen/analysis/dominators.hpp"
#include "codegen/ir/op/uniformity.hpp"

namespace ikat::analysis {

class Uniformity {
public:
    Uniformity(const ir::Function& fn, const Dominators& dominators, ir::Doubt doubt = ir::Doubt::Differs);

    ir::Extent extent(ir::Value value) const { return values_[index(value)].extent; }
    /// ... of control.
    ir::Extent extent(ir::Block block) const { return blocks_[index(block)].extent; }
    /// In the threads of a block.
    bool is_uniform(ir::Value value) const { return extent(value) <= ir::Extent::Block; }
    bool is_divergent(ir::Block block) const { return extent(block) > ir::Extent::Block; }
    /// The block whose branch has parted the threads of `block`; for messages. no_id where none did.
    ir::Block cause(ir::Block block) const { return blocks_[index(block)].cause; }

    bool operator==(const Uniformity&) const = default;

private:
    friend class Propagation;
    struct Control {
        ir::Extent extent = ir::Extent::Cluster;
        ir::Block cause = no_block;
        bool operator==(const Control&) const = default;
    };
    std::vector<ir::Spread> values_;
    std::vector<Control> blocks_;
};

/// A finding for each operation that all threads of a block, or of a warp, have to come to together and that only some
/// can reach. What cannot be known is taken to be right; with Doubt::Differs, to be wrong.
std::vector<Diagnostic> divergent_operations(const ir::Function& fn, const Dominators& dominators,
                                             ir::Doubt doubt = ir::Doubt::Agrees);
/// Throws those of all functions as one Error: for IR that came as text, after ir::verify.
void verify_convergence(std::span<const ir::Function> functions);

}  // namespace ikat::analysis
