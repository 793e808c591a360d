// SPDX-License-Identifier: Apache-2.0
// Linked modules: ptxas accepts the valid ones, the others are errors. tests/golden/cli/link.txt runs them.
#include "codegen/ptx/text/link.hpp"

#include <fstream>
#include <sstream>

#include "codegen/ptx/check/check.hpp"
#include "tests/catch.hpp"
#include "tests/message.hpp"
#include "tests/ptxas.hpp"

using namespace ikat;
using tests::contains;

namespace {

ptx::Module parsed(const std::string& text, const char* file) {
    return ptx::parse(".version 7.0\n.target sm_75\n.address_size 64\n" + text, file);
}
ptx::Module of_file(const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(IKAT_SOURCE_DIR "/tests/cli/" + name).rdbuf();
    return ptx::parse(text.str(), name);
}

/// Checks that ptxas and check accept the linked modules, in both orders.
void check_linked(const std::vector<ptx::Module>& modules) {
    for (const auto& order : {modules, std::vector(modules.rbegin(), modules.rend())}) {
        const std::string text = ptx::print(ptx::link(order));
        INFO(text);
        CHECK(ptx::check(ptx::parse(text, "linked")).empty());
        if (!tests::skip_without_ptxas()) CHECK(tests::assemble(text, "sm_80").assembled);
    }
}

}  // namespace

TEST_CASE("ptxas accepts linked files that use each other") {
    check_linked({of_file("caller.ptx"), of_file("callee.ptx")});
    check_linked({parsed(".extern .const .u32 c; .entry k() {.reg .b32 x; ld.const.u32 x, [c]; ret;}", "a"),
                  parsed(".visible .const .u32 c = 4;", "b")});
    // Local names, also of labels and parameters; definitions that may occur twice; tables of functions.
    check_linked({parsed(".func f(.param .b32 f1) {ret;} .global .u64 t = f; .entry a() {f: bra f;}", "a"),
                  parsed(".func f(.param .b64 f1) {ret;} .global .u64 t = f; .entry b() {f: bra f;}", "b")});
    check_linked({parsed(".weak .func w() {ret;} .weak .global .u32 v; .entry a() {call w; ret;}", "a"),
                  parsed(".weak .func w() {ret;} .visible .global .u32 v = 3; .entry b() {call w; ret;}", "b"),
                  parsed(".extern .func w(); .extern .global .u32 v; .entry c() {call w; ret;}", "c")});
    check_linked({parsed(".extern .shared .b8 s[]; .entry a() {ret;}", "a"),
                  parsed(".extern .shared .b8 s[]; .entry b() {ret;}", "b")});
}

TEST_CASE("one name has one definition") {
    const auto said = [](const std::string& a, const std::string& b) {
        return tests::message_of([&] { ptx::link({parsed(a, "a.ptx"), parsed(b, "b.ptx")}); });
    };
    CHECK_THAT(said(".visible .func f() {ret;}", ".visible .func f() {ret;}"),
               contains("b.ptx:4:1: error: f is defined in two files") && contains("a.ptx:4:1: note"));
    CHECK_THAT(said(".visible .global .u32 g;", ".visible .func g() {ret;}"), contains("g is defined in two files"));
    ptx::Module narrow = parsed("", "n.ptx");
    narrow.address_size = 32;
    CHECK_THAT(tests::message_of([&] { ptx::link({parsed("", "w.ptx"), narrow}); }), contains("different sizes"));
}
