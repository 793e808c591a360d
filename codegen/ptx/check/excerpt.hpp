// SPDX-License-Identifier: Apache-2.0
// Excerpts for messages: an instruction with a mark under the wrong part.
#pragma once
#include <string>

#include "codegen/ptx/text/module.hpp"

namespace ikat::ptx {

/// The instruction, and '^' under its opcode.
std::string excerpt_of_opcode(const Module& module, const Instruction& instruction);
/// ... under that modifier.
std::string excerpt_of_modifier(const Module& module, const Instruction& instruction, Name modifier);
/// ... under the operand of that number, from 0; after the last one if it does not exist.
std::string excerpt_of_operand(const Module& module, const Instruction& instruction, std::size_t number);

}  // namespace ikat::ptx
