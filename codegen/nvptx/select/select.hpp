// SPDX-License-Identifier: Apache-2.0
// Selection: IR becomes IR whose every instruction is one of PTX's (print and pointer parameters: a few).
//
// The result is the same data structure, printed and verified alike (ir::Level::Selected), with these differences:
//
//     - Registers have widths, not types: a conversion that changes no bit is gone, 8- and 16-bit integers are i32 or
//       u32, extended as their type says (see allocation.hpp).
//     - A Const or a Symbol is not an instruction but what stands in the instructions that use it; where a register is
//       needed, a Bitcast (mov) makes one.
//     - Addresses are register + constant: MemoryInfo::offset. Index arithmetic is mad.wide.
//     - A check is a branch to a block that prints and traps; the text of a print is vprintf's format.
//     - No unreachable blocks, blocks in the order in which they are emitted, loops contiguous; an edge with arguments
//       leaves a block with one successor or enters one with one predecessor.
#pragma once
#include "codegen/ir/function.hpp"
#include "codegen/ptx/table/target.hpp"

namespace ikat::nvptx {

void select(ir::Function& fn, const Target& target);

}  // namespace ikat::nvptx
