// SPDX-License-Identifier: Apache-2.0
// Translates the answer to a rewritten problem into an answer to the original one.
//
//     v9 = reload v0            v9 in r1            r1 <- slot0 v0        an edit before the next original instruction
//     = v9                                          reassigned: this use of v0 reads r1
// A value keeps the register that its definition writes; a value that is never in a register has none.
#include <algorithm>

#include "regalloc/stages.hpp"

namespace ikat::regalloc {
namespace {

using Kind = Spilled::Origin::Kind;

struct Translator {
    const Problem& original;
    const Spilled& spilled;
    const Allocation& answer;  // to spilled.problem
    Allocation result{};
    std::size_t next_edit = 0;

    void copy_edits(FlowBlock b, std::uint32_t place, std::uint32_t before) {
        for (; next_edit < answer.edits.size(); ++next_edit) {
            Edit edit = answer.edits[next_edit];
            if (edit.block != b || edit.before != place) return;
            edit.before = before;
            if (edit.value != no_id<LiveRange>) edit.value = spilled.original[index(edit.value)];
            edit.slot += spilled.stack_slots;
            result.edits.push_back(edit);
        }
    }

    void reassign(FlowBlock b, std::uint32_t place, std::span<const LiveRange> uses,
                  std::span<const LiveRange> pieces) {
        for (std::uint32_t u = 0; u < uses.size(); ++u)
            if (const Register r = answer.registers[index(pieces[u])]; r != result.registers[index(uses[u])])
                result.reassigned.push_back({b, place, u, r});
    }

    void insert(FlowBlock b, std::uint32_t before, const Spilled::Origin& origin, const Instruction& instruction) {
        const bool store = origin.kind == Kind::Spill;
        const LiveRange held = store ? instruction.uses[0] : instruction.definitions[0];
        const Register r = answer.registers[index(held)];
        const Edit::Kind kind = store                         ? Edit::Kind::Spill
                                : origin.kind == Kind::Reload ? Edit::Kind::Reload
                                                              : Edit::Kind::Rematerialise;
        result.edits.push_back({.kind = kind,
                                .block = b,
                                .before = before,
                                .register_class = spilled.problem.values[index(held)].register_class,
                                .from = store ? r : no_register,
                                .to = store ? no_register : r,
                                .value = origin.value,
                                .slot = origin.slot});
    }

    void translate(FlowBlock b) {
        const BasicBlock& from = original.blocks[index(b)];
        const BasicBlock& block = spilled.problem.blocks[index(b)];
        const std::uint32_t end = std::uint32_t(block.instructions.size());
        std::uint32_t i = 0;
        for (std::uint32_t place = 0; place < end; ++place) {
            copy_edits(b, place, i);
            const Spilled::Origin& origin = spilled.origins[index(b)][place];
            if (origin.kind != Kind::Instruction) {
                insert(b, i, origin, block.instructions[place]);
                continue;
            }
            reassign(b, i, from.instructions[i].uses, block.instructions[place].uses);
            ++i;
        }
        copy_edits(b, end, i);
        reassign(b, i, from.terminator_uses, block.terminator_uses);
    }

    Allocation run() {
        result.registers.assign(answer.registers.begin(),
                                answer.registers.begin() + std::ptrdiff_t(original.values.size()));
        for (FlowBlock b : ids<FlowBlock>(original.blocks.size())) translate(b);
        result.used = answer.used;
        result.max_live = answer.max_live;
        result.stack_slots = spilled.stack_slots + answer.stack_slots;
        return std::move(result);
    }
};

}  // namespace

Allocation translate(const Problem& original, const Spilled& spilled, Allocation answer) {
    return Translator{original, spilled, answer}.run();
}

}  // namespace ikat::regalloc
