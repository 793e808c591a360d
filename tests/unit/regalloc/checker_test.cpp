// SPDX-License-Identifier: Apache-2.0
// What the checker rejects: one wrong answer per rule, each a right answer with one change.
#include "regalloc/text/text.hpp"
#include "tests/catch.hpp"

namespace ikat::regalloc {
namespace {

using tests::contains;

struct Mutant {
    Problem problem;
    Allocation answer;

    explicit Mutant(std::string_view text, const Options& options = {})
        : problem(parse_problem(text).problem), answer(allocate(problem, options)) {
        REQUIRE(check(problem, answer).empty());
    }
    std::string complaint() const {
        std::string all;
        for (const std::string& each : check(problem, answer)) all += each + '\n';
        return all;
    }
};

constexpr std::string_view straight = R"(classes b32
    block0(v0:b32, v1:b32):
        v2:b32 = v0, v1
        v3:b32 = v2, v0
        return v3)";

constexpr std::string_view swap_loop = R"(classes b32 pred
    block0(v0:b32, v1:b32):
        goto block1(v0, v1)
    block1(v2:b32, v3:b32):
        v4:pred = v2
        goto block2, block3 on v4
    block2:
        goto block1(v3, v2)
    block3:
        return v2, v3)";

TEST_CASE("checker: a definition that overwrites a value still needed") {
    Mutant mutant(straight);
    mutant.answer.registers[2] = mutant.answer.registers[0];
    CHECK_THAT(mutant.complaint(), contains("block0, place 1: use 1 wants v0 but finds v2"));
}

TEST_CASE("checker: two definitions of one instruction in one register") {
    Mutant mutant("classes b32\nblock0:\n v0:b32, v1:b32 =\n return");
    mutant.answer.registers[1] = mutant.answer.registers[0];
    CHECK_THAT(mutant.complaint(), contains("v0 and v1 are written to one register"));
}

TEST_CASE("checker: a definition that is written before a use is read from there") {
    Mutant mutant("classes b32\nblock0(v0:b32):\n v1:b32 = v0 early\n return v1");
    CHECK(mutant.answer.registers[0] != mutant.answer.registers[1]);
    mutant.answer.registers[1] = mutant.answer.registers[0];
    CHECK_THAT(mutant.complaint(), contains("v1 is written before v0 is read from there"));
}

TEST_CASE("checker: two parameters of the entry in one register") {
    Mutant mutant(straight);
    mutant.answer.registers[1] = mutant.answer.registers[0];
    CHECK_THAT(mutant.complaint(), contains("on entry: v0 and v1 are written to one register"));
}

TEST_CASE("checker: a missing move, and moves in the wrong order") {
    Mutant mutant(swap_loop);
    REQUIRE(mutant.answer.edits.size() == 3);
    const std::vector<Edit> edits = mutant.answer.edits;
    for (std::size_t i = 0; i < edits.size(); ++i) {
        mutant.answer.edits = edits;
        mutant.answer.edits.erase(mutant.answer.edits.begin() + std::ptrdiff_t(i));
        CHECK_FALSE(mutant.complaint().empty());
    }
    mutant.answer.edits = edits;
    std::swap(mutant.answer.edits[0], mutant.answer.edits[1]);
    CHECK_THAT(mutant.complaint(), contains("block3, place 0: use"));
}

TEST_CASE("checker: a value that is available on only one path") {
    Mutant mutant(R"(classes b32
        block0(v0:b32):
            goto block1, block2 on v0
        block1:
            v1:b32 = v0
            goto block3(v1)
        block2:
            v2:b32 =
            v3:b32 = v2
            goto block3(v3)
        block3(v4:b32):
            return v4)",
                  {.method = Method::Simplest});
    REQUIRE(mutant.answer.edits.size() == 2);
    mutant.answer.edits.pop_back();
    CHECK_THAT(mutant.complaint(), contains("block3, place 0: use 0 wants v4 but finds nothing certain"));
}

TEST_CASE("checker: a value of the previous iteration") {
    Mutant mutant(R"(classes b32
        block0(v0:b32):
            goto block1(v0)
        block1(v1:b32):
            v2:b32 = v1
            goto block2, block3 on v2
        block2:
            goto block1(v2)
        block3:
            return v2)",
                  {.method = Method::Simplest});
    // v1 ← v2 leaves the old v2 in v1's register; the new v2 must not be read there.
    mutant.answer.reassigned.push_back(
        {.block = FlowBlock{3}, .instruction = 0, .use = 0, .to = mutant.answer.registers[1]});
    CHECK_THAT(mutant.complaint(), contains("block3, place 0: use 0 wants v2 but finds nothing certain"));
}

TEST_CASE("checker: a tied definition in another register than its use") {
    Mutant mutant(R"(classes b32
        block0(v0:b32, v1:b32):
            v2:b32 = v0 tied v2 v0
            return v2, v1)");
    mutant.answer.registers[2] = 2;
    mutant.answer.used = {3};
    CHECK_THAT(mutant.complaint(), contains("tied definition v2 wants v0 but finds nothing certain"));
}

TEST_CASE("checker: an answer that does not fit the problem") {
    const auto complaint = [](auto&& change) {
        Mutant mutant(swap_loop);
        change(mutant.answer);
        return mutant.complaint();
    };
    CHECK_THAT(complaint([](Allocation& a) { a.registers.pop_back(); }), contains("one register per value"));
    CHECK_THAT(complaint([](Allocation& a) { a.used.pop_back(); }), contains("no count of used registers"));
    CHECK_THAT(complaint([](Allocation& a) { a.registers[0] = 77; }), contains("not counted as used"));
    CHECK_THAT(complaint([](Allocation& a) { a.registers[0] = no_register; }), contains("has no register"));
    CHECK_THAT(complaint([](Allocation& a) { a.edits[0].from = 77; }), contains("does not exist"));
    CHECK_THAT(complaint([](Allocation& a) { a.edits[0].block = FlowBlock{77}; }), contains("does not exist"));
    CHECK_THAT(complaint([](Allocation& a) { a.edits[0].before = 77; }), contains("does not exist"));
    CHECK_THAT(complaint([](Allocation& a) { a.edits[0].kind = Edit::Kind::Spill; }), contains("does not exist"));
    CHECK_THAT(complaint([](Allocation& a) { a.edits[0].block = FlowBlock{3}; }), contains("not in order"));
    CHECK_THAT(complaint([](Allocation& a) {
                   a.reassigned.push_back({FlowBlock{1}, 0, 5, 0});
               }),
               contains("a reassigned use does not exist"));
}

TEST_CASE("checker: a rematerialised value must be rematerialisable") {
    Mutant mutant(straight);
    mutant.answer.edits.push_back({.kind = Edit::Kind::Rematerialise,
                                   .block = FlowBlock{0},
                                   .before = 0,
                                   .register_class = 0,
                                   .to = 0,
                                   .value = LiveRange{0}});
    CHECK_THAT(mutant.complaint(), contains("v0 cannot be computed again"));
}

}  // namespace
}  // namespace ikat::regalloc
