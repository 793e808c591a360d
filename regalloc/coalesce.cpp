// SPDX-License-Identifier: Apache-2.0
// Coalescing by preference.
// A move on an edge vanishes if argument and parameter have the same register. We do not merge live ranges to achieve
// this (a merged range may need more registers than its parts); we only choose, among the registers that are free
// anyway, the one that saves most moves. The number of registers stays minimal.
//
//     b1(p):                   p is coloured first, r0; from now on y waits for r0
//       x = f(p)               p dies, r0 is free. x is dead when y is defined: r0 is fine
//       z = f(x)               z is not: it avoids y's register, r1
//       y = g(x)               y is an argument for p: r0 wins the vote
//       goto b1(y), z          no move
// Values in tied pairs must share a register; they vote as one, under the name of the first (the leader). A pair that
// interferes can never share and does not vote. A pair is weighted by how often its move would run: ten times more for
// each enclosing loop.
// 1. votes: each partner of v that has a register votes for it. One that has none votes, with a quarter of its weight,
// for the register of another of its own partners.
//   2. else the register that the instruction prefers, if it is free.
// 3. else the lowest free register that others wait for, if v is dead when they are defined: this leaves the other
// registers to values that would be in the way.
//   4. else the lowest free register that no value waits for.
//   5. else the lowest free register: there is one, because no point needs more than the pool has.
#include "regalloc/coalesce.hpp"

#include <algorithm>

#include "codegen/support/diagnostic.hpp"

namespace ikat::regalloc {
namespace {

/// The weight of a move at a block. A multiple of four, because a hint counts a quarter.
std::uint32_t weight_at(const Flow& flow, FlowBlock b) {
    std::uint32_t weight = 4;
    for (std::uint32_t depth = std::min(4u, flow.depth[index(b)]); depth > 0; --depth) weight *= 10;
    return weight;
}

}  // namespace

std::vector<LiveRange> tied_leaders(const Problem& problem, const Flow& flow, const Liveness& liveness) {
    const auto all = ids<LiveRange>(problem.values.size());
    std::vector<LiveRange> leaders(all.begin(), all.end());
    for (FlowBlock b : flow.order) {
        const auto& instructions = problem.blocks[index(b)].instructions;
        for (std::size_t i = 0; i < instructions.size(); ++i) {
            const Instruction& instruction = instructions[i];
            const auto copied = liveness.copied(b, i);
            for (std::size_t t = 0; t < copied.size(); ++t)
                if (const auto [definition, use] = instruction.tied[t]; !copied[t])
                    leaders[index(instruction.definitions[definition])] = leaders[index(instruction.uses[use])];
        }
    }
    return leaders;
}

std::vector<Pair> pairs_of(const Problem& problem, const Flow& flow, const Liveness& liveness,
                           const std::vector<LiveRange>& leaders) {
    std::vector<Pair> pairs;
    for (FlowBlock b : flow.order) {
        const auto& edges = problem.blocks[index(b)].edges;
        for (const Edge& edge : edges) {
            const auto& parameters = problem.blocks[index(edge.to)].parameters;
            const std::uint32_t weight = weight_at(flow, edges.size() == 1 ? b : edge.to);
            for (std::size_t i = 0; i < parameters.size(); ++i) {
                const LiveRange argument = leaders[index(edge.arguments[i])], parameter = leaders[index(parameters[i])];
                if (argument == parameter || liveness.interfere(argument, parameter) ||
                    liveness.interfere(edge.arguments[i], parameters[i]))
                    continue;
                pairs.push_back({argument, parameter, weight});
            }
        }
    }
    return pairs;
}

Preferences::Preferences(const Problem& problem, const Liveness& liveness, const std::vector<Pair>& pairs,
                         std::vector<RegisterPool>& pools)
    : problem_(problem),
      liveness_(liveness),
      pools_(pools),
      chosen_(problem.values.size(), no_register),
      hints_(problem.values.size(), no_register) {
    index_pairs(pairs);
    std::uint32_t widest = 0;
    for (const RegisterPool& pool : pools) {
        waiting_.emplace_back(pool.size());
        widest = std::max(widest, pool.size());
    }
    votes_.resize(widest);
}

void Preferences::index_pairs(const std::vector<Pair>& pairs) {
    first_.assign(problem_.values.size() + 1, 0);
    for (const Pair& pair : pairs) ++first_[index(pair.argument) + 1], ++first_[index(pair.parameter) + 1];
    for (std::size_t v = 0; v + 1 < first_.size(); ++v) first_[v + 1] += first_[v];
    affinities_.resize(first_.back());
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (const auto [argument, parameter, weight] : pairs) {
        affinities_[next[index(argument)]++] = {parameter, weight};
        affinities_[next[index(parameter)]++] = {argument, weight};
    }
}

void Preferences::vote(Register r, std::uint32_t weight) {
    if (votes_[r] == 0) candidates_.push_back(r);
    votes_[r] += weight;
}

/// The free register with most votes, the lowest if tied; no_register if no free one has a vote.
Register Preferences::most_wanted(LiveRange v) {
    for (const auto [other, weight] : affinities(v)) {
        if (chosen_[index(other)] != no_register)
            vote(chosen_[index(other)], weight);
        else if (hints_[index(other)] != no_register)
            vote(hints_[index(other)], weight / 4);
    }
    const RegisterPool& pool = pools_[problem_.values[index(v)].register_class];
    Register best = no_register;
    std::uint32_t max_votes = 0;
    for (Register r : candidates_) {
        if (pool.is_free(r) && (votes_[r] > max_votes || (votes_[r] == max_votes && r < best)))
            best = r, max_votes = votes_[r];
        votes_[r] = 0;
    }
    candidates_.clear();
    return best;
}

Register Preferences::out_of_the_way(LiveRange v) const {
    const Class c = problem_.values[index(v)].register_class;
    const auto disturbs_nobody = [&](Register r) {
        return std::ranges::none_of(waiting_[c][r], [&](LiveRange other) { return liveness_.interfere(v, other); });
    };
    if (const Register r = pools_[c].lowest_reserved(disturbs_nobody); r != no_register) return r;
    if (const Register r = pools_[c].lowest_unreserved(); r != no_register) return r;
    return pools_[c].lowest_reserved([](Register) { return true; });
}

void Preferences::remember(LiveRange v, Register chosen) {
    const Class c = problem_.values[index(v)].register_class;
    chosen_[index(v)] = chosen;
    for (const Affinity& affinity : affinities(v)) {
        const std::uint32_t other = index(affinity.other);
        if (const Register r = chosen_[other]; r != no_register) {
            std::vector<LiveRange>& waiting = waiting_[c][r];
            if (const auto found = std::ranges::find(waiting, v); found != waiting.end()) waiting.erase(found);
            pools_[c].reserve(r, !waiting.empty());
        } else {
            if (hints_[other] == no_register) hints_[other] = chosen;
            waiting_[c][chosen].push_back(affinity.other);
            pools_[c].reserve(chosen, true);
        }
    }
}

Register Preferences::choose(LiveRange v, Register preferred) {
    Register r = most_wanted(v);
    const RegisterPool& pool = pools_[problem_.values[index(v)].register_class];
    if (r == no_register && preferred != no_register && pool.is_free(preferred)) r = preferred;
    if (r == no_register) r = out_of_the_way(v);
    IKAT_ASSERT(r != no_register, "no register is free for v" + std::to_string(index(v)));
    remember(v, r);
    return r;
}

}  // namespace ikat::regalloc
