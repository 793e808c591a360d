// SPDX-License-Identifier: Apache-2.0
// The textual form: printed text parses back to the same, and errors have locations.
#include "regalloc/text/text.hpp"
#include "codegen/support/diagnostic.hpp"
#include "tests/catch.hpp"

namespace ikat::regalloc {
namespace {

using tests::contains;

constexpr std::string_view everything = R"(classes b32 pred=2
block0(v0:b32, v1:b32):
    v2:b32! =
    v3:b32, v4:pred = v0, v1
    v5:b32, v6:b32 = v3, v0, v2 tied v5 v3, v6 v0
    = v5 early
    goto block1(v5), block2 on v4
block1(v7:b32):
    return v7, v6
block2:
    return
)";

TEST_CASE("a problem is printed as it was written") {
    const NamedProblem named = parse_problem(everything);
    CHECK(to_string(named.problem, named.classes) == everything);
    CHECK(named.problem.limits == std::vector<std::uint32_t>{unlimited, 2});
    CHECK(named.problem.values[2].rematerialisable);
}

TEST_CASE("comments and blank lines do not matter") {
    const NamedProblem named =
        parse_problem("\n// before\nclasses b32 // the classes\n\nblock0:\n\n    return // end\n\n");
    CHECK(to_string(named.problem, named.classes) == "classes b32\nblock0:\n    return\n");
}

TEST_CASE("an answer shows registers and edits") {
    const NamedProblem named = parse_problem(R"(classes b32
        block0(v0:b32):
            v1:b32 = v0 tied v1 v0
            return v1, v0)");
    CHECK(to_string(named.problem, allocate(named.problem), named.classes) == R"(block0(v0:b32.0):
        b32.1 <- b32.0
    v1:b32.1 = v0:b32.0 tied v1 v0
    return v1:b32.1, v0:b32.0
registers: b32 2
live at once: b32 2
)");
}

TEST_CASE("an error in a problem names its place") {
    const auto error = [](std::string_view text) -> std::string {
        try {
            (void)parse_problem(text, "p.txt");
        } catch (const Error& e) { return e.what(); }
        return "none";
    };
    CHECK_THAT(error(""), contains("p.txt:1:1: error: expected 'classes'"));
    CHECK_THAT(error("classes\n"), contains("expected between 1 and 255 classes"));
    CHECK_THAT(error("classes b32\n"), contains("p.txt:2:1: error: expected 'block'"));
    CHECK_THAT(error("classes b32\nblock1:\n"), contains("blocks are numbered in order"));
    CHECK_THAT(error("classes b32\nblock0:\n v0:b16 =\n"), contains("p.txt:3:8: error: unknown class"));
    CHECK_THAT(error("classes b32\nblock0:\n v0:b32 =\n v0:b32 =\n"), contains("v0 is defined twice"));
    CHECK_THAT(error("classes b32\nblock0:\n return v1"), contains("v0 is never defined"));
    CHECK_THAT(error("classes b32\nblock0:\n goto block1"), contains("leads to a block that does not exist"));
    CHECK_THAT(error("classes b32\nblock0:\n v0:b32 = tied v0 v1\n"), contains("a pair names no use"));
    CHECK_THAT(error("classes b32\nblock0:\n v0:b32\n"), contains("p.txt:3:8: error: expected '='"));
    CHECK_THAT(error("classes b32\nblock0:\n return v99999999"), contains("expected a number below ten million"));
    CHECK_THAT(error("classes b32\nblock0:\n return 7"), contains("expected the end of the line"));
}

}  // namespace
}  // namespace ikat::regalloc
