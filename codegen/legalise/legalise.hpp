// SPDX-License-Identifier: Apache-2.0
// Preparation for instruction selection: steps from IR to IR that a target puts between its own, one per file; the
// comment at the top of the file shows what it does. They ask the target what it has.
#pragma once
#include "codegen/target.hpp"

namespace ikat::legalise {

/// atomics.cpp. An atomic of a type that the target does not have becomes a loop of compare and swap, a reduction of a
/// vector becomes atomics of its elements.
analysis::Changed expand_atomics(ir::Function& fn, const Target& target);

/// copies.cpp. Asynchronous copies become loads and stores, which wait, if the target has none;
/// zeros are stored for what is not read. Stores of matrices, too.
analysis::Changed expand_copies(ir::Function& fn, analysis::Context& context, const Target& target);

/// matrices.cpp. Matrices are stored by ordinary stores; each lane asks others for the addresses of rows.
analysis::Changed expand_stores_of_matrices(ir::Function& fn);

/// blocks.cpp. Checks become branches, critical edges with arguments get a block of their own, unreachable blocks are
/// removed, the rest is put in the order of emission.
analysis::Changed lay_out(ir::Function& fn, analysis::Context& context);

/// shared.cpp. Shared arrays that exceed what a block has without asking become parts of dynamic shared memory. Throws
/// Error if the target does not have as much.
analysis::Changed merge_shared(ir::Function& fn, const Target& target);

/// vectors.cpp. Vectors of more small elements than the target accesses at once become vectors of words.
analysis::Changed split_vectors(ir::Function& fn, const Target& target);

/// bytes.cpp. Values of 8 bits live in registers of 32.
analysis::Changed widen_bytes(ir::Function& fn);

}  // namespace ikat::legalise
