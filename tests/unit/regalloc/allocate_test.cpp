// SPDX-License-Identifier: Apache-2.0
// Small problems whose best answer is known.
#include <algorithm>

#include "regalloc/text/summary.hpp"
#include "regalloc/text/text.hpp"
#include "tests/catch.hpp"

namespace ikat::regalloc {
namespace {

struct Solved {
    Problem problem;
    Allocation answer;

    Register operator[](std::uint32_t v) const { return answer.registers[v]; }
    std::size_t edits(Edit::Kind kind) const {
        return std::size_t(std::ranges::count(answer.edits, kind, &Edit::kind));
    }
    std::size_t moves() const { return edits(Edit::Kind::Move); }
};

Solved solve(std::string_view text, const Options& options = {}) {
    Solved solved{parse_problem(text).problem, {}};
    solved.answer = allocate(solved.problem, options);
    INFO(to_string(solved.problem, solved.answer));
    CHECK(check(solved.problem, solved.answer) == std::vector<std::string>{});
    return solved;
}

TEST_CASE("a definition reuses the register of a use that dies there") {
    const Solved solved = solve(R"(classes b32
        block0(v0:b32, v1:b32):
            v2:b32 = v0, v1
            v3:b32 = v2, v0
            return v3)");
    CHECK(solved.answer.used == std::vector<std::uint32_t>{2});
    CHECK(solved.answer.edits.empty());
}

TEST_CASE("an unused definition clobbers nothing") {
    const Solved solved = solve(R"(classes b32
        block0(v0:b32):
            v1:b32, v2:b32 =
            = v0
            return v2)");
    CHECK(solved[0] != solved[1]);
    CHECK(solved[1] != solved[2]);
    CHECK(solved.answer.used == std::vector<std::uint32_t>{3});
}

TEST_CASE("classes do not share registers") {
    const Solved solved = solve(R"(classes b32 pred b64
        block0(v0:b32, v1:b64):
            v2:pred = v0
            return v0, v1, v2)");
    CHECK(solved.answer.used == std::vector<std::uint32_t>{1, 1, 1});
}

TEST_CASE("a tied definition takes over the register of a use that dies") {
    const Solved solved = solve(R"(classes b32
        block0(v0:b32, v1:b32):
            v2:b32 = v1, v0 tied v2 v0
            return v2)");
    CHECK(solved[2] == solved[0]);
    CHECK(solved.answer.edits.empty());
}

TEST_CASE("a definition takes over the register that it prefers, if the use dies") {
    const Solved solved = solve(R"(classes b32
        block0(v0:b32, v1:b32, v2:b32):
            v3:b32 = v0, v2 prefers v3 v2
            v4:b32 = v1, v3 prefers v4 v1
            return v3, v4)");
    CHECK(solved[3] == solved[2]);
    CHECK(solved[4] == solved[1]);
    CHECK(solved.answer.edits.empty());
}

TEST_CASE("a definition gets another register than it prefers, if the use lives on or a move vanishes") {
    const Solved lives_on = solve(R"(classes b32
        block0(v0:b32):
            v1:b32 = v0 prefers v1 v0
            return v0, v1)");
    CHECK(lives_on[1] != lives_on[0]);
    CHECK(lives_on.answer.edits.empty());
    const Solved loop = solve(R"(classes b32
        block0(v0:b32, v1:b32):
            goto block1(v0, v1)
        block1(v2:b32, v3:b32):
            goto block2, block3 on v2
        block2:
            v4:b32 = v2, v3 prefers v4 v2
            v5:b32 = v4
            goto block1(v5, v4)
        block3:
            return v3)");
    CHECK(loop[4] == loop[3]);
    CHECK(loop.answer.edits.empty());
}

TEST_CASE("a tied use that lives on is copied first") {
    const Solved solved = solve(R"(classes b32
        block0(v0:b32, v1:b32):
            v2:b32 = v1, v0 tied v2 v0
            return v2, v0)");
    CHECK(solved[2] != solved[0]);
    REQUIRE(solved.answer.edits.size() == 1);
    CHECK(solved.answer.edits[0].before == 0);
    CHECK(solved.answer.edits[0].from == solved[0]);
    CHECK(solved.answer.edits[0].to == solved[2]);
    CHECK(solved.answer.max_live == std::vector<std::uint32_t>{3});
}

TEST_CASE("two definitions tied to one value get one copy") {
    const Solved solved = solve(R"(classes b32
        block0(v0:b32):
            v1:b32, v2:b32 = v0 tied v1 v0, v2 v0
            return v1, v2)");
    CHECK(solved.moves() == 1);
    CHECK(solved.answer.used == std::vector<std::uint32_t>{2});
}

// A wgmma loop: four loop-carried accumulators, each updated in place. There must be no move in the loop or before it.
constexpr std::string_view accumulators = R"(classes b32
    block0(v0:b32):
        v1:b32, v2:b32, v3:b32, v4:b32 =
        goto block1(v0, v1, v2, v3, v4)
    block1(v5:b32, v6:b32, v7:b32, v8:b32, v9:b32):
        v10:b32 = v5
        v11:b32, v12:b32, v13:b32, v14:b32 = v10, v6, v7, v8, v9 tied v11 v6, v12 v7, v13 v8, v14 v9
        v15:b32, v16:b32, v17:b32, v18:b32 = v10, v11, v12, v13, v14 tied v15 v11, v16 v12, v17 v13, v18 v14
        v19:b32 = v10
        goto block2, block3 on v19
    block2:
        goto block1(v10, v15, v16, v17, v18)
    block3:
        return v15, v16, v17, v18)";

TEST_CASE("accumulators stay in their registers around a loop") {
    const Solved solved = solve(accumulators);
    CHECK(solved.moves() == 0);
    for (std::uint32_t i = 0; i < 4; ++i) CHECK(solved[6 + i] == solved[15 + i]);
    CHECK(solved.answer.used == solved.answer.max_live);
}

TEST_CASE("a loop counter stays in its register although other values come first") {
    const Solved solved = solve(R"(classes b32
        block0(v0:b32, v1:b32):
            goto block1(v0)
        block1(v2:b32):
            v3:b32 = v2
            v4:b32 = v3, v1
            v5:b32 = v3, v4
            goto block2, block3 on v5
        block2:
            goto block1(v5)
        block3:
            return v4)");
    CHECK(solved.moves() == 0);
}

TEST_CASE("swapped loop arguments need one more register if none is free") {
    const Solved solved = solve(R"(classes b32 pred
        block0(v0:b32, v1:b32):
            goto block1(v0, v1)
        block1(v2:b32, v3:b32):
            v4:pred = v2
            goto block2, block3 on v4
        block2:
            goto block1(v3, v2)
        block3:
            return v2, v3)");
    CHECK(solved.answer.max_live == std::vector<std::uint32_t>{2, 1});
    CHECK(solved.answer.used == std::vector<std::uint32_t>{3, 1});
    CHECK(solved.moves() == 3);
}

TEST_CASE("the moves of a branch edge are at the start of its target block") {
    const Solved solved = solve(R"(classes b32
        block0(v0:b32):
            goto block1(v0), block2(v0) on v0
        block1(v1:b32):
            return v1, v0
        block2(v2:b32):
            return v2)");
    CHECK(solved[1] != solved[0]);
    CHECK(solved[2] == solved[0]);
    REQUIRE(solved.answer.edits.size() == 1);
    CHECK(solved.answer.edits[0].block == FlowBlock{1});
    CHECK(solved.answer.edits[0].before == 0);
}

TEST_CASE("unreachable blocks get registers and nothing else") {
    constexpr std::string_view text = R"(classes b32
        block0:
            return
        block1(v0:b32):
            v1:b32, v2:b32 = v0, v3
            goto block1(v2)
        block2:
            v3:b32 =
            goto block0)";
    for (const Method method : {Method::Colouring, Method::Simplest}) {
        const Solved solved = solve(text, {.method = method});
        CHECK(solved[1] != solved[2]);
        CHECK(solved.answer.edits.empty());
        CHECK(std::ranges::count(solved.answer.registers, no_register) == 0);
    }
}

