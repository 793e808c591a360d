// SPDX-License-Identifier: Apache-2.0
#include "codegen/support/diagnostic.hpp"

#include "tests/catch.hpp"

using namespace ikat;

TEST_CASE("a location prints the parts that are known") {
    CHECK(to_string(Location{"a.cpp", 12, 5}) == "a.cpp:12:5");
    CHECK(to_string(Location{"a.cpp", 12, 0}) == "a.cpp:12");
    CHECK(to_string(Location{"a.cpp", 0, 0}) == "a.cpp");
    CHECK(to_string(Location{}) == "");
    CHECK_FALSE(Location{}.known());
}

TEST_CASE("locations compare by the file's name, not by its address") {
    const std::string one = "a.cpp", other = "a.cpp";
    CHECK(Location{one.c_str(), 1, 1} == Location{other.c_str(), 1, 1});
    CHECK_FALSE(Location{"a.cpp", 1, 1} == Location{"b.cpp", 1, 1});
    CHECK_FALSE(Location{"a.cpp", 1, 1} == Location{"a.cpp", 1, 2});
}

TEST_CASE("intern gives one copy of equal texts, whatever happens to the original") {
    std::string text = "kernel.cpp";
    const char* first = intern(text);
    text = "other.cpp.";
    CHECK(std::string(first) == "kernel.cpp");
    CHECK(intern("kernel.cpp") == first);
    CHECK(intern(text) != first);
}

TEST_CASE("a diagnostic renders message, excerpt, notes and hint in this order") {
    const Diagnostic diagnostic{.where = {"k.cpp", 3, 7},
                                .message = "barrier in divergent code",
                                .hint = "move it out of the if_",
                                .notes = {{{"k.cpp", 2, 5}, "the condition is here"}},
                                .excerpt = "    sync_block();\n    ^"};
    CHECK(to_string(diagnostic) ==
          "k.cpp:3:7: error: barrier in divergent code\n"
          "    sync_block();\n"
          "    ^\n"
          "k.cpp:2:5: note: the condition is here\n"
          "  hint: move it out of the if_");
}

TEST_CASE("a diagnostic without a place starts with its kind") {
    CHECK(to_string(Diagnostic{.message = "no such kernel"}) == "error: no such kernel");
    CHECK(to_string(Diagnostic{.severity = Severity::Warning, .message = "slow"}) == "warning: slow");
    CHECK(to_string(Diagnostic{.severity = Severity::Note, .message = "so"}) == "note: so");
}

TEST_CASE("an error carries all its diagnostics and renders each") {
    const Error error({Diagnostic{.where = {"a", 1, 0}, .message = "one"}, Diagnostic{.message = "two"}});
    CHECK(error.diagnostics().size() == 2);
    CHECK(std::string(error.what()) == "a:1: error: one\nerror: two");
    CHECK(std::string(Error("no", "yes").what()) == "error: no\n  hint: yes");
}

TEST_CASE("an excerpt shows the line and a caret below the column") {
    const std::string text = "first\nsecond line\nthird";
    CHECK(excerpt(text, {"f", 1, 1}) == "    first\n    ^");
    CHECK(excerpt(text, {"f", 2, 8}) == "    second line\n           ^");
    CHECK(excerpt(text, {"f", 3, 5}) == "    third\n        ^");
}

TEST_CASE("an excerpt keeps tabs before the caret, so that it is right in a terminal") {
    CHECK(excerpt("\tadd x", {"f", 1, 6}) == "    \tadd x\n    \t    ^");
}

TEST_CASE("an excerpt of a place outside the text is not a crash") {
    CHECK(excerpt("one line", {"f", 2, 1}) == "");
    CHECK(excerpt("", {"f", 1, 1}) == "    \n    ^");
    CHECK(excerpt("ab", {"f", 1, 99}) == "    ab\n      ^");
    CHECK(excerpt("ab", {"f", 1, 0}) == "    ab\n    ^");
}

TEST_CASE("an excerpt of a very long line shows the part around the caret") {
    std::string text(500'000, '.');
    text[300'000] = 'x';
    const std::string shown = excerpt(text, {"f", 1, 300'001});
    const std::size_t newline = shown.find('\n');
    CHECK(shown.size() < 400);
    CHECK(shown.find('x') < newline);
    CHECK(shown.find('^') - newline - 1 == shown.find('x'));
}

TEST_CASE("control characters in a message are escaped") {
    CHECK(to_string(Diagnostic{.message = "'a\x1b[31m\r\x7f'", .hint = "\x01", .excerpt = "\tx\b"}) ==
          "error: 'a\\x1b[31m\\x0d\\x7f'\n\tx\\x08\n  hint: \\x01");
    CHECK(to_string(Diagnostic{.message = "ünïcode"}) == "error: ünïcode");
}

TEST_CASE("a long message is shortened") {
    const std::string much(300000, 'x');
    CHECK(std::string(Error(much, much).what()).size() < 9000);
    const Error many(std::vector<Diagnostic>(1000, {.message = "wrong"}));
    CHECK(std::string(many.what()).ends_with("error: wrong\n... and 980 more"));
    CHECK(many.diagnostics().size() == 1000);
}
