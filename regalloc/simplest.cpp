// SPDX-License-Identifier: Apache-2.0
// One register per value, numbered in the order of the definitions, per class.
// For bisecting (an error that remains is not the allocator's) and for golden files: a new value only shifts the
// numbers after it. Only values in a tied pair share a register, numbered by the first of them.
#include "regalloc/stages.hpp"

namespace ikat::regalloc {

std::vector<Register> simplest(const Problem& problem, const Flow& flow, const Liveness& liveness) {
    const std::vector<LiveRange> leaders = tied_leaders(problem, flow, liveness);
    std::vector<Register> registers(problem.values.size(), no_register), next(liveness.classes);
    const auto number = [&](std::span<const LiveRange> definitions) {
        for (LiveRange v : definitions)
            if (leaders[index(v)] == v) registers[index(v)] = next[problem.values[index(v)].register_class]++;
    };
    for (const BasicBlock& block : problem.blocks) {
        number(block.parameters);
        for (const Instruction& instruction : block.instructions) number(instruction.definitions);
    }
    for (std::size_t v = 0; v < registers.size(); ++v) registers[v] = registers[index(leaders[v])];
    return registers;
}

}  // namespace ikat::regalloc