TEST_CASE("the simplest method numbers values as they are defined") {
    const Solved solved = solve(R"(classes b32 pred
        block0(v7:b32, v0:b32):
            v3:b32, v1:pred = v7
            v2:b32 = v3, v0
            v4:b32 = v2 tied v4 v2
            v5:b32 = v4
            goto block1(v5)
        block1(v6:b32):
            return v6, v1)",
                                {.method = Method::Simplest});
    CHECK(solved.answer.registers == std::vector<Register>{1, 0, 3, 2, 3, 4, 5, 0});
    CHECK(solved.answer.used == std::vector<std::uint32_t>{6, 1});
    CHECK(solved.moves() == 1);
}

TEST_CASE("pressure counts copies, parameters and unused values") {
    const auto table = pressure(parse_problem(R"(classes b32
        block0(v0:b32, v1:b32):
            v2:b32 = v0 tied v2 v0
            v3:b32, v4:b32 = v2
            return v0)")
                                    .problem);
    REQUIRE(table.size() == 1);
    const std::vector<std::vector<std::uint32_t>> expected{{2}, {2}, {3}};
    CHECK(table[0] == expected);
}

TEST_CASE("the summary names the place of the highest pressure") {
    const Solved solved = solve(R"(classes b32 pred
        block0(v0:b32):
            v1:pred = v0
            goto block1, block2 on v1
        block1:
            v2:b32, v3:b32 =
            return v2, v3, v0
        block2:
            return v0)");
    const std::vector<ClassSummary> summary = summary_of(solved.problem, solved.answer);
    REQUIRE(summary.size() == 2);
    CHECK(summary[0].registers == 3);
    CHECK(summary[0].max_live == 3);
    CHECK(summary[0].block == FlowBlock{1});
    CHECK(summary[0].before == 1);
    CHECK(summary[1].block == FlowBlock{0});
    CHECK(summary[1].before == 1);
}

TEST_CASE("an empty function") {
    const Solved solved = solve("classes b32\nblock0:\n    return");
    CHECK(solved.answer.used == std::vector<std::uint32_t>{0});
    CHECK(allocate({.values = {}, .blocks = {{}}, .limits = {}}).used.empty());
}

}  // namespace
}  // namespace ikat::regalloc
