// SPDX-License-Identifier: Apache-2.0
// Random problems through every allocation method, each answer through the checker and through execution; then answers
// with one change, to see that the checker rejects whatever execution finds wrong.
//
// IKAT_FUZZ_SEED sets the first seed, IKAT_FUZZ_COUNT the number of problems.
#include <algorithm>
#include <array>
#include <random>
#include <ranges>

#include "regalloc/stages.hpp"
#include "regalloc/text/text.hpp"
#include "tests/catch.hpp"
#include "tests/fuzz/regalloc/executor.hpp"
#include "tests/fuzz/regalloc/random_problem.hpp"
#include "tests/fuzz/seeds.hpp"

namespace ikat::regalloc::fuzz {
namespace {

const std::uint64_t first_seed = test::first_seed(1), problem_count = test::seed_count(400);

std::uint32_t size_of(std::uint64_t seed) { return 1 + std::uint32_t(seed * 7919 % 120); }

/// Checks everything that must hold for a right answer; false stops the test, after reporting what and where.
bool is_right(const Problem& problem, const Allocation& answer, std::uint64_t seed) {
    std::string complaints;
    for (const std::string& each : check(problem, answer)) complaints += each + '\n';
    for (std::uint64_t run = 0; run < 3; ++run) complaints += execute(problem, answer, seed + run, 60);
    INFO("seed " << seed << '\n' << to_string(problem) << '\n' << to_string(problem, answer));
    CHECK(complaints == "");
    return complaints.empty();
}

bool has_cycle(const Allocation& answer, Class c) {
    return std::ranges::any_of(answer.edits, [&](const Edit& e) {
        return e.register_class == c && e.kind == Edit::Kind::Move && e.to == answer.max_live[c];
    });
}

TEST_CASE("colouring is right and uses as many registers as are live at once") {
    WARN("seeds from " << first_seed << ", " << problem_count << " problems");
    for (std::uint64_t seed = first_seed; seed < first_seed + problem_count; ++seed) {
        const Problem problem = random_problem(seed, size_of(seed));
        const Allocation answer = allocate(problem);
        if (!is_right(problem, answer, seed)) return;
        if (has_unreachable_blocks(seed)) continue;
        for (std::size_t c = 0; c < answer.used.size(); ++c) {
            INFO("seed " << seed << ", class " << c);
            REQUIRE(answer.used[c] == answer.max_live[c] + has_cycle(answer, Class(c)));
        }
        REQUIRE(answer.stack_slots == 0);
        REQUIRE(answer.reassigned.empty());
    }
}

TEST_CASE("a value is live wherever a later use will find it") {
    for (std::uint64_t seed = first_seed; seed < first_seed + problem_count / 4; ++seed) {
        const Problem problem = random_problem(seed, size_of(seed));
        const std::vector<LiveSet> live = allocate(problem).live_in;
        for (const FlowBlock b : flow_of(problem).order) {
            const BasicBlock& block = problem.blocks[index(b)];
            Bitset expected(problem.values.size());  // backwards from the block's end
            const auto use = [&](const auto& values) {
                for (LiveRange v : values) expected.set(index(v));
            };
            for (const Edge& edge : block.edges) use(live[index(edge.to)]), use(edge.arguments);
            use(block.terminator_uses);
            for (const Instruction& instruction : block.instructions | std::views::reverse) {
                for (LiveRange v : instruction.definitions) expected.reset(index(v));
                use(instruction.uses);
            }
            for (LiveRange v : block.parameters) expected.reset(index(v));
            INFO("seed " << seed << ", block" << index(b) << '\n' << to_string(problem));
            std::vector<LiveRange> expected_values;
            expected.each([&](std::size_t v) { expected_values.push_back(LiveRange(v)); });
            REQUIRE(std::ranges::equal(live[index(b)], expected_values));
        }
        REQUIRE(live[0].begin() == live[0].end());
    }
}

TEST_CASE("interfering values do not share a register, whatever the method") {
    for (std::uint64_t seed = first_seed; seed < first_seed + problem_count / 4; ++seed) {
        const Problem problem = random_problem(seed, size_of(seed));
        const Liveness liveness = liveness_of(problem, flow_of(problem));
        for (const Method method : {Method::Colouring, Method::Simplest}) {
            const std::vector<Register> registers = allocate(problem, {.method = method}).registers;
            for (std::uint32_t a = 0; a < registers.size(); ++a)
                for (std::uint32_t b = 0; b < a; ++b) {
                    if (problem.values[a].register_class != problem.values[b].register_class) continue;
                    if (registers[a] != registers[b] || !liveness.interfere(LiveRange{a}, LiveRange{b})) continue;
                    FAIL("seed " << seed << ": v" << a << " and v" << b << '\n' << to_string(problem));
                }
        }
    }
}

TEST_CASE("the simplest method is right") {
    for (std::uint64_t seed = first_seed; seed < first_seed + problem_count; ++seed) {
        const Problem problem = random_problem(seed, size_of(seed));
        if (!is_right(problem, allocate(problem, {.method = Method::Simplest}), seed)) return;
    }
}

TEST_CASE("spilling is right and obeys limits") {
    for (std::uint64_t seed = first_seed; seed < first_seed + problem_count; ++seed) {
        Problem problem = random_problem(seed, size_of(seed));
        const std::vector<std::uint32_t> live = allocate(problem).max_live, smallest = smallest_limits(problem);
        std::mt19937_64 random(seed);
        for (std::size_t c = 0; c < live.size(); ++c)
            problem.limits[c] =
                smallest[c] + std::uint32_t(random() % (std::max(live[c], smallest[c]) - smallest[c] + 1)) / 2;
        const Allocation answer = allocate(problem, {.spill = true});
        if (!is_right(problem, answer, seed)) return;
        if (has_unreachable_blocks(seed)) continue;
        INFO("seed " << seed << '\n' << to_string(problem) << '\n' << to_string(problem, answer));
        for (std::size_t c = 0; c < live.size(); ++c) REQUIRE(answer.used[c] <= problem.limits[c]);
        REQUIRE(answer.max_live == live);
    }
}

TEST_CASE("limits that cannot be met are exceeded, without wrong answers") {
    for (std::uint64_t seed = first_seed; seed < first_seed + problem_count / 4; ++seed) {
        Problem problem = random_problem(seed, size_of(seed));
        const std::vector<std::uint32_t> smallest = smallest_limits(problem);
        problem.limits.assign(problem.limits.size(), 0);
        const Allocation answer = allocate(problem, {.spill = true});
        if (!is_right(problem, answer, seed)) return;
        if (has_unreachable_blocks(seed)) continue;
        for (std::size_t c = 0; c < smallest.size(); ++c) REQUIRE(answer.used[c] <= smallest[c] + 1);
    }
}

TEST_CASE("the problems exercise everything the allocator can do") {
    std::array<std::size_t, 4> edits{};
    std::size_t reassigned = 0, tied_copies = 0, moves_at_start = 0;
    for (std::uint64_t seed = first_seed; seed < first_seed + problem_count; ++seed) {
        Problem problem = random_problem(seed, size_of(seed));
        problem.limits = smallest_limits(problem);
        const Allocation answer = allocate(problem, {.spill = true});
        reassigned += answer.reassigned.size();
        for (const Edit& edit : answer.edits) {
            ++edits[std::size_t(edit.kind)];
            const BasicBlock& block = problem.blocks[index(edit.block)];
            if (edit.kind != Edit::Kind::Move || edit.before == block.instructions.size()) continue;
            if (!block.instructions[edit.before].tied.empty())
                ++tied_copies;
            else
                ++moves_at_start;
        }
    }
    WARN(edits[0] << " moves, " << edits[1] << " spills, " << edits[2] << " reloads, " << edits[3]
                  << " computed again, " << reassigned << " reassigned uses, " << tied_copies
                  << " copies of tied uses, " << moves_at_start << " moves at the start of a block");
    for (std::size_t count : edits) CHECK(count > problem_count / 10);
    CHECK(reassigned > problem_count / 10);
    CHECK(tied_copies > problem_count / 100);
    CHECK(moves_at_start > problem_count / 100);
}

TEST_CASE("the answer is the same each time") {
    for (std::uint64_t seed = first_seed; seed < first_seed + 20; ++seed) {
        Problem problem = random_problem(seed, 200);
        problem.limits.assign(problem.limits.size(), 6);
        for (const bool spill : {false, true})
            CHECK(to_string(problem, allocate(problem, {.spill = spill})) ==
                  to_string(problem, allocate(problem, {.spill = spill})));
    }
}

struct Mutator {
    std::mt19937_64 random;
    const Problem& problem;
    Allocation answer;

