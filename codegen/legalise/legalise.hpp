// SPDX-License-Identifier: Apache-2.0
// Preparation for instruction selection that every target needs: steps from IR to IR, one per file; the comment at the
// top of the file shows what it does. Selection tells them what the target supports.
#pragma once
#include <functional>

#include "codegen/analysis/context.hpp"

namespace ikat::legalise {

/// atomics.cpp. An atomic of a type that the target does not have becomes a loop of compare and swap, a reduction of a
/// vector becomes atomics of its elements. `has` tells whether the target has the instruction as is.
analysis::Changed expand_atomics(ir::Function& fn, const std::function<bool(const ir::Instruction&)>& has);

/// copies.cpp. Copies that go on behind their instruction become loads and stores, which wait; zeros are stored for
/// what is not read.
analysis::Changed expand_copies(ir::Function& fn, analysis::Context& context);

/// matrices.cpp. Matrices are stored by ordinary stores; each lane asks others for the addresses of rows.
analysis::Changed expand_stores_of_matrices(ir::Function& fn);

/// blocks.cpp. Checks become branches, critical edges with arguments get a block of their own, unreachable blocks are
/// removed, the rest is put in the order of emission.
analysis::Changed lay_out(ir::Function& fn, analysis::Context& context);

/// shared.cpp. Shared arrays of more than `most` bytes together become parts of dynamic shared memory.
analysis::Changed merge_shared(ir::Function& fn, std::uint64_t most);

/// vectors.cpp. Vectors of more than `most` small elements become vectors of words.
analysis::Changed split_vectors(ir::Function& fn, unsigned most);

/// bytes.cpp. Values of 8 bits live in registers of 32.
analysis::Changed widen_bytes(ir::Function& fn);

}  // namespace ikat::legalise
