// SPDX-License-Identifier: Apache-2.0
// Folding of one instruction on constants, for fold_constants, simplify and its rules.
#pragma once
#include <array>
#include <optional>

#include "codegen/ir/function.hpp"

namespace ikat::passes {

/// Whether it is a pure instruction without a guard: its results may be replaced by other values.
inline bool is_pure(const ir::Function& fn, ir::Inst inst) {
    const ir::Instruction& instruction = fn[inst];
    return effects(instruction).none() && instruction.guard == ir::no_value && instruction.tie.count == 0;
}
/// ... and with one result.
inline bool is_plain(const ir::Function& fn, ir::Inst inst) { return fn[inst].results.count == 1 && is_pure(fn, inst); }

/// The bits of a result if constant_of(operand) gives the bits of every operand and the device would agree.
std::optional<ir::Word> fold(const ir::Function& fn, ir::Inst inst, auto&& constant_of, std::uint32_t result = 0) {
    const auto operands = fn.operands(inst);
    std::array<ir::Word, 4> words;
    if (operands.empty() || operands.size() > words.size() || !is_pure(fn, inst)) return {};
    for (std::size_t i = 0; i < operands.size(); ++i) {
        const std::optional<ir::Word> word = constant_of(operands[i]);
        if (!word) return {};
        words[i] = *word;
    }
    const ir::Instruction& instruction = fn[inst];
    const std::span<const ir::Word> arguments(words.data(), operands.size());
    if (!folds(instruction.op, instruction.type, instruction.fp, arguments)) return {};
    return evaluate(instruction.op, instruction.type, instruction.from, instruction.fp, arguments,
                    instruction.attribute, result);
}

inline std::optional<ir::Word> fold(const ir::Function& fn, ir::Inst inst) {
    return fold(fn, inst, [&](ir::Value value) { return constant(fn, value); });
}

/// Turns the instruction into a constant in place.
inline void make_constant(ir::Function& fn, ir::Inst inst, ir::Word bits) {
    const ir::Instruction old = fn[inst];
    fn[inst] = {.op = ir::Op::Const,
                .type = fn.type(fn.result(inst)),
                .attribute = bits,
                .operands = {old.operands.first, 0},
                .results = old.results,
                .where = old.where};
}

}  // namespace ikat::passes
