// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/regalloc/random_problem.hpp"

#include <algorithm>
#include <random>
#include <set>

#include "regalloc/stages.hpp"

namespace ikat::regalloc::fuzz {
namespace {

struct Generator {
    std::mt19937_64 random;
    std::int64_t budget;  // instructions still to generate
    Problem problem{};
    std::vector<LiveRange> visible{};  // defined in blocks that dominate this one
    FlowBlock here{};

    std::uint32_t below(std::uint32_t n) { return std::uint32_t(random() % n); }
    bool chance(std::uint32_t percent) { return below(100) < percent; }
    BasicBlock& block(FlowBlock b) { return problem.blocks[index(b)]; }
    Class classes() const { return Class(problem.limits.size()); }
    Class class_of(LiveRange v) const { return problem.values[index(v)].register_class; }

    FlowBlock new_block() {
        problem.blocks.emplace_back();
        return FlowBlock(problem.blocks.size() - 1);
    }
    LiveRange new_value(Class c, bool rematerialisable = false) {
        problem.values.push_back({c, rematerialisable});
        return LiveRange(problem.values.size() - 1);
    }

    /// Recent values are preferred, as in real code; now and then an old one, so that ranges are long.
    LiveRange pick() {
        const std::uint32_t size = std::uint32_t(visible.size());
        return visible[chance(60) ? size - 1 - below(std::min(size, 8u)) : below(size)];
    }
    LiveRange pick(Class c) {
        for (int attempt = 0; attempt < 20; ++attempt)
            if (const LiveRange v = pick(); class_of(v) == c) return v;
        for (LiveRange v : visible)
            if (class_of(v) == c) return v;
        return visible.front();
    }
    std::vector<LiveRange> pick_some(std::uint32_t max) {
        std::vector<LiveRange> values(visible.empty() ? 0 : below(max + 1));
        for (LiveRange& v : values) v = pick();
        return values;
    }
    std::vector<LiveRange> pick_like(const std::vector<LiveRange>& parameters) {
        std::vector<LiveRange> values;
        for (LiveRange v : parameters) values.push_back(pick(class_of(v)));
        return values;
    }
    /// Parameters of classes that have a visible value, so that an argument can be found.
    std::vector<LiveRange> new_parameters(std::uint32_t max) {
        std::vector<LiveRange> parameters(below(max + 1));
        for (LiveRange& v : parameters) v = new_value(class_of(pick()));
        return parameters;
    }
    void show(std::span<const LiveRange> values) { visible.insert(visible.end(), values.begin(), values.end()); }

    void tie(Instruction& instruction) {
        for (std::uint16_t d = 0; d < instruction.definitions.size(); ++d)
            for (std::uint16_t u = 0; u < instruction.uses.size(); ++u) {
                const auto is_taken = [&](const Tied& tied) { return tied.definition == d || tied.use == u; };
                if (class_of(instruction.definitions[d]) != class_of(instruction.uses[u]) || !chance(30) ||
                    std::ranges::any_of(instruction.tied, is_taken))
                    continue;
                instruction.tied.push_back({d, u});
            }
        for (std::uint16_t d = 0; d < instruction.definitions.size() && !instruction.uses.empty(); ++d)
            if (const std::uint32_t u = below(std::uint32_t(instruction.uses.size()));
                class_of(instruction.definitions[d]) == class_of(instruction.uses[u]) && chance(30))
                instruction.preferred.push_back({d, std::uint16_t(u)});
    }

    void instruction() {
        --budget;
        Instruction made;
        if (chance(15)) {
            made.definitions.push_back(new_value(Class(below(classes())), chance(70)));
        } else {
            const std::vector<LiveRange> uses = pick_some(chance(5) ? 6 : 3);
            made.uses.assign(uses.begin(), uses.end());
            for (std::uint32_t n = chance(5) ? 4 : below(3); n > 0; --n)
                made.definitions.push_back(new_value(Class(below(classes()))));
            tie(made);
            made.early = !made.uses.empty() && chance(20);
        }
        show(made.definitions);
        block(here).instructions.push_back(std::move(made));
    }

    void go(FlowBlock from, FlowBlock to, std::vector<LiveRange> arguments = {}) {
        block(from).edges.push_back({to, std::move(arguments)});
    }
    void enter(FlowBlock b) {
        here = b;
        show(block(b).parameters);
    }
    void decide() { block(here).terminator_uses = {pick()}; }

    /// A branch with up to three arms that join again; some are empty (critical edges), some return.
    void branch(std::uint32_t depth) {
        decide();
        const FlowBlock fork = here, join = new_block();
        const bool with_empty_way = chance(40);
        block(join).parameters = with_empty_way ? std::vector<LiveRange>{} : new_parameters(3);
        const std::vector<LiveRange> before = visible;
        const std::uint32_t ways = 2 + chance(20);
        for (std::uint32_t way = 0; way < ways; ++way) {
            if (way == 0 && with_empty_way) {
                go(fork, join);
                continue;
            }
            const FlowBlock start = new_block();
            if (chance(30)) block(start).parameters = new_parameters(2);
            go(fork, start, pick_like(block(start).parameters));
            enter(start);
            body(depth + 1, 6);
            if (way + 1 < ways && chance(10))
                block(here).terminator_uses = pick_some(2);
            else
                go(here, join, pick_like(block(join).parameters));
            visible = before;
        }
        enter(join);
    }

