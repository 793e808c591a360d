// SPDX-License-Identifier: Apache-2.0
// Parallel copies: named cases, and every function [n] → [n] for n ≤ 5 compared with a simulation.
#include <algorithm>
#include <array>
#include <map>

#include "regalloc/regalloc.hpp"
#include "tests/catch.hpp"

namespace ikat::regalloc {
namespace {

constexpr Register scratch = 99;

using Moves = std::vector<Move>;

/// Runs the sequence on registers that hold their own names.
std::map<Register, Register> simulate(const Moves& moves) {
    std::map<Register, Register> holds;
    const auto read = [&](Register r) { return holds.contains(r) ? holds[r] : r; };
    for (const Move& move : moves) holds[move.to] = read(move.from);
    return holds;
}

/// Whether every destination holds its source's old value, and nothing else but the scratch register has changed.
bool is_right(const Moves& parallel, const Moves& sequence) {
    auto holds = simulate(sequence);
    for (const auto& [to, from] : parallel) {
        if (to != from && (!holds.contains(to) || holds[to] != from)) return false;
        holds.erase(to);
    }
    holds.erase(scratch);
    return holds.empty();
}

std::size_t scratch_writes(const Moves& moves) { return std::size_t(std::ranges::count(moves, scratch, &Move::to)); }

/// Cycles of at least two registers, none of which is read from outside the cycle: those that need the scratch.
std::size_t closed_cycles(const Moves& parallel) {
    std::map<Register, Register> source;
    std::map<Register, int> readers;
    for (const auto& [to, from] : parallel) {
        source[to] = from;
        if (to != from) ++readers[from];
    }
    std::size_t cycles = 0;
    for (const auto& [start, unused] : source) {
        Register at = start, lowest = start;
        bool closed = true;
        std::size_t length = 0;
        do {
            closed &= readers[at] == 1 && source.contains(at);
            if (!closed) break;
            lowest = std::min(lowest, at);
            at = source[at];
            ++length;
        } while (at != start && length <= source.size());
        cycles += closed && at == start && length > 1 && lowest == start;
    }
    return cycles;
}

void check(const Moves& parallel) {
    const Moves sequence = sequentialise(parallel, scratch);
    INFO("moves " << parallel.size() << ", sequence " << sequence.size());
    CHECK(is_right(parallel, sequence));
    const auto needed = std::ranges::count_if(parallel, [](const Move& m) { return m.to != m.from; });
    CHECK(scratch_writes(sequence) == closed_cycles(parallel));
    CHECK(sequence.size() == std::size_t(needed) + closed_cycles(parallel));
}

TEST_CASE("a parallel copy without conflict keeps its moves and drops self-moves") {
    CHECK(sequentialise(Moves{}, scratch).empty());
    CHECK(sequentialise(Moves{{3, 3}}, scratch).empty());
    CHECK(sequentialise(Moves{{1, 0}, {3, 2}}, scratch) == Moves{{1, 0}, {3, 2}});
}

TEST_CASE("a chain is moved from its end") {
    CHECK(sequentialise(Moves{{1, 0}, {2, 1}, {3, 2}}, scratch) == Moves{{3, 2}, {2, 1}, {1, 0}});
}

TEST_CASE("a swap goes through the scratch register") {
    CHECK(sequentialise(Moves{{0, 1}, {1, 0}}, scratch) == Moves{{scratch, 0}, {0, 1}, {1, scratch}});
}

TEST_CASE("two destinations of one source") { check({{1, 0}, {2, 0}}); }
TEST_CASE("a source that is a destination too") { check({{1, 0}, {2, 0}, {0, 3}}); }
TEST_CASE("a rotation") { check({{0, 1}, {1, 2}, {2, 0}}); }
TEST_CASE("two rotations share the scratch register") { check({{0, 1}, {1, 0}, {2, 3}, {3, 4}, {4, 2}}); }
TEST_CASE("a rotation and a chain") { check({{0, 1}, {1, 0}, {5, 4}, {6, 5}}); }
TEST_CASE("a chain attached to a rotation resolves it without scratch") {
    const Moves parallel{{0, 1}, {1, 0}, {2, 0}, {3, 2}};
    check(parallel);
    CHECK(scratch_writes(sequentialise(parallel, scratch)) == 0);
}
TEST_CASE("a source shared within a rotation") { check({{0, 1}, {1, 2}, {2, 0}, {5, 1}, {6, 1}}); }

TEST_CASE("every parallel copy of up to five registers") {
    for (std::size_t n = 1; n <= 5; ++n) {
        std::array<Register, 5> function{};
        std::size_t tried = 0, wrong = 0, wasteful = 0;
        for (bool more = true; more; ++tried) {
            Moves parallel;
            for (Register to = 0; to < n; ++to) parallel.push_back({to, function[to]});
            const Moves sequence = sequentialise(parallel, scratch);
            wrong += !is_right(parallel, sequence);
            wasteful += scratch_writes(sequence) != closed_cycles(parallel);
            std::size_t digit = 0;
            while (digit < n && ++function[digit] == n) function[digit++] = 0;
            more = digit < n;
        }
        const std::array<std::size_t, 6> functions{0, 1, 4, 27, 256, 3125};
        CHECK(tried == functions[n]);
        CHECK(wrong == 0);
        CHECK(wasteful == 0);
    }
}

}  // namespace
}  // namespace ikat::regalloc
