// SPDX-License-Identifier: Apache-2.0
// The preconditions of regalloc.hpp, asserted before any stage relies on them.
#include "codegen/support/diagnostic.hpp"
#include "regalloc/stages.hpp"
#include "regalloc/text/text.hpp"

namespace ikat::regalloc {
namespace {

struct Validator {
    const Problem& problem;
    const Flow& flow;
    Bitset defined{problem.values.size()};

    void require(bool holds, const char* promise) const { IKAT_ASSERT(holds, promise + ('\n' + to_string(problem))); }
    Class class_of(LiveRange v) const { return problem.values[index(v)].register_class; }

    void uses(std::span<const LiveRange> values) const {
        for (LiveRange v : values) require(index(v) < problem.values.size(), "a value is one of the problem's");
    }
    void definitions(std::span<const LiveRange> values) {
        uses(values);
        for (LiveRange v : values) require(defined.insert(index(v)), "a value is defined once");
    }

    void instruction(const Instruction& instruction) {
        uses(instruction.uses);
        definitions(instruction.definitions);
        for (const auto* pairs : {&instruction.tied, &instruction.preferred})
            for (const auto [definition, use] : *pairs) {
                require(definition < instruction.definitions.size() && use < instruction.uses.size(),
                        "a pair is in range");
                require(class_of(instruction.definitions[definition]) == class_of(instruction.uses[use]),
                        "a pair is of one class");
            }
    }

    void edge(const BasicBlock& from, const Edge& edge) const {
        const auto& parameters = problem.blocks[index(edge.to)].parameters;
        uses(edge.arguments);
        require(edge.arguments.size() == parameters.size(), "an edge has one argument per parameter");
        for (std::size_t i = 0; i < parameters.size(); ++i)
            require(class_of(edge.arguments[i]) == class_of(parameters[i]), "an argument is of its parameter's class");
        if (parameters.empty()) return;
        const bool at_end = from.edges.size() == 1;
        require(at_end || flow.predecessors[index(edge.to)] == 1, "no critical edge has arguments");
        require(!at_end || from.terminator_uses.empty(), "a terminator after moves reads nothing");
    }

    void run() {
        for (const BasicBlock& block : problem.blocks) {
            definitions(block.parameters);
            for (const Instruction& each : block.instructions) instruction(each);
            uses(block.terminator_uses);
        }
        for (FlowBlock b : flow.order)
            for (const Edge& each : problem.blocks[index(b)].edges) edge(problem.blocks[index(b)], each);
    }
};

}  // namespace

void validate(const Problem& problem, const Flow& flow) { Validator{problem, flow}.run(); }

}  // namespace ikat::regalloc