    /// The arguments of the next iteration: often the parameters themselves, in another order.
    std::vector<LiveRange> next_iteration(const std::vector<LiveRange>& parameters) {
        std::vector<LiveRange> arguments = pick_like(parameters);
        for (LiveRange& v : arguments)
            if (const LiveRange other = parameters[below(std::uint32_t(parameters.size()))];
                chance(50) && class_of(other) == class_of(v))
                v = other;
        return arguments;
    }

    /// while (…) {…}: the header decides.
    void loop(std::uint32_t depth) {
        const FlowBlock header = new_block(), inside = new_block(), after = new_block();
        block(header).parameters = new_parameters(4);
        go(here, header, pick_like(block(header).parameters));
        enter(header);
        body(depth + 1, 3);
        decide();
        if (chance(40)) block(after).parameters = new_parameters(2);
        go(here, inside);
        go(here, after, pick_like(block(after).parameters));
        const std::vector<LiveRange> at_decision = visible;
        enter(inside);
        body(depth + 1, 6);
        go(here, header, next_iteration(block(header).parameters));
        visible = at_decision;
        enter(after);
    }

    /// do {…} while (…): the back edge is critical, so the header has no parameters.
    void loop_at_least_once(std::uint32_t depth) {
        const FlowBlock header = new_block(), after = new_block();
        go(here, header);
        enter(header);
        body(depth + 1, 6);
        decide();
        go(here, header);
        go(here, after);
        enter(after);
    }

    void body(std::uint32_t depth, std::uint32_t longest) {
        for (std::uint32_t left = 1 + below(longest); left > 0 && budget > 0; --left) {
            const std::uint32_t kind = below(100);
            if (depth < 4 && kind < 10 && !visible.empty())
                branch(depth);
            else if (depth < 4 && kind < 17 && !visible.empty())
                loop(depth);
            else if (depth < 4 && kind < 20 && !visible.empty())
                loop_at_least_once(depth);
            else
                instruction();
        }
    }

    void unreachable() {
        const FlowBlock dead = new_block();
        here = dead;
        block(dead).parameters = new_parameters(2);
        show(block(dead).parameters);
        for (int i = 0; i < 3; ++i) instruction();
        go(dead, dead, pick_like(block(dead).parameters));
    }

    Problem run(bool with_unreachable) {
        problem.limits.assign(1 + below(3), unlimited);
        const FlowBlock entry = new_block();
        for (std::uint32_t i = below(5); i > 0; --i)
            block(entry).parameters.push_back(new_value(Class(below(classes()))));
        enter(entry);
        while (visible.empty()) instruction();
        while (budget > 0) body(0, 30);
        block(here).terminator_uses = pick_some(3);
        if (with_unreachable) unreachable();
        return std::move(problem);
    }
};

}  // namespace

Problem random_problem(std::uint64_t seed, std::uint32_t size) {
    return Generator{.random = std::mt19937_64(seed), .budget = size}.run(has_unreachable_blocks(seed));
}

std::vector<std::uint32_t> smallest_limits(const Problem& problem) {
    std::vector<std::uint32_t> limits(problem.limits.size(), 1);
    const auto raise = [&](const auto& values, std::uint32_t extra) {
        for (std::size_t c = 0; c < limits.size(); ++c) {
            const auto in_class = [&](LiveRange v) { return problem.values[index(v)].register_class == c; };
            limits[c] = std::max(limits[c], std::uint32_t(std::ranges::count_if(values, in_class)) + extra);
        }
    };
    const auto distinct = [](std::span<const LiveRange> values) {
        return std::set<LiveRange>(values.begin(), values.end());
    };
    for (const BasicBlock& block : problem.blocks) {
        for (const Instruction& instruction : block.instructions) {
            std::set<LiveRange> tied;
            std::uint32_t again = 0;  // definitions tied to a value that another is tied to, or that is read late
            for (const Tied& pair : instruction.tied) {
                const LiveRange use = instruction.uses[pair.use];
                again += !tied.insert(use).second || reads_late(instruction, use);
            }
            raise(distinct(instruction.uses), again);
            std::set<LiveRange> written = distinct(instruction.definitions);
            for (LiveRange v : instruction.uses)
                if (reads_late(instruction, v)) written.insert(v);
            raise(written, 0);
        }
        raise(distinct(block.terminator_uses), 1);
    }
    raise(problem.blocks.front().parameters, 0);
    return limits;
}

}  // namespace ikat::regalloc::fuzz
