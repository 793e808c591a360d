// SPDX-License-Identifier: Apache-2.0
// Large texts: files of 12 MB, lines of half a million characters, thousands of registers in one list. The bounds on
// time are loose; bench_ptx_parse measures.
#include <chrono>

#include "codegen/ptx/text/module.hpp"
#include "codegen/support/diagnostic.hpp"
#include "tests/catch.hpp"

using namespace ikat;

namespace {

const std::string head = ".version 8.0\n.target sm_90\n.address_size 64\n";

double seconds_of(auto work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Parses and prints a text, which must give the same text in bounded time.
ptx::Module round_trip(const std::string& text) {
    ptx::Module module;
    std::string printed;
    CHECK(seconds_of([&] { module = ptx::parse(text, "large.ptx"); }) < 60);
    CHECK(seconds_of([&] { printed = ptx::print(module); }) < 60);
    CHECK(ptx::print(ptx::parse(printed, "printed.ptx")) == printed);
    return module;
}

}  // namespace

TEST_CASE("a file of 12 MB") {
    std::string text = head;
    text.reserve(12'100'000);
    std::size_t instructions = 0;
    for (int kernel = 0; text.size() < 12'000'000; ++kernel) {
        text += ".visible .entry k" + std::to_string(kernel) + "(.param .u64 p)\n{\n.reg .b32 %r<5000>;\n";
        for (int i = 0; i < 4000; ++i, ++instructions)
            text += "\tadd.s32 \t%r" + std::to_string(i + 1) + ", %r" + std::to_string(i) + ", " +
                    std::to_string(i * 7919) + ";\n";
        text += "}\n";
    }
    const ptx::Module module = round_trip(text);
    std::size_t found = 0;
    for (const ptx::Function& function : module.functions) found += function.instructions.size();
    CHECK(found == instructions);
}

TEST_CASE("lines of half a million characters") {
    std::string values = ".global .align 4 .u32 table[] = {0";
    for (int i = 1; values.size() < 500'000; ++i) values += ", " + std::to_string(i);
    std::string body = ".entry k() { .reg .b32 %r<9>; ";
    while (body.size() < 500'000) body += "mov.u32 %r1, %r2; ";
    const ptx::Module module = round_trip(head + values + "};\n" + body + "ret; }\n// " + std::string(500'000, 'x'));
    const auto initialiser = module.operands(module.variables.at(0).declarators.at(0).initialiser);
    CHECK(initialiser[0].children.count > 70'000);
}

TEST_CASE("a location far into a long line is reported") {
    const std::string text = head + ".entry k() { " + std::string(400'000, ' ') + "add.s32 %r1 %r2; }\n";
    try {
        ptx::parse(text, "long.ptx");
        FAIL("parsed");
    } catch (const Error& error) {
        CHECK(error.diagnostics().at(0).where.line == 4);
        CHECK(error.diagnostics().at(0).where.column > 400'000);
        CHECK(std::string(error.what()).size() < 2'000);  // the excerpt is a part of the line
    }
}

TEST_CASE("thousands of operands in one list, and scopes within scopes") {
    std::string text = head + ".entry k() { .reg .b32 %r<9999>; wgmma.mma_async.sync {%r0";
    for (int i = 1; i < 9000; ++i) text += ",%r" + std::to_string(i);
    text += "}, %r1;";
    for (int i = 0; i < 200; ++i) text += "{ .reg .b32 %q; ";
    for (int i = 0; i < 200; ++i) text += "}";
    round_trip(text + " ret; }\n");
}
