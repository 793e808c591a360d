// SPDX-License-Identifier: Apache-2.0
// The steps of selection, one file each, in the order in which select() takes them. Those of legalise/legalise.hpp come
// before and between them.
#pragma once
#include "codegen/nvptx/select/select.hpp"

namespace ikat::nvptx {

/// print.cpp. Prints become vprintf's: format and promoted values.
void expand_prints(ir::Function& fn);

/// legal.cpp. Each instruction by itself: what PTX, or this target, does not have in this form.
void legalise(ir::Function& fn, const Target& target);

/// narrow.cpp. Loads and stores of integers of 8 and 16 bits that are only wanted in 32 bits, or come from them.
void widen_accesses(ir::Function& fn);

/// address.cpp. Constants move from address arithmetic into the memory access; loads of what the kernel only
/// reads take the read-only path.
void fold_addresses(ir::Function& fn);

/// carries.cpp. Steps of numbers longer than a register, together in pieces.
void chain_carries(ir::Function& fn);

/// clamps.cpp. Bounds of f32 that let a NaN through, where the target has an instruction for them.
void fuse_clamps(ir::Function& fn, const Target& target);

/// fuse.cpp. Pairs of instructions that PTX has in one.
void fuse(ir::Function& fn);

/// immediates.cpp. Constants get a register where PTX wants one.
void materialise_constants(ir::Function& fn);

/// select.cpp. Drops pure instructions that nobody uses.
void sweep(ir::Function& fn);

/// How often each value is used.
std::vector<std::uint32_t> count_uses(const ir::Function& fn);

}  // namespace ikat::nvptx
