// SPDX-License-Identifier: Apache-2.0
// How PTX spells an instruction: the .ptx column of its row with the keys filled in.
//
//     add{r}{z}{s}.{t}      add.rn.ftz.f32
//     ld{m}.{d}             ld.global.nc.v4.f32
//     {mad.lo|fma}{r}.{t}   mad.lo.u32
#pragma once
#include <string>

#include "codegen/ir/function.hpp"

namespace ikat::nvptx {

/// Opcode and modifiers, "atom.global.add.u32". An atomic operation whose result nobody reads is written as a reduction
/// where PTX has one ("red.global.add.u32").
std::string mnemonic(const ir::Instruction& inst, bool result_is_read = true);

/// Whether the instruction, if nobody reads its result, is a reduction and then has no destination. An exchange is
/// none, and what acquires has something to wait for.
bool has_reduction(const ir::Instruction& inst);

/// The type as ld, st and .param know it: they have no .f16.
std::string_view data_type(ir::Type type);

}  // namespace ikat::nvptx