    std::uint32_t below(std::size_t n) { return std::uint32_t(random() % n); }
    Register any_register(std::size_t c) { return below(answer.used[c]); }

    void change_edit(Edit& e) {
        const Register r = any_register(e.register_class);
        switch (below(4)) {
            case 0: (e.to != no_register ? e.to : e.from) = r; return;
            case 1: (e.from != no_register ? e.from : e.to) = r; return;
            case 2:
                if (answer.stack_slots > 0) e.slot = below(answer.stack_slots);
                return;
            default: answer.edits.erase(answer.edits.begin() + (&e - answer.edits.data())); return;
        }
    }

    void swap_neighbours(std::size_t i) {
        if (i + 1 >= answer.edits.size()) return;
        Edit &a = answer.edits[i], &b = answer.edits[i + 1];
        if (a.block == b.block && a.before == b.before) std::swap(a, b);
    }

    /// Changes one thing at random; ids stay in range.
    void run() {
        const std::uint32_t what = below(10);
        if (what < 3 || answer.edits.empty()) {
            const std::uint32_t v = below(problem.values.size());
            if (answer.registers[v] != no_register)
                answer.registers[v] = any_register(problem.values[v].register_class);
        } else if (what < 7) {
            change_edit(answer.edits[below(answer.edits.size())]);
        } else if (what < 8 || answer.reassigned.empty()) {
            swap_neighbours(below(answer.edits.size()));
        } else {
            const std::size_t i = below(answer.reassigned.size());
            if (below(2) == 0)
                answer.reassigned.erase(answer.reassigned.begin() + std::ptrdiff_t(i));
            else
                answer.reassigned[i].to = answer.reassigned[below(answer.reassigned.size())].to;
        }
    }
};

bool in_range(const Problem& problem, const Allocation& answer) {
    return std::ranges::all_of(answer.reassigned, [&](const Reassigned& r) {
        const BasicBlock& block = problem.blocks[index(r.block)];
        const bool ends = r.instruction >= block.instructions.size();
        const std::span<const LiveRange> uses =
            ends ? std::span(block.terminator_uses) : block.instructions[r.instruction].uses;
        return r.to < answer.used[problem.values[index(uses[r.use])].register_class];
    });
}

TEST_CASE("the checker rejects every answer that execution finds wrong") {
    std::size_t mutants = 0, wrong = 0, objected = 0;
    for (std::uint64_t seed = first_seed; seed < first_seed + problem_count; ++seed) {
        Problem problem = random_problem(seed, size_of(seed) / 2 + 4);
        problem.limits = smallest_limits(problem);
        const Options options{.method = seed % 4 == 0 ? Method::Simplest : Method::Colouring, .spill = seed % 2 == 1};
        const Allocation right = allocate(problem, options);
        for (std::uint64_t attempt = 0; attempt < 8; ++attempt) {
            Mutator mutator{std::mt19937_64(seed * 100 + attempt), problem, right};
            mutator.run();
            const Allocation& answer = mutator.answer;
            if (!in_range(problem, answer)) continue;
            std::string mismatch;
            for (std::uint64_t run = 0; run < 6 && mismatch.empty(); ++run)
                mismatch = execute(problem, answer, seed + run, 40);
            const bool objects = !check(problem, answer).empty();
            ++mutants, wrong += !mismatch.empty(), objected += objects;
            INFO("seed " << seed << ", mutant " << attempt << ": " << mismatch << '\n' << to_string(problem, answer));
            REQUIRE((objects || mismatch.empty()));
        }
    }
    WARN(mutants << " mutants, " << wrong << " wrong when executed, " << objected << " objected to");
    CHECK(wrong > mutants / 10);
}

}  // namespace
}  // namespace ikat::regalloc::fuzz
