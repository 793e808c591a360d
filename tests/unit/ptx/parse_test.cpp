// SPDX-License-Identifier: Apache-2.0
// The parser on operands and declarations; golden files test its layout and its messages.
#include <bit>

#include "codegen/ptx/text/module.hpp"
#include "codegen/support/diagnostic.hpp"
#include "tests/catch.hpp"

using namespace ikat::ptx;
using Kind = Operand::Kind;

namespace {

Module parse_body(const std::string& body) {
    return parse(".version 8.0\n.target sm_90\n.address_size 64\n.entry k() {\n" + body + "\n}\n", "body.ptx");
}

/// The operand of `mov.b64 %r, <text>;`
Operand parse_operand(const std::string& text) {
    const Module module = parse_body("mov.b64 %r, " + text + ";");
    return module.operands(module.functions[0].instructions[0].operands)[1];
}

}  // namespace

TEST_CASE("integers have the value of their spelling") {
    struct {
        const char* text;
        std::uint64_t value;
    } const cases[] = {
        {"0", 0},
        {"10", 10},
        {"-1", ~0ull},
        {"0x1F", 31},
        {"0X1f", 31},
        {"017", 15},
        {"0b101", 5},
        {"5U", 5},
        {"0x1fU", 31},
        {"00", 0},
        {"-0x10", ~0ull - 15},
        {"18446744073709551615", ~0ull},
        {"-9223372036854775808", 1ull << 63},
    };
    for (const auto& [text, value] : cases) {
        INFO(text);
        const Operand operand = parse_operand(text);
        CHECK(operand.kind == Kind::Integer);
        CHECK(operand.value == value);
    }
}

TEST_CASE("floating-point literals have their bits") {
    CHECK(parse_operand("0f3F800000").kind == Kind::Float32);
    CHECK(parse_operand("0f3F800000").value == 0x3f800000);
    CHECK(parse_operand("0d3ff0000000000000").value == 0x3ff0000000000000);
    CHECK(parse_operand("1.5").kind == Kind::Float64);
    CHECK(parse_operand("1.5").value == std::bit_cast<std::uint64_t>(1.5));
    CHECK(parse_operand("-2.5e-3").value == std::bit_cast<std::uint64_t>(-2.5e-3));
    CHECK(parse_operand("1e10").value == std::bit_cast<std::uint64_t>(1e10));
}

TEST_CASE("malformed text is rejected") {
    for (const char* text : {"08", "0b2", "0x", "0xg", "0f", "0f3F80000", "0f3F8000000", "0d3FF", "-0f3F800000", "1.5x",
                             "1e", "1.5.5", "12ab", "U", "5UU", "18446744073709551616", "0f3F8000g0"}) {
        INFO(text);
        if (std::string_view(text) == "U")
            CHECK_NOTHROW(parse_operand(text));  // a name
        else
            CHECK_THROWS_AS(parse_operand(text), ikat::Error);
    }
}

TEST_CASE("names, suffixes and offsets") {
    const Module module = parse_body("ld.global.u32 %r1, [tile+-8];\nmov.u32 %r, %tid.x;");
    const Instruction& load = module.functions[0].instructions[0];
    const Operand address = module.operands(load.operands)[1];
    REQUIRE(address.kind == Kind::Address);
    const Operand base = module.operands(address.children)[0];
    CHECK(module.text(base.name) == "tile");
    CHECK(base.has_offset);
    CHECK(std::int64_t(base.value) == -8);
    const Operand tid = module.operands(module.functions[0].instructions[1].operands)[1];
    CHECK(module.text(tid.name) == "%tid");
    CHECK(module.text(tid.suffix) == ".x");
    CHECK_FALSE(tid.has_offset);
}

TEST_CASE("children of an operand are adjacent, also when they have children") {
    const Module module = parse_body("cp.x [%r1], [%rd1, {%r2, %r3}, %r4], {{1, 2}, _};");
    const std::span<const Operand> operands = module.operands(module.functions[0].instructions[0].operands);
    REQUIRE(operands.size() == 3);
    const std::span<const Operand> address = module.operands(operands[1].children);
    REQUIRE(address.size() == 3);
    CHECK(address[1].kind == Kind::Vector);
    CHECK(module.text(module.operands(address[1].children)[1].name) == "%r3");
    CHECK(module.text(address[2].name) == "%r4");
    const std::span<const Operand> nested = module.operands(operands[2].children);
    REQUIRE(nested.size() == 2);
    CHECK(nested[1].kind == Kind::Sink);
    CHECK(module.operands(nested[0].children)[1].value == 2);
}

