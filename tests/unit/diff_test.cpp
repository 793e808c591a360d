// SPDX-License-Identifier: Apache-2.0
#include "tools/testing/diff.hpp"

#include "tests/catch.hpp"

using ikat::golden::diff;
using ikat::tests::contains;

TEST_CASE("equal texts have no difference") {
    CHECK(diff("", "") == "");
    CHECK(diff("a\nb\n", "a\nb\n") == "");
}

TEST_CASE("a changed line shows both versions and two lines around it") {
    CHECK(diff("1\n2\n3\n4\n5\n6\n7\n", "1\n2\n3\nfour\n5\n6\n7\n") == "@@ line 2\n 2\n 3\n-4\n+four\n 5\n 6\n");
}

TEST_CASE("insertions and deletions are aligned") {
    CHECK(diff("a\nb\nc\n", "a\nnew\nb\nc\n") == "@@ line 1\n a\n+new\n b\n c\n");
    CHECK(diff("a\nold\nb\nc\n", "a\nb\nc\n") == "@@ line 1\n a\n-old\n b\n c\n");
    CHECK(diff("", "a\n") == "@@ line 1\n+a\n");
    CHECK(diff("a\n", "") == "@@ line 1\n-a\n");
}

TEST_CASE("distant changes are separate groups") {
    CHECK(diff("a\n1\n2\n3\n4\n5\n6\nb\n", "A\n1\n2\n3\n4\n5\n6\nB\n") ==
          "@@ line 1\n-a\n+A\n 1\n 2\n@@ line 6\n 5\n 6\n-b\n+B\n");
}

TEST_CASE("a missing final newline is visible") { CHECK_THAT(diff("a\n", "a"), contains("+\\ no newline at the end")); }

TEST_CASE("a large difference is cut and says so") {
    std::string expected, actual;
    for (int i = 0; i < 3000; ++i) {
        expected += "e" + std::to_string(i) + '\n';
        actual += "a" + std::to_string(i) + '\n';
    }
    const std::string text = diff(expected, actual);
    CHECK(std::ranges::count(text, '\n') == 62);
    CHECK_THAT(text, contains("... and 5940 more lines"));
}
