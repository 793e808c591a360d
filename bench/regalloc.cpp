// SPDX-License-Identifier: Apache-2.0
// The time of the register allocator, in microseconds: the best of several rounds.
//
//     bench_regalloc
//
// Three shapes: a kernel of the size of saxpy; 3 000 values in 200 blocks of loops and branches; the main loop of a
// matrix product, 64 accumulators and 1 024 products in one block.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "regalloc/regalloc.hpp"

namespace {

using namespace ikat;
using namespace ikat::regalloc;

struct Maker {
    Problem problem{.values = {}, .blocks = std::vector<BasicBlock>(1), .limits = {}};
    std::uint32_t state = 1;

    BasicBlock& here() { return problem.blocks.back(); }
    FlowBlock next() const { return FlowBlock(problem.blocks.size()); }
    void start_block() { problem.blocks.emplace_back(); }
    LiveRange value(Class c = 0) {
        problem.values.push_back({c});
        return LiveRange(problem.values.size() - 1);
    }
    std::uint32_t below(std::uint32_t n) { return (state = state * 1664525 + 1013904223) / 256 % n; }

    LiveRange define(InlineVector<LiveRange, 4> uses, Class c = 0) {
        const LiveRange v = value(c);
        here().instructions.push_back({std::move(uses), {v}});
        return v;
    }
    void branch(LiveRange condition, std::vector<Edge> edges) {
        here().terminator_uses = {condition};
        here().edges = std::move(edges);
    }
};

/// A grid-stride loop: index, bound, two loads, a product, a store.
Problem saxpy() {
    Maker made;
    const LiveRange x = made.define({}, 1), y = made.define({}, 1), a = made.define({}), n = made.define({});
    const LiveRange stride = made.define({}), first = made.define({stride});
    made.here().edges = {{made.next(), {first}}};
    made.start_block();
    const LiveRange i = made.value();
    made.here().parameters = {i};
    made.branch(made.define({i, n}, 2), {{FlowBlock{2}, {}}, {FlowBlock{3}, {}}});
    made.start_block();
    const LiveRange at_x = made.define({x, i}, 1), at_y = made.define({y, i}, 1);
    const LiveRange product = made.define({a, made.define({at_x}), made.define({at_y})});
    made.here().instructions.push_back({{at_y, product}, {}});
    made.here().edges = {{FlowBlock{1}, {made.define({i, stride})}}};
    made.start_block();
    return made.problem;
}

/// A sequence of loops with a branch in each; `width` values are live throughout.
Problem loops(std::uint32_t count, std::uint32_t length, std::uint32_t width) {
    Maker made;
    std::vector<LiveRange> live;
    for (std::uint32_t i = 0; i < width; ++i) live.push_back(made.define({}));
    const auto any = [&] { return live[made.below(width)]; };
    const auto work = [&] {
        for (std::uint32_t i = 0; i < length; ++i) live[made.below(width)] = made.define({any(), any()});
    };
    for (std::uint32_t loop = 0; loop < count; ++loop) {
        const FlowBlock header = made.next();
        made.here().edges = {{header, {live[0], live[1]}}};
        made.start_block();
        live[0] = made.value(), live[1] = made.value();
        made.here().parameters = {live[0], live[1]};
        work();
        const std::vector<LiveRange> before = live;
        const FlowBlock left = made.next(), right{index(left) + 1}, join{index(left) + 2}, after{index(left) + 4};
        made.branch(made.define({any()}, 2), {{left, {}}, {right, {}}});
        std::vector<LiveRange> joined;
        for (int way = 0; way < 2; ++way) {
            made.start_block();
            live = before;
            work();
            made.here().edges = {{join, {live[2], live[3]}}};
        }
        made.start_block();
        live = before;
        live[2] = made.value(), live[3] = made.value();
        made.here().parameters = {live[2], live[3]};
        made.branch(made.define({any()}, 2), {{FlowBlock{index(join) + 1}, {}}, {after, {}}});
        made.start_block();
        made.here().edges = {{header, {made.define({live[0]}), live[2]}}};
        made.start_block();
    }
    made.here().terminator_uses = live;
    return made.problem;
}

Problem matrix_product(std::uint32_t side, std::uint32_t depth) {
    Maker made;
    std::vector<LiveRange> sums, zeros;
    const LiveRange tile = made.define({});
    for (std::uint32_t i = 0; i < side * side; ++i) zeros.push_back(made.define({}));
    made.here().edges = {{made.next(), zeros}};
    made.start_block();
    for (std::uint32_t i = 0; i < side * side; ++i) sums.push_back(made.value());
    made.here().parameters = sums;
    for (std::uint32_t k = 0; k < depth; ++k) {
        std::vector<LiveRange> a, b;
        for (std::uint32_t i = 0; i < side; ++i) a.push_back(made.define({tile})), b.push_back(made.define({tile}));
        for (std::uint32_t i = 0; i < side * side; ++i) sums[i] = made.define({a[i / side], b[i % side], sums[i]});
    }
    made.branch(made.define({tile}, 2), {{FlowBlock{2}, {}}, {FlowBlock{3}, {}}});
    made.start_block();
    made.here().edges = {{FlowBlock{1}, sums}};
    made.start_block();
    made.here().terminator_uses = sums;
    return made.problem;
}

double best_microseconds(auto&& work) {
    double best = 1e9;
    for (int round = 0; round < 30; ++round) {
        const auto start = std::chrono::steady_clock::now();
        work();
        best =
            std::min(best, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    }
    return best;
}

void measure(const char* name, Problem problem) {
    const Allocation answer = allocate(problem);
    const double colouring = best_microseconds([&] { (void)allocate(problem); });
    const double simplest = best_microseconds([&] { (void)allocate(problem, {.method = Method::Simplest}); });
    const double proof = best_microseconds([&] { (void)check(problem, answer); });
    for (std::uint32_t live : answer.max_live) problem.limits.push_back(std::max(8u, live * 2 / 3));
    const double spilling = best_microseconds([&] { (void)allocate(problem, {.spill = true}); });
    std::printf("%-15s %6zu %6zu %6u %6zu %11.1f %11.1f %11.1f %11.1f\n", name, problem.values.size(),
                problem.blocks.size(), answer.used[0], answer.edits.size(), colouring, simplest, spilling, proof);
}

}  // namespace

int main() {
    std::printf("%-15s %6s %6s %6s %6s %11s %11s %11s %11s\n", "", "values", "blocks", "used", "moves", "colouring",
                "simplest", "spilling", "check [us]");
    measure("saxpy", saxpy());
    measure("loops", loops(33, 28, 40));
    measure("matrix product", matrix_product(8, 16));
}
