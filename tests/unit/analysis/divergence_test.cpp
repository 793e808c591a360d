// SPDX-License-Identifier: Apache-2.0
// Which barriers are found where only some threads come.
#include <catch2/catch.hpp>

#include "codegen/analysis/uniformity.hpp"
#include "codegen/ir/text/parse.hpp"

namespace ikat {
namespace {

/// How many, in a kernel with a thread's own number %tid, the same number %n in all, and a local array at %own.
std::size_t wrong_barriers(const std::string& body, ir::Doubt doubt = ir::Doubt::Agrees) {
    const ir::Function fn = ir::parse_function(R"(kernel @k(%n: u32) {
  local $own: u32[4] align 4
^0:
  %tid = special.u32 tid.x
  %n = param.u32 %n
  %p = lt.u32 %tid, %n
  %own = symbol.u32 $own
)" + body + "}\n");
    return analysis::divergent_operations(fn, analysis::Dominators(fn), doubt).size();
}

/// The same of a barrier where %x < %n, which the lines give.
std::size_t wrong_where_less(const std::string& lines) {
    return wrong_barriers(lines + R"(
  %q = lt.u32 %x, %n
  branch %q, ^1, ^2
^1:
  barrier 0
  jump ^2
^2:
  return
)");
}

/// ... where %x is what is loaded after the line.
std::size_t wrong_after(const std::string& line) { return wrong_where_less(line + "\n  %x = load.u32 local [%own]"); }

}  // namespace

TEST_CASE("an operation of lanes that are not known may be for all") {
    const auto wrong = [](const std::string& members, ir::Doubt doubt) {
        return wrong_barriers("  %members = " + members + R"(
  branch %p, ^1, ^2
^1:
  sync_warp %members
  jump ^2
^2:
  return
)",
                              doubt);
    };
    CHECK(wrong("const.u32 0xffffffff", ir::Doubt::Agrees) == 1);
    CHECK(wrong("const.u32 15", ir::Doubt::Differs) == 0);
    CHECK(wrong("param.u32 %n", ir::Doubt::Agrees) == 0);
    CHECK(wrong("param.u32 %n", ir::Doubt::Differs) == 1);
}

TEST_CASE("what a thread loads of its own differs if all that is stored there does") {
    CHECK(wrong_after("  store.u32 local [%own], %tid") == 1);
    CHECK(wrong_after("  store.u32 local [%own+4], %tid\n  store.u32 local [%own], %tid") == 1);
    CHECK(wrong_after("  store.u32 local [%own], %tid guard %p") == 1);
    CHECK(wrong_after("  store.u32 local [%own], %n") == 0);
    CHECK(wrong_after("  store.u32 local [%own+4], %tid\n  store.u32 local [%own], %n") == 0);  // another element
    CHECK(wrong_after("  store.u32 local [%own], %tid\n  store.u32 local [%own], %n") == 0);    // the later one
    CHECK(wrong_after("  %place = at.u32.u32 4, %own, %tid\n  store.u32 local [%place], %n") == 0);
    CHECK(wrong_after("  store.u32 local [%own], %n guard %p") == 0);
    // What was stored and loaded again.
    CHECK(wrong_after("  store.u32 local [%own], %tid\n  %a = load.u32 local [%own]\n  store.u32 local [%own], %a") ==
          1);
    CHECK(wrong_after("  store.u32 local [%own], %n\n  %a = load.u32 local [%own]\n  store.u32 local [%own], %a") == 0);
    // Nothing stored, and through a pointer to any array.
    CHECK(wrong_after("") == 0);
    CHECK(wrong_after("  store.u32 local [%own], %tid\n  store.u32 local [%n], %n") == 0);
    CHECK(wrong_after("  store.u32 local [%n], %tid") == 1);
}

TEST_CASE("an array in which nothing is stored hides no wrong barrier") {
    CHECK(wrong_where_less("  %y = load.u32 local [%own]\n  %x = add.u32 %y, %tid") == 1);
}

TEST_CASE("of a place in no known array nothing is known") {
    CHECK(wrong_where_less("  store.u32 local [%own], %tid\n  %x = load.u32 local [%n]") == 0);
}

TEST_CASE("threads meet before the next iteration of an endless loop, and before a trap") {
    const std::string loop = R"(  jump ^1
^1:
  branch %p, ^2, ^3
^2:
  jump ^3
^3:
)";
    CHECK(wrong_barriers(loop + "  barrier 0\n  jump ^1\n") == 0);
    CHECK(wrong_barriers(loop + "  barrier 0\n  trap\n") == 0);
    CHECK(wrong_barriers(loop + "  branch %p, ^1, ^4\n^4:\n  barrier 0\n  jump ^1\n") == 1);
}

}  // namespace ikat
