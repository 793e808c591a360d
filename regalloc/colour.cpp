// SPDX-License-Identifier: Apache-2.0
// Colouring in dominance order with the minimal number of registers.
//
// In SSA form the values that are live where v is defined are exactly the values coloured before v that v must avoid:
// the interference graph is chordal, and this order is a perfect elimination order. If the point needs n registers in
// total, at most n - 1 are taken when one is chosen for v. So no graph is built, only a set of taken registers.
//
//     d = f(a, b)          taken: {a, b, c}
//                          copies of tied uses that live on get registers now, while a and b still hold theirs
//                          a dies: its register is released
//                          definitions tied to a dying use take over its register
//                          the other definitions get registers; unused ones release theirs again
//                          late uses of an early instruction die only now
// Needs: dominance order (Flow::order). Unreachable blocks get registers, too, distinct within an instruction, so that
// their text is well formed.
#include <algorithm>

#include "regalloc/coalesce.hpp"
#include "regalloc/stages.hpp"

namespace ikat::regalloc {
namespace {

struct Colouring {
    const Problem& problem;
    const Flow& flow;
    const Liveness& liveness;
    std::vector<RegisterPool> pools;
    std::vector<LiveRange> leaders = tied_leaders(problem, flow, liveness);
    Preferences preferences{problem, liveness, pairs_of(problem, flow, liveness, leaders), pools};
    std::vector<Register> registers = std::vector<Register>(problem.values.size(), no_register);

    RegisterPool& pool(LiveRange v) { return pools[problem.values[index(v)].register_class]; }

    void choose(LiveRange v, Register preferred = no_register) {
        registers[index(v)] = preferences.choose(v, preferred);
        pool(v).take(registers[index(v)]);
    }
    /// The register of the use that definition d of an instruction prefers.
    Register preferred(const Instruction& instruction, std::size_t d) const {
        for (const auto [definition, use] : instruction.preferred)
            if (definition == d) return registers[index(instruction.uses[use])];
        return no_register;
    }
    void release(std::span<const LiveRange> values) {
        for (LiveRange v : values) pool(v).release(registers[index(v)]);
    }

    void colour_tied(FlowBlock b, std::size_t i, bool copies) {
        const Instruction& instruction = problem.blocks[index(b)].instructions[i];
        const auto copied = liveness.copied(b, i);
        for (std::size_t t = 0; t < copied.size(); ++t) {
            if (bool(copied[t]) != copies) continue;
            const LiveRange definition = instruction.definitions[instruction.tied[t].definition];
            if (copies) {
                choose(definition);
            } else {
                registers[index(definition)] = registers[index(instruction.uses[instruction.tied[t].use])];
                pool(definition).take(registers[index(definition)]);
            }
        }
    }

    void colour_block(FlowBlock b) {
        for (RegisterPool& each : pools) each.release_all();
        for (LiveRange v : liveness.in[index(b)]) pool(v).take(registers[index(v)]);
        for (LiveRange v : problem.blocks[index(b)].parameters) choose(v);
        release(liveness.dead_parameters(b));

        const auto& instructions = problem.blocks[index(b)].instructions;
        for (std::size_t i = 0; i < instructions.size(); ++i) {
            colour_tied(b, i, true);
            release(liveness.dying(b, i));
            colour_tied(b, i, false);
            for (std::size_t d = 0; d < instructions[i].definitions.size(); ++d)
                if (const LiveRange v = instructions[i].definitions[d]; registers[index(v)] == no_register)
                    choose(v, preferred(instructions[i], d));
            release(liveness.dead(b, i));
        }
    }

    void number_unreachable(std::span<const LiveRange> definitions) {
        std::vector<Register> next(pools.size());
        for (LiveRange v : definitions) registers[index(v)] = next[problem.values[index(v)].register_class]++;
    }

    std::vector<Register> run() {
        for (FlowBlock b : flow.order) colour_block(b);
        for (std::size_t b = 0; b < problem.blocks.size(); ++b) {
            if (flow.reachable[b]) continue;
            number_unreachable(problem.blocks[b].parameters);
            for (const Instruction& each : problem.blocks[b].instructions) number_unreachable(each.definitions);
        }
        return registers;
    }
};

}  // namespace

std::vector<Register> colour(const Problem& problem, const Flow& flow, const Liveness& liveness,
                             const std::vector<std::uint32_t>& available) {
    std::vector<RegisterPool> pools(available.begin(), available.end());
    return Colouring{problem, flow, liveness, std::move(pools)}.run();
}

}  // namespace ikat::regalloc
