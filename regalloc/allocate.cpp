// SPDX-License-Identifier: Apache-2.0
// The allocator: its stages in order.
#include <algorithm>
#include <utility>

#include "regalloc/stages.hpp"

namespace ikat::regalloc {
namespace {

/// The registers that insert_moves may use: any number if spilling is off.
std::vector<std::uint32_t> limits_of(const Problem& problem, const Options& options) {
    if (options.spill && options.method == Method::Colouring) return problem.limits;
    return {};
}

Allocation allocate_registers(const Problem& problem, const Flow& flow, const Liveness& liveness,
                              const Options& options) {
    Allocation answer;
    answer.max_live = max_live(problem, flow, liveness);
    answer.registers = options.method == Method::Simplest ? simplest(problem, flow, liveness)
                                                          : colour(problem, flow, liveness, answer.max_live);
    insert_moves(problem, flow, liveness, limits_of(problem, options), answer);
    return answer;
}

Allocation allocate_with_spills(const Problem& problem, const Flow& flow, const Liveness& liveness,
                                const Bitset& chosen, const Options& options) {
    const Spilled spilled = spill(problem, flow, liveness, chosen);
    const Liveness pieces = liveness_of(spilled.problem, flow);
    Allocation answer = translate(problem, spilled, allocate_registers(spilled.problem, flow, pieces, options));
    answer.max_live = max_live(problem, flow, liveness);
    return answer;
}

}  // namespace

Allocation allocate(const Problem& problem, const Options& options) {
    const Flow flow = flow_of(problem);
    validate(problem, flow);
    Liveness liveness = liveness_of(problem, flow);
    const bool spills = options.spill && options.method == Method::Colouring;
    const Bitset chosen = spills ? choose_spilled(problem, flow, liveness) : Bitset();
    Allocation answer = chosen.count() > 0 ? allocate_with_spills(problem, flow, liveness, chosen, options)
                                           : allocate_registers(problem, flow, liveness, options);
    answer.live_in = std::move(liveness.in);
    return answer;
}

}  // namespace ikat::regalloc
