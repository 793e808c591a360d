// SPDX-License-Identifier: Apache-2.0
#include "codegen/ptx/check/excerpt.hpp"

#include <algorithm>

namespace ikat::ptx {
namespace {

/// The column at which the opcode begins, after the guard.
std::size_t opcode_column(const Module& module, const Instruction& instruction) {
    if (instruction.guard == no_name) return 0;
    return module.text(instruction.guard).size() + (instruction.guard_negated ? 3 : 2);
}

std::string marked(const Module& module, const Instruction& instruction, std::size_t column) {
    const std::string text = print(module, instruction);
    return "    " + text + "\n    " + std::string(std::min(column, text.size() - 1), ' ') + '^';
}

}  // namespace

std::string excerpt_of_opcode(const Module& module, const Instruction& instruction) {
    return marked(module, instruction, opcode_column(module, instruction));
}

std::string excerpt_of_modifier(const Module& module, const Instruction& instruction, Name modifier) {
    std::size_t column = opcode_column(module, instruction) + module.text(instruction.spelling).size();
    const std::span<const Name> modifiers = module.modifiers(instruction.modifiers);
    // If a modifier occurs twice, mark the last.
    const auto last = std::find(modifiers.rbegin(), modifiers.rend(), modifier);
    for (const Name each : modifiers.first(std::size_t(modifiers.rend() - last - 1)))
        column += module.text(each).size();
    return marked(module, instruction, column);
}

std::string excerpt_of_operand(const Module& module, const Instruction& instruction, std::size_t number) {
    std::size_t column = opcode_column(module, instruction) + module.text(instruction.spelling).size() + 1;
    for (const Name each : module.modifiers(instruction.modifiers)) column += module.text(each).size();
    const std::span<const Operand> operands = module.operands(instruction.operands);
    for (const Operand& each : operands.first(std::min(number, operands.size())))
        column += print(module, each).size() + 2;
    return marked(module, instruction, column);
}

}  // namespace ikat::ptx
