// SPDX-License-Identifier: Apache-2.0
// Where values are live, and where they die.
//
// In SSA form a value lives from its definition, along every path, to its uses. So we walk backwards from each use to
// the definition, marking the blocks on the way. The cost is the length of the live ranges, and no fixed point is
// needed. One value is walked after another, in ascending order: whether a block is marked is seen at the end of its
// set.
//
//     b0:  v = …            out[b0] ∋ v
//          │  ┌───┐
//          ▼  ▼   │
//     b1:  …      │         in[b1], out[b1] ∋ v       (the walk from b2 passes the loop once)
//          │  └───┘
//          ▼
//     b2:  … = v            in[b2] ∋ v
// A second walk, backwards through each block, records what dies at each instruction and which tied uses need a copy.
#include <algorithm>
#include <tuple>

#include "codegen/support/diagnostic.hpp"
#include "regalloc/stages.hpp"
#include "regalloc/text/text.hpp"

namespace ikat::regalloc {

struct LivenessBuilder {
    const Problem& problem;
    const Flow& flow;
    Liveness result{};
    std::vector<FlowBlock> pending{};  // blocks at whose start the value being walked is live
    std::vector<LiveRange> late{};     // that die after the definitions of the current instruction

    struct Use {
        LiveRange value;
        FlowBlock block;
        bool at_end;
    };

    const BasicBlock& block(FlowBlock b) const { return problem.blocks[index(b)]; }

    void find_definitions() {
        result.definitions_.resize(problem.values.size());
        for (FlowBlock b : flow.order) {
            std::uint32_t time = 0;
            for (LiveRange v : block(b).parameters) result.definitions_[index(v)] = {b, time};
            for (const Instruction& instruction : block(b).instructions) {
                time += 2;
                for (LiveRange v : instruction.definitions) result.definitions_[index(v)] = {b, time};
            }
        }
    }

    void live_at_start(LiveRange v, FlowBlock b) {
        if (result.definitions_[index(v)].block == b || !result.in[index(b)].append(v)) return;
        IKAT_ASSERT(b != FlowBlock{0},
                    "v" + std::to_string(index(v)) + " is used where no definition reaches\n" + to_string(problem));
        pending.push_back(b);
    }

    void live_before_use(LiveRange v, FlowBlock b) {
        live_at_start(v, b);
        while (!pending.empty()) {
            const FlowBlock reached = pending.back();
            pending.pop_back();
            for (FlowBlock source : flow.sources(reached))
                if (result.out[index(source)].append(v)) live_at_start(v, source);
        }
    }

    void live_before_terminator(LiveRange v, FlowBlock b) {
        if (result.out[index(b)].append(v)) live_before_use(v, b);
    }

    void find_live_ranges() {
        result.in.resize(problem.blocks.size());
        result.out.resize(problem.blocks.size());
        for (const auto& [v, b, at_end] : uses_elsewhere())
            at_end ? live_before_terminator(v, b) : live_before_use(v, b);
    }

    /// The uses by which values live at the start or the end of a block, by value.
    std::vector<Use> uses_elsewhere() const {
        std::vector<Use> uses;
        for (FlowBlock b : flow.order) {
            std::uint32_t time = 0;
            for (const Instruction& instruction : block(b).instructions) {
                time += 2;
                for (LiveRange v : instruction.uses) {
                    const auto& defined = result.definitions_[index(v)];
                    if (defined.block != b) uses.push_back({v, b, false});
                    IKAT_ASSERT(defined.block != b || defined.time < time,
                                "a value is used above its definition in block" + std::to_string(index(b)) + '\n' +
                                    to_string(problem));
                }
            }
            for (LiveRange v : block(b).terminator_uses) uses.push_back({v, b, true});
            for (const Edge& edge : block(b).edges)
                for (LiveRange v : edge.arguments) uses.push_back({v, b, true});
        }
        // By value, and those of each in code order. (std::stable_sort of this libstdc++ is deprecated inside, says
        // clang.)
        std::ranges::sort(uses, {}, [](const Use& use) { return std::tuple(use.value, use.block, use.at_end); });
        return uses;
    }

    /// Moves `live` from after the instruction to before it. Late uses die after the definitions.
    void step(const Instruction& instruction, Bitset& live, Bitset& claimed, Liveness::Place& place) {
        late.clear();
        for (LiveRange v : instruction.uses)
            if (reads_late(instruction, v) && live.insert(index(v))) late.push_back(v);

        place = {.begin = end(), .tied = std::uint32_t(result.copied_.size())};
        place.tied_count = std::uint32_t(instruction.tied.size());
        for (const Tied& tied : instruction.tied) {
            const std::uint32_t used = index(instruction.uses[tied.use]);
            result.copied_.push_back(live.test(used) || !claimed.insert(used));
        }
        for (const Tied& tied : instruction.tied) claimed.reset(index(instruction.uses[tied.use]));

        std::vector<LiveRange>& values = result.values_;
        for (LiveRange v : instruction.uses)
            if (!live.test(index(v)) && claimed.insert(index(v))) values.push_back(v);
        place.middle = end();
        for (LiveRange v : instruction.definitions)
            if (!live.test(index(v))) values.push_back(v);
        values.insert(values.end(), late.begin(), late.end());
        place.end = end();

        for (LiveRange v : instruction.definitions) live.reset(index(v));
        for (LiveRange v : instruction.uses) live.set(index(v)), claimed.reset(index(v));
    }

