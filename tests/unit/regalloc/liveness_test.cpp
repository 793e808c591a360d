// SPDX-License-Identifier: Apache-2.0
// Where values die, and which need registers of their own.
#include "regalloc/stages.hpp"
#include "regalloc/text/text.hpp"
#include "tests/catch.hpp"

namespace ikat::regalloc {
namespace {

struct Lives {
    Problem problem;
    Flow flow = flow_of(problem);
    Liveness liveness = liveness_of(problem, flow);

    explicit Lives(std::string_view text) : problem(parse_problem(text).problem) {}
    bool interfere(std::uint32_t a, std::uint32_t b) const { return liveness.interfere(LiveRange{a}, LiveRange{b}); }
    static std::vector<std::uint32_t> numbers(std::span<const LiveRange> values) {
        std::vector<std::uint32_t> out;
        for (LiveRange v : values) out.push_back(index(v));
        return out;
    }
};

using Numbers = std::vector<std::uint32_t>;

TEST_CASE("liveness: a value is live around a loop that reads it, and dead after its last use") {
    const Lives lives(R"(classes b32
        block0(v0:b32, v1:b32):
            goto block1
        block1:
            v2:b32 = v0, v0
            goto block1, block2 on v2
        block2:
            v3:b32 = v1, v1
            return v3)");
    CHECK(lives.liveness.in[1].contains(LiveRange{0}));
    CHECK(lives.liveness.out[1].contains(LiveRange{0}));
    CHECK(lives.liveness.out[1].contains(LiveRange{1}));
    CHECK_FALSE(lives.liveness.in[2].contains(LiveRange{0}));
    CHECK(lives.liveness.dying(FlowBlock{1}, 0).empty());
    CHECK(Lives::numbers(lives.liveness.dying(FlowBlock{2}, 0)) == Numbers{1});
    CHECK(lives.flow.depth == Numbers{0, 1, 0});
}

TEST_CASE("liveness: an unused value is dead immediately") {
    const Lives lives("classes b32\nblock0(v0:b32, v1:b32):\n v2:b32, v3:b32 = v1\n return v3");
    CHECK(Lives::numbers(lives.liveness.dead_parameters(FlowBlock{0})) == Numbers{0});
    CHECK(Lives::numbers(lives.liveness.dead(FlowBlock{0}, 0)) == Numbers{2});
}

TEST_CASE("interference: a definition and a use that dies there may share") {
    const Lives lives("classes b32\nblock0(v0:b32):\n v1:b32 = v0\n v2:b32 = v1, v1\n return v2");
    CHECK_FALSE(lives.interfere(0, 1));
    CHECK_FALSE(lives.interfere(1, 2));
    CHECK_FALSE(lives.interfere(0, 2));
}

TEST_CASE("interference: definitions of one instruction, parameters of one block, read or not") {
    const Lives lives("classes b32\nblock0(v0:b32, v1:b32):\n v2:b32, v3:b32 =\n return v3");
    CHECK(lives.interfere(0, 1));
    CHECK(lives.interfere(2, 3));
    CHECK_FALSE(lives.interfere(0, 2));
}

TEST_CASE("interference: a copied definition needs its register before the instruction") {
    const Lives lives(R"(classes b32
        block0(v0:b32, v1:b32):
            v2:b32, v3:b32 = v0, v1 tied v2 v0
            return v0, v3)");
    CHECK(lives.interfere(2, 0));
    CHECK(lives.interfere(2, 1));        // v1 is read by the instruction and dies there
    CHECK(lives.interfere(2, 3));        // though nobody reads v2
    CHECK_FALSE(lives.interfere(3, 1));  // v3 is written after v1 is read
}

TEST_CASE("interference: different successors of a branch") {
    const Lives lives(R"(classes b32
        block0(v0:b32):
            goto block1, block2 on v0
        block1:
            v1:b32 =
            return v1
        block2:
            v2:b32 = v0
            return v2)");
    CHECK_FALSE(lives.interfere(1, 2));
    CHECK_FALSE(lives.interfere(0, 1));
    CHECK_FALSE(lives.interfere(0, 2));
}

}  // namespace
}  // namespace ikat::regalloc