TEST_CASE("statements keep their order and their places") {
    const Module module = parse_body("start: { .reg .b32 a;\n  @%p bra start; }\n.pragma \"nounroll\";");
    using S = Statement::Kind;
    std::vector<S> kinds;
    for (const Statement& each : module.functions[0].body) kinds.push_back(each.kind);
    CHECK(kinds == std::vector<S>{S::Label, S::ScopeBegin, S::Variable, S::Instruction, S::ScopeEnd, S::Directive});
    const Instruction& branch = module.functions[0].instructions[0];
    CHECK(branch.where.line == 6);
    CHECK(branch.where.column == 3);
    CHECK(module.text(branch.guard) == "%p");
    CHECK(module.file == std::string("body.ptx"));
}

TEST_CASE("declarations in parts") {
    const Module module = parse(
        ".version 7.0\n.target sm_80, debug\n.address_size 32\n"
        ".visible .global .align 8 .v2 .f32 x[2][] = {1, 2}, y;\n"
        ".entry k(.param .u64 .ptr .shared .align 4 p, .param .align 64 .b8 q[128]) { .reg .b32 %r<12>; }",
        "declarations.ptx");
    CHECK(module.address_size == 32);
    CHECK(module.target.size() == 2);
    REQUIRE(module.variables.size() == 1);
    const Variable& x = module.variables[0];
    CHECK(x.alignment == 8);
    CHECK(module.text(x.vector) == ".v2");
    CHECK(module.text(x.type) == ".f32");
    REQUIRE(x.declarators.size() == 2);
    CHECK(x.declarators[0].extents == std::vector<std::int64_t>{2, -1});
    CHECK(x.declarators[0].initialiser.count == 1);
    CHECK(x.declarators[1].initialiser.count == 0);
    const Function& k = module.functions[0];
    CHECK(k.parameters[0].alignment == 0);
    CHECK(k.parameters[0].pointer.size() == 4);
    CHECK(k.parameters[1].alignment == 64);
    CHECK(k.variables[0].declarators[0].range == 12);
}

TEST_CASE("text may end anywhere and hold anything") {
    for (const char* text : {"",
                             " ",
                             "\n",
                             "//",
                             "/",
                             "/*",
                             ".",
                             ".version",
                             ".version 8",
                             ".version 8.",
                             ".entry",
                             ".entry k(",
                             ".entry k() {",
                             ".entry k() { @",
                             ".entry k() { a",
                             ".entry k() { a.",
                             ".entry k() { a b",
                             ".entry k() { a [",
                             ".entry k() { a -",
                             ".entry k() { a 0",
                             "\"",
                             "\\",
                             ".file 1 \"\\",
                             "\xff",
                             ".entry k() { a 0x",
                             ".section x {",
                             ".global .attribute("}) {
        INFO(text);
        const std::string exact(text);  // no terminating zero is read
        try {
            parse(std::string_view(exact).substr(0), "short.ptx");
        } catch (const ikat::Error& error) { CHECK_FALSE(error.diagnostics().empty()); }
    }
    CHECK_THROWS_AS(parse(std::string_view(".entry k() { ret\0; }", 20), "zero.ptx"), ikat::Error);
}

TEST_CASE("nesting has a limit instead of a stack overflow") {
    CHECK_THROWS_AS(parse_body("mov.b32 " + std::string(100000, '{')), ikat::Error);
    CHECK_THROWS_AS(parse_body("mov.b32 " + std::string(100000, '[')), ikat::Error);
    CHECK_THROWS_AS(parse_body(std::string(100000, '{')), ikat::Error);
    std::string pairs = "mov.b32 a";
    for (int i = 0; i < 100000; ++i) pairs += "|a";
    CHECK_THROWS_AS(parse_body(pairs + ";"), ikat::Error);
    std::string elements = "mov.b32 a";
    for (int i = 0; i < 100000; ++i) elements += "[a";
    CHECK_THROWS_AS(parse_body(elements), ikat::Error);
    std::string masks = "mov.b32 1";
    for (int i = 0; i < 100000; ++i) masks += "(1";
    CHECK_THROWS_AS(parse_body(masks), ikat::Error);
}
