// SPDX-License-Identifier: Apache-2.0
// How PTX spells an instruction: the line of spellings.def with the keys filled in.
//
//     add{r}{z}{s}.{t}      add.rn.ftz.f32
//     ld{m}.{d}             ld.global.nc.v4.f32
//     {mad.lo|fma}{r}.{t}   mad.lo.u32
#pragma once
#include <string>

#include "codegen/ir/function.hpp"

namespace ikat::nvptx {

/// The line, with the keys; empty if the op is not spelled by one.
std::string_view spelling(ir::Op op);

/// Opcode and modifiers, "atom.global.add.u32". An atomic operation whose result is unused is written as a reduction if
/// PTX has one ("red.global.add.u32").
std::string mnemonic(const ir::Instruction& inst, bool result_is_read = true);

/// Whether the instruction becomes a reduction, without a destination, if its result is unused. Exchanges do not, nor
/// do operations that acquire, which must wait for the result.
bool has_reduction(const ir::Instruction& inst);

/// The type suffix for ld, st and .param, which have no .f16.
std::string_view data_type(ir::Type type);

}  // namespace ikat::nvptx
