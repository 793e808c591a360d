// SPDX-License-Identifier: Apache-2.0
// Arguments and results of calls: variables in local memory, or registers.
#pragma once
#include "runtime/emulator/decode/rules/rules.hpp"

namespace ikat::emulator {

/// A location in local memory: `offset` from a value.
struct Place {
    VReg base{};
    std::uint64_t offset = 0;
};

/// The variable in memory that an operand names, if any.
const Binding* variable_of(Lowering& code, const ptx::Operand& operand);
Place place_of(Lowering& code, const Binding& binding);
void load_local(Lowering& code, VReg d, unsigned bytes, Place from);
void store_local(Lowering& code, VReg from, unsigned bytes, Place to);
/// The 64-bit value of an argument: a register, or the contents of a .param variable.
VReg argument(Lowering& code, const ptx::Operand& operand);
/// A call of a system function. False if there is none of that name.
bool call_system(Lowering& code, std::string_view name, Operands results, Operands arguments);

}  // namespace ikat::emulator
