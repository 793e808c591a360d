// SPDX-License-Identifier: Apache-2.0
// Selection: turns IR into IR in which every instruction is one PTX instruction (print and pointer parameters: a few).
//
// The result is the same data structure, printed and verified alike (ir::Level::Selected), with these differences:
//
//     - Registers have widths, not types: a conversion that changes no bit is gone, 8-bit integers are i32 or u32,
//       extended according to their type (see legalise/bytes.cpp).
//     - A Const or a Symbol is not emitted but written in the instructions that use it; where a register is needed, a
//       Bitcast (mov) makes one.
//     - Addresses are register + constant: MemoryInfo::offset. Index arithmetic is mul.wide and add.
//     - A check is a branch to a block that prints and traps; the text of a print is vprintf's format.
//     - No unreachable blocks, blocks in the order in which they are emitted, loops contiguous; an edge with arguments
//       leaves a block with one successor or enters one with one predecessor.
//
// These are its steps, one per file, in the order of the table in nvptx/target.cpp, which has those of
// legalise/legalise.hpp between them. Each returns what it has changed.
#pragma once
#include <cstdint>
#include <vector>

#include "codegen/analysis/context.hpp"
#include "codegen/ir/edit/uses.hpp"
#include "codegen/ptx/table/target.hpp"

namespace ikat::nvptx {

using analysis::Changed;

/// indices.cpp. Addresses become sums and products.
Changed expand_addresses(ir::Function& fn, analysis::Context& context);

/// address.cpp. Constants move from address arithmetic into the memory access; loads of what the kernel only
/// reads take the read-only path.
Changed fold_addresses(ir::Function& fn, analysis::Context& context);

/// print.cpp. Prepares prints for vprintf: format and promoted values.
Changed expand_prints(ir::Function& fn);

/// legal.cpp. Rewrites single instructions that PTX, or this target, does not have in this form.
Changed legalise(ir::Function& fn, const ptx::Target& target);

/// sweep.cpp. Drops unused pure instructions.
Changed sweep(ir::Function& fn);

/// carries.cpp. Groups the steps of multi-word arithmetic in chains.
Changed chain_carries(ir::Function& fn);

/// narrow.cpp. Loads and stores of 8- and 16-bit integers that are only used in 32 bits, or come from 32 bits.
Changed widen_accesses(ir::Function& fn);

/// clamps.cpp. Clamps of f32 that propagate NaN, if the target has an instruction for them.
Changed fuse_clamps(ir::Function& fn, const ptx::Target& target);

/// fuse.cpp. Fuses pairs of instructions that PTX has as one.
Changed fuse(ir::Function& fn);

/// immediates.cpp. Puts constants in registers where PTX requires it.
Changed materialise_constants(ir::Function& fn);

using ir::count_uses;

}  // namespace ikat::nvptx
