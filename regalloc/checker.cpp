// SPDX-License-Identifier: Apache-2.0
// Verifies an answer, independently of how it was made.
// The function is executed symbolically. A location (a register or a stack slot) holds the set of values that it
// certainly equals. Moves copy sets, definitions replace them, and where paths meet sets are intersected, until nothing
// changes. Then each use must find its value in the register it reads.
//
//     block0:                                       {}
//         v0:b32.0 =                                r0 {v0}
//         b32.1 <- b32.0                            r0 {v0}  r1 {v0}
//         goto block1(v0)                           on the edge v1 := v0:  r0 {v0, v1}  r1 {v0, v1}
//     block1(v1:b32.1):                             v0 is dead:  r0 {v1}  r1 {v1}
//         return v1:b32.1                           reads r1: found
// On an edge the parameters are renamings: whatever equals an argument then also equals its parameter. So it does not
// matter at which end the moves are. Sets are reduced to live values at each block; this uses the allocator's liveness,
// but an error there can only make the check fail, never pass.
// Assumes nothing about the answer beyond regalloc.hpp, and trusts no number in it.
#include <algorithm>
#include <utility>

#include "regalloc/stages.hpp"

namespace ikat::regalloc {
namespace {

using Location = std::uint32_t;
using Fact = std::pair<Location, LiveRange>;  // the location equals the value
using Facts = std::vector<Fact>;              // ascending

std::string name(LiveRange v) { return 'v' + std::to_string(index(v)); }

struct Checker {
    const Problem& problem;
    const Allocation& answer;
    const Flow& flow;
    Liveness liveness = liveness_of(problem, flow);
    std::vector<std::uint32_t> first{};           // by class: the location of register 0; at the end: of slot 0
    std::vector<std::vector<LiveRange>> holds{};  // by location: ascending
    std::vector<Facts> at_start{};                // by FlowBlock
    std::vector<bool> visited{};                  // by FlowBlock
    std::vector<std::size_t> first_edit{};        // by FlowBlock
    std::vector<std::size_t> first_reassigned{};  // by FlowBlock
    bool reporting = false;
    std::string place{};  // prefix of each violation
    std::vector<std::string> violations{};

    const BasicBlock& block(FlowBlock b) const { return problem.blocks[index(b)]; }
    Class class_of(LiveRange v) const { return problem.values[index(v)].register_class; }
    void violation(std::string sentence) {
        if (reporting) violations.push_back(place + sentence);
    }

    // ---- the shape of the answer: if it is wrong, there is nothing to execute -------------------------------------

    bool is_register(Class c, Register r) const { return c < answer.used.size() && r < answer.used[c]; }

    bool edit_is_well_formed(const Edit& edit) const {
        const bool reads = edit.kind == Edit::Kind::Move || edit.kind == Edit::Kind::Spill;
        const bool writes = edit.kind != Edit::Kind::Spill;
        const bool stack = edit.kind == Edit::Kind::Spill || edit.kind == Edit::Kind::Reload;
        if (index(edit.block) >= problem.blocks.size()) return false;
        if (edit.before > block(edit.block).instructions.size()) return false;
        if (reads && !is_register(edit.register_class, edit.from)) return false;
        if (writes && !is_register(edit.register_class, edit.to)) return false;
        if (stack && edit.slot >= answer.stack_slots) return false;
        if (edit.kind == Edit::Kind::Move) return true;
        return index(edit.value) < problem.values.size() && class_of(edit.value) == edit.register_class;
    }

    bool reassigned_is_well_formed(const Reassigned& each) const {
        if (index(each.block) >= problem.blocks.size()) return false;
        const BasicBlock& in = block(each.block);
        if (each.instruction > in.instructions.size()) return false;
        const bool ends = each.instruction == in.instructions.size();
        const std::span<const LiveRange> uses =
            ends ? std::span(in.terminator_uses) : in.instructions[each.instruction].uses;
        return each.use < uses.size() && is_register(class_of(uses[each.use]), each.to);
    }

    void check_shape() {
        if (answer.registers.size() != problem.values.size()) return violation("there is not one register per value");
        if (answer.used.size() < class_count(problem)) return violation("a class has no count of used registers");
        for (LiveRange v : ids<LiveRange>(problem.values.size()))
            if (answer.registers[index(v)] != no_register && !is_register(class_of(v), answer.registers[index(v)]))
                violation(name(v) + " has a register that is not counted as used");
        for (const Edit& edit : answer.edits)
            if (!edit_is_well_formed(edit)) return violation("an edit names something that does not exist");
        for (const Reassigned& each : answer.reassigned)
            if (!reassigned_is_well_formed(each)) return violation("a reassigned use does not exist");
        const auto place_of = [](const Edit& e) { return std::pair(index(e.block), e.before); };
        const auto use_of = [](const Reassigned& r) { return std::tuple(index(r.block), r.instruction, r.use); };
        if (!std::ranges::is_sorted(answer.edits, {}, place_of)) violation("the edits are not in order");
        if (!std::ranges::is_sorted(answer.reassigned, {}, use_of)) violation("the reassigned uses are not in order");
    }

