// SPDX-License-Identifier: Apache-2.0
// Inserts the moves that a colouring needs.
//
//     v2 = v0 (tied v2 v0), v0 lives on        r2 ← r0 before the instruction, which then overwrites r2
//     goto b1(v3), b1 has parameter v4         r4 ← r3 at the end of the block (or the start of b1: see flow.cpp)
//
// All arguments of an edge are read before any parameter is written: the moves of a class are one parallel copy. Values
// that live across the edge, arguments and parameters together never need more registers than the points on either
// side, so only a cycle can need one more. It is taken from the registers that are free there, if possible.
#include <algorithm>

#include "regalloc/stages.hpp"

namespace ikat::regalloc {
namespace {

struct MoveInserter {
    const Problem& problem;
    const Flow& flow;
    const Liveness& liveness;
    const std::vector<std::uint32_t>& limits;
    Allocation& answer;
    std::vector<std::vector<Move>> parallel = std::vector<std::vector<Move>>(liveness.classes);  // by class
    std::uint32_t cycle_slot = 0;  // one past the stack slot that breaks cycles

    Class class_of(LiveRange v) const { return problem.values[index(v)].register_class; }
    Register register_of(LiveRange v) const { return answer.registers[index(v)]; }

    void count_used() {
        answer.used.assign(parallel.size(), 0);
        for (LiveRange v : ids<LiveRange>(problem.values.size()))
            if (register_of(v) != no_register)
                answer.used[class_of(v)] = std::max(answer.used[class_of(v)], register_of(v) + 1);
    }

    /// A register of class c that is free during the moves of `edge`; no_register if there is none.
    Register idle_register(const Edge& edge, Class c) {
        Bitset busy(answer.used[c]);
        const auto mark = [&](LiveRange v) {
            if (class_of(v) == c) busy.set(register_of(v));
        };
        std::ranges::for_each(liveness.in[index(edge.to)], mark);
        std::ranges::for_each(edge.arguments, mark);
        std::ranges::for_each(problem.blocks[index(edge.to)].parameters, mark);
        for (Register r = 0; r < answer.used[c]; ++r)
            if (!busy.test(r)) return r;
        const bool another = c >= limits.size() || answer.used[c] < limits[c];
        return another ? answer.used[c]++ : no_register;
    }

    Edit through_stack(const Move& move, const Edge& edge, Edit edit, LiveRange& saved) {
        if (move.to == no_register) {
            saved = *std::ranges::find_if(edge.arguments, [&](LiveRange v) {
                return class_of(v) == edit.register_class && register_of(v) == move.from;
            });
            if (cycle_slot == 0) cycle_slot = ++answer.stack_slots;
        }
        edit.kind = move.to == no_register ? Edit::Kind::Spill : Edit::Kind::Reload;
        edit.value = saved;
        edit.slot = cycle_slot - 1;
        return edit;
    }

    void edge_moves(const Edge& edge, FlowBlock at, std::uint32_t before) {
        const auto& parameters = problem.blocks[index(edge.to)].parameters;
        for (std::size_t i = 0; i < parameters.size(); ++i)
            parallel[class_of(parameters[i])].push_back({register_of(parameters[i]), register_of(edge.arguments[i])});
        for (std::size_t c = 0; c < parallel.size(); ++c) {
            std::vector<Move> moves = sequentialise(parallel[c], no_register);
            parallel[c].clear();
            const bool cycle = std::ranges::find(moves, no_register, &Move::to) != moves.end();
            const Register scratch = cycle ? idle_register(edge, Class(c)) : no_register;
            LiveRange saved = no_id<LiveRange>;
            for (const Move& move : moves) {
                const Edit edit{.kind = Edit::Kind::Move,
                                .block = at,
                                .before = before,
                                .register_class = Class(c),
                                .from = move.from == no_register ? scratch : move.from,
                                .to = move.to == no_register ? scratch : move.to};
                const bool on_stack = edit.from == no_register || edit.to == no_register;
                answer.edits.push_back(on_stack ? through_stack(move, edge, edit, saved) : edit);
            }
        }
    }

    void tied_copies(FlowBlock b, std::uint32_t i) {
        const Instruction& instruction = problem.blocks[index(b)].instructions[i];
        const auto copied = liveness.copied(b, i);
        for (std::size_t t = 0; t < copied.size(); ++t) {
            if (!copied[t]) continue;
            const LiveRange definition = instruction.definitions[instruction.tied[t].definition];
            const LiveRange use = instruction.uses[instruction.tied[t].use];
            answer.edits.push_back({.kind = Edit::Kind::Move,
                                    .block = b,
                                    .before = i,
                                    .register_class = class_of(use),
                                    .from = register_of(use),
                                    .to = register_of(definition)});
        }
    }

    void run() {
        count_used();
        for (std::uint32_t i = 0; i < problem.blocks.size(); ++i) {
            const FlowBlock b{i};
            if (!flow.reachable[i]) continue;
            const std::uint32_t count = std::uint32_t(problem.blocks[i].instructions.size());
            if (const Edge* edge = edge_at_start(problem, flow, b)) edge_moves(*edge, b, 0);
            for (std::uint32_t place = 0; place < count; ++place) tied_copies(b, place);
            if (const Edge* edge = edge_at_end(problem, b)) edge_moves(*edge, b, count);
        }
    }
};

}  // namespace

void insert_moves(const Problem& problem, const Flow& flow, const Liveness& liveness,
                  const std::vector<std::uint32_t>& limits, Allocation& answer) {
    MoveInserter{problem, flow, liveness, limits, answer}.run();
}

}  // namespace ikat::regalloc