    std::uint32_t end() const { return std::uint32_t(result.values_.size()); }

    /// `live` is empty before and after.
    void find_deaths(FlowBlock b, Bitset& live, Bitset& claimed) {
        const auto& instructions = block(b).instructions;
        Liveness::Place* places = &result.places_[result.first_[index(b)]];
        for (LiveRange v : result.out[index(b)]) live.set(index(v));
        for (std::size_t i = instructions.size(); i-- > 0;) step(instructions[i], live, claimed, places[1 + i]);

        places->begin = places->middle = end();
        for (LiveRange v : block(b).parameters)
            if (!live.test(index(v))) result.values_.push_back(v);
        places->end = end();
        for (LiveRange v : block(b).parameters) live.reset(index(v));
        for (LiveRange v : result.in[index(b)]) live.reset(index(v));
    }

    /// A copied tied use is defined before the instruction, while all of the instruction's uses are still live.
    void advance_copies() {
        for (FlowBlock b : flow.order)
            for (std::uint32_t i = 0; i < block(b).instructions.size(); ++i) {
                const Instruction& instruction = block(b).instructions[i];
                const auto copied = result.copied(b, i);
                for (std::size_t t = 0; t < copied.size(); ++t)
                    if (copied[t])
                        --result.definitions_[index(instruction.definitions[instruction.tied[t].definition])].time;
            }
    }

    /// Turns the lists of values that die at each instruction into lists of where each value dies.
    void index_deaths() {
        result.first_death_.assign(problem.values.size() + 1, 0);
        const auto each_death = [&](auto&& visit) {
            for (FlowBlock b : flow.order) {
                for (LiveRange v : result.dead_parameters(b)) visit(v, Liveness::Point{b, 1});
                for (std::uint32_t i = 0; i < block(b).instructions.size(); ++i) {
                    for (LiveRange v : result.dying(b, i)) visit(v, Liveness::Point{b, 2 * i + 2});
                    for (LiveRange v : result.dead(b, i)) visit(v, Liveness::Point{b, 2 * i + 3});
                }
            }
        };
        each_death([&](LiveRange v, Liveness::Point) { ++result.first_death_[index(v) + 1]; });
        for (std::size_t v = 0; v < problem.values.size(); ++v) result.first_death_[v + 1] += result.first_death_[v];
        result.deaths_.resize(result.first_death_.back());
        std::vector<std::uint32_t> next = result.first_death_;
        each_death([&](LiveRange v, Liveness::Point point) { result.deaths_[next[index(v)]++] = point; });
    }

    Liveness run() {
        result.classes = class_count(problem);
        find_definitions();
        find_live_ranges();
        std::uint32_t places = 0;
        for (const BasicBlock& each : problem.blocks) {
            result.first_.push_back(places);
            places += 1 + std::uint32_t(each.instructions.size());
        }
        result.places_.resize(places);
        Bitset live(problem.values.size()), claimed(problem.values.size());
        for (FlowBlock b : flow.order) find_deaths(b, live, claimed);
        advance_copies();
        index_deaths();
        return std::move(result);
    }
};

bool is_tied(const Instruction& instruction, std::size_t use) {
    return std::ranges::any_of(instruction.tied, [&](const Tied& pair) { return pair.use == use; });
}

bool reads_late(const Instruction& instruction, LiveRange v) {
    for (std::size_t u = 0; instruction.early && u < instruction.uses.size(); ++u)
        if (instruction.uses[u] == v && !is_tied(instruction, u)) return true;
    return false;
}

bool Liveness::live_after_definition(LiveRange v, LiveRange other) const {
    const Point from = definitions_[index(v)], at = definitions_[index(other)];
    if (at.block == no_id<FlowBlock> || from.block == no_id<FlowBlock>) return false;
    if (from.block != at.block && !in[index(at.block)].contains(v)) return false;
    if (from.block == at.block && from.time > at.time) return false;
    if (out[index(at.block)].contains(v)) return true;
    for (std::uint32_t i = first_death_[index(v)]; i < first_death_[index(v) + 1]; ++i)
        if (deaths_[i].block == at.block) return deaths_[i].time > at.time;
    return false;
}

Liveness liveness_of(const Problem& problem, const Flow& flow) { return LivenessBuilder{problem, flow}.run(); }

}  // namespace ikat::regalloc