    // ---- one block ------------------------------------------------------------------------------------------------

    Location location(Class c, Register r) const { return first[c] + r; }
    Location slot(std::uint32_t s) const { return first.back() + s; }
    Location home(LiveRange v) const { return location(class_of(v), answer.registers[index(v)]); }
    bool equals(Location l, LiveRange v) const { return std::ranges::binary_search(holds[l], v); }

    std::string contents(Location l) const {
        std::string out;
        for (LiveRange v : holds[l]) out += (out.empty() ? "" : ", ") + name(v);
        return out.empty() ? "nothing certain" : out;
    }
    void want(Location l, LiveRange v, const std::string& who) {
        if (reporting && !equals(l, v)) violation(who + " wants " + name(v) + " but finds " + contents(l));
    }

    /// The rematerialised value, and the parameters it has just been passed for.
    std::vector<LiveRange> computed_again(const Edit& edit) const {
        std::vector<LiveRange> values{edit.value};
        if (const Edge* edge = edge_at_start(problem, flow, edit.block))
            for (std::size_t i = 0; i < edge->arguments.size(); ++i)
                if (edge->arguments[i] == edit.value) values.push_back(block(edit.block).parameters[i]);
        std::ranges::sort(values);
        return values;
    }

    void execute(const Edit& edit) {
        const Class c = edit.register_class;
        switch (edit.kind) {
            case Edit::Kind::Move: holds[location(c, edit.to)] = holds[location(c, edit.from)]; return;
            case Edit::Kind::Spill:
                want(location(c, edit.from), edit.value, "a spill");
                holds[slot(edit.slot)] = holds[location(c, edit.from)];
                return;
            case Edit::Kind::Reload:
                want(slot(edit.slot), edit.value, "a reload");
                holds[location(c, edit.to)] = holds[slot(edit.slot)];
                return;
            case Edit::Kind::Rematerialise:
                if (!problem.values[index(edit.value)].rematerialisable)
                    violation(name(edit.value) + " cannot be computed again");
                holds[location(c, edit.to)] = computed_again(edit);
                return;
        }
    }

    void define(std::span<const LiveRange> definitions) {
        for (std::size_t i = 0; i < definitions.size(); ++i) {
            const LiveRange v = definitions[i];
            if (answer.registers[index(v)] == no_register) {
                violation(name(v) + " is defined and has no register");
                continue;
            }
            for (std::size_t j = 0; j < i; ++j)
                if (answer.registers[index(definitions[j])] != no_register && home(v) == home(definitions[j]))
                    violation(name(definitions[j]) + " and " + name(v) + " are written to one register");
            holds[home(v)] = {v};
        }
    }

    /// Checks all uses except tied ones, which are read in their definitions' registers.
    void check_uses(FlowBlock b, std::uint32_t i, const Instruction& instruction, std::size_t& next_reassigned) {
        const auto& uses = instruction.uses;
        for (std::uint32_t u = 0; u < uses.size(); ++u) {
            Register r = answer.registers[index(uses[u])];
            for (; next_reassigned < answer.reassigned.size(); ++next_reassigned) {
                const Reassigned& each = answer.reassigned[next_reassigned];
                if (std::tuple(each.block, each.instruction, each.use) != std::tuple(b, i, u)) break;
                r = each.to;
            }
            if (is_tied(instruction, u)) continue;
            if (r == no_register) {
                violation("use " + std::to_string(u) + " of " + name(uses[u]) + " has no register");
                continue;
            }
            want(location(class_of(uses[u]), r), uses[u], "use " + std::to_string(u));
            for (LiveRange v : instruction.definitions)
                if (instruction.early && answer.registers[index(v)] != no_register &&
                    home(v) == location(class_of(uses[u]), r))
                    violation(name(v) + " is written before " + name(uses[u]) + " is read from there");
        }
    }

    void check_tied(const Instruction& instruction) {
        for (const Tied& pair : instruction.tied) {
            const LiveRange definition = instruction.definitions[pair.definition], use = instruction.uses[pair.use];
            if (answer.registers[index(definition)] != no_register)
                want(home(definition), use, "tied definition " + name(definition));
        }
    }

