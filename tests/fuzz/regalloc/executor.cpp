// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/regalloc/executor.hpp"

#include "regalloc/stages.hpp"

namespace ikat::regalloc::fuzz {
namespace {

using Word = std::uint64_t;

Word mix(Word a, Word b) {
    Word x = a * 0x9E3779B97F4A7C15u ^ (b + 0x7F4A7C15u + (a << 6) + (a >> 2));
    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9u;
    return x ^ x >> 32;
}

struct Executor {
    const Problem& problem;
    const Allocation& answer;
    std::uint64_t seed;
    std::vector<Word> values{};                  // in SSA form
    std::vector<std::vector<Word>> registers{};  // by class
    std::vector<Word> slots{};
    std::string mismatch{};

    Class class_of(LiveRange v) const { return problem.values[index(v)].register_class; }
    Register home(LiveRange v) const { return answer.registers[index(v)]; }

    /// A rematerialisable value is the same each time.
    Word computed_again(LiveRange v) const { return mix(seed, 0xC0FFEE + index(v)); }

    void expect(Word found, LiveRange v, FlowBlock b, std::size_t place) {
        if (found == values[index(v)] || !mismatch.empty()) return;
        mismatch = "block" + std::to_string(index(b)) + ", place " + std::to_string(place) + ": v" +
                   std::to_string(index(v)) + " is not what was read";
    }

    void edits(FlowBlock b, std::size_t place) {
        for (const Edit& e : answer.edits) {
            if (e.block != b || e.before != place) continue;
            std::vector<Word>& file = registers[e.register_class];
            switch (e.kind) {
                case Edit::Kind::Move: file[e.to] = file[e.from]; break;
                case Edit::Kind::Spill: slots[e.slot] = file[e.from]; break;
                case Edit::Kind::Reload: file[e.to] = slots[e.slot]; break;
                case Edit::Kind::Rematerialise: file[e.to] = computed_again(e.value); break;
            }
        }
    }

    Register register_read(FlowBlock b, std::size_t place, std::size_t use, LiveRange v) const {
        for (const Reassigned& r : answer.reassigned)
            if (r.block == b && r.instruction == place && r.use == use) return r.to;
        return home(v);
    }

    void read_tied(FlowBlock b, std::size_t place, const Instruction& instruction) {
        for (const Tied& pair : instruction.tied) {
            const LiveRange use = instruction.uses[pair.use], definition = instruction.definitions[pair.definition];
            expect(registers[class_of(use)][home(definition)], use, b, place);
        }
    }

    void read(FlowBlock b, std::size_t place, std::span<const LiveRange> uses, const Instruction& instruction = {}) {
        for (std::size_t u = 0; u < uses.size(); ++u) {
            if (is_tied(instruction, u)) continue;
            const Register r = register_read(b, place, u, uses[u]);
            expect(r == no_register ? ~values[index(uses[u])] : registers[class_of(uses[u])][r], uses[u], b, place);
        }
    }

    void define(LiveRange v, Word word) {
        values[index(v)] = word;
        if (home(v) != no_register) registers[class_of(v)][home(v)] = word;
    }

    void execute(FlowBlock b, std::size_t i) {
        const Instruction& instruction = problem.blocks[index(b)].instructions[i];
        read_tied(b, i, instruction);
        if (instruction.early)  // not its final value yet
            for (LiveRange v : instruction.definitions)
                if (home(v) != no_register) registers[class_of(v)][home(v)] = mix(seed, ~Word{index(v)});
        read(b, i, instruction.uses, instruction);
        Word word = mix(seed, index(b) * 1000003u + i);
        for (LiveRange v : instruction.uses) word = mix(word, values[index(v)]);
        for (LiveRange v : instruction.definitions) {
            const bool again = problem.values[index(v)].rematerialisable;
            define(v, again ? computed_again(v) : word = mix(word, index(v)));
        }
    }

    void pass(const Edge& edge) {
        std::vector<Word> arguments;
        for (LiveRange v : edge.arguments) arguments.push_back(values[index(v)]);
        for (std::size_t i = 0; i < arguments.size(); ++i)
            values[index(problem.blocks[index(edge.to)].parameters[i])] = arguments[i];
    }

    void start() {
        values.assign(problem.values.size(), 0);
        for (std::size_t c = 0; c < answer.used.size(); ++c) {
            registers.emplace_back(answer.used[c]);
            for (Word& word : registers.back())
                word = mix(seed, ~registers.size() - std::size_t(&word - registers.back().data()));
        }
        slots.assign(answer.stack_slots, 0xDEAD);
        for (LiveRange v : problem.blocks.front().parameters) define(v, mix(seed, index(v)));
    }

    std::string run(std::uint32_t steps) {
        start();
        FlowBlock b{0};
        for (Word path = seed; steps > 0 && mismatch.empty(); --steps) {
            const BasicBlock& block = problem.blocks[index(b)];
            for (std::size_t i = 0; i < block.instructions.size(); ++i) edits(b, i), execute(b, i);
            edits(b, block.instructions.size());
            read(b, block.instructions.size(), block.terminator_uses);
            if (block.edges.empty()) break;
            for (LiveRange v : block.terminator_uses) path = mix(path, values[index(v)]);
            const Edge& edge = block.edges[(path = mix(path, steps)) % block.edges.size()];
            pass(edge);
            b = edge.to;
        }
        return mismatch;
    }
};

}  // namespace

std::string execute(const Problem& problem, const Allocation& answer, std::uint64_t seed, std::uint32_t steps) {
    return Executor{problem, answer, seed}.run(steps);
}

}  // namespace ikat::regalloc::fuzz