    void execute(FlowBlock b) {
        std::size_t edit = first_edit[index(b)], reassigned = first_reassigned[index(b)];
        const std::uint32_t count = std::uint32_t(block(b).instructions.size());
        for (std::uint32_t i = 0; i <= count; ++i) {
            if (reporting) place = "block" + std::to_string(index(b)) + ", place " + std::to_string(i) + ": ";
            for (; edit < answer.edits.size(); ++edit) {
                if (answer.edits[edit].block != b || answer.edits[edit].before != i) break;
                execute(answer.edits[edit]);
            }
            if (i == count) {
                Instruction end;
                end.uses.assign(block(b).terminator_uses.begin(), block(b).terminator_uses.end());
                return check_uses(b, i, end, reassigned);
            }
            const Instruction& instruction = block(b).instructions[i];
            check_tied(instruction);
            check_uses(b, i, instruction, reassigned);
            define(instruction.definitions);
        }
    }

    // ---- all paths ------------------------------------------------------------------------------------------------

    void start(FlowBlock b) {
        for (auto& values : holds) values.clear();
        for (const auto& [l, v] : at_start[index(b)]) holds[l].push_back(v);
        if (b != FlowBlock{0}) return;
        place = "on entry: ";
        define(block(b).parameters);
    }

    /// The facts after the edge about values that are live there or read by its moves. (A dead value may be kept only
    /// where it cannot be redefined before it is dropped: after the block's only edge.)
    Facts facts_after(const Edge& edge) const {
        const auto& parameters = block(edge.to).parameters;
        const bool moves_follow = edge_at_start(problem, flow, edge.to) != nullptr;
        const auto is_kept = [&](LiveRange v) {
            return liveness.in[index(edge.to)].contains(v) ||
                   (moves_follow && std::ranges::find(edge.arguments, v) != edge.arguments.end());
        };
        Facts facts;
        for (Location l = 0; l < holds.size(); ++l) {
            if (holds[l].empty()) continue;
            for (LiveRange v : holds[l])
                if (is_kept(v)) facts.emplace_back(l, v);
            for (std::size_t i = 0; i < parameters.size(); ++i)
                if (equals(l, edge.arguments[i])) facts.emplace_back(l, parameters[i]);
        }
        std::ranges::sort(facts);
        return facts;
    }

    bool meet(FlowBlock b, Facts facts) {
        Facts& known = at_start[index(b)];
        if (!visited[index(b)]) {
            visited[index(b)] = true;
            known = std::move(facts);
            return true;
        }
        Facts common;
        std::ranges::set_intersection(known, facts, std::back_inserter(common));
        const bool changed = common.size() != known.size();
        known = std::move(common);
        return changed;
    }

    void find_facts() {
        std::vector<bool> pending(problem.blocks.size(), false);
        pending[0] = visited[0] = true;
        for (bool again = true; again;) {
            again = false;
            for (FlowBlock b : flow.order) {
                if (!pending[index(b)]) continue;
                pending[index(b)] = false;
                start(b);
                execute(b);
                for (const Edge& edge : block(b).edges)
                    if (meet(edge.to, facts_after(edge))) pending[index(edge.to)] = again = true;
            }
        }
    }

    void prepare() {
        const std::size_t blocks = problem.blocks.size();
        first.assign(1, 0);
        for (std::uint32_t used : answer.used) first.push_back(first.back() + used);
        holds.resize(first.back() + answer.stack_slots);
        at_start.resize(blocks);
        visited.assign(blocks, false);
        const auto first_of = [](const auto& items, std::uint32_t b) {
            const auto block_of = [](const auto& item) { return index(item.block); };
            return std::size_t(std::ranges::lower_bound(items, b, {}, block_of) - items.begin());
        };
        for (std::uint32_t b = 0; b < blocks; ++b) {
            first_edit.push_back(first_of(answer.edits, b));
            first_reassigned.push_back(first_of(answer.reassigned, b));
        }
    }

    std::vector<std::string> run() {
        reporting = true;
        check_shape();
        if (!violations.empty()) return std::move(violations);
        prepare();
        reporting = false;
        find_facts();
        reporting = true;
        for (FlowBlock b : flow.order) start(b), execute(b);
        return std::move(violations);
    }
};

}  // namespace

std::vector<std::string> check(const Problem& problem, const Allocation& allocation) {
    const Flow flow = flow_of(problem);
    validate(problem, flow);
    return Checker{problem, allocation, flow}.run();
}

}  // namespace ikat::regalloc
