// SPDX-License-Identifier: Apache-2.0
// A module that is built, not parsed: names, pools, printing, the table of lines.
#include "codegen/ptx/text/module.hpp"

#include "tests/catch.hpp"

using namespace ikat::ptx;
using Kind = Operand::Kind;

namespace {

Operand symbol(Module& module, std::string_view name) { return {.kind = Kind::Symbol, .name = module.intern(name)}; }

/// `.visible .entry k(.param .u64 x) { @!%p0 st.global.f32 [%rd0+-4], 0f3F800000; out: ret; }`
Module small() {
    Module module;
    module.version = {7, 0};
    module.target = {module.intern("sm_80")};
    Function function;
    function.linkage = {module.intern(".visible")};
    function.is_entry = true;
    function.name = module.intern("k");
    Variable parameter;
    parameter.space = module.intern(".param");
    parameter.type = module.intern(".u64");
    parameter.declarators.push_back({.name = module.intern("x")});
    function.parameters.push_back(parameter);

    Operand base = symbol(module, "%rd0");
    base.has_offset = true;
    base.value = std::uint64_t(-4);
    const Operand operands[] = {{.kind = Kind::Address, .children = module.add_operands({&base, 1})},
                                {.kind = Kind::Float32, .value = 0x3f800000}};
    const Name modifiers[] = {module.intern(".global"), module.intern(".f32")};
    function.instructions.push_back({.opcode = Opcode::St,
                                     .spelling = module.intern("st"),
                                     .modifiers = module.add_modifiers(modifiers),
                                     .operands = module.add_operands(operands),
                                     .guard = module.intern("%p0"),
                                     .guard_negated = true});
    function.instructions.push_back({.opcode = Opcode::Ret, .spelling = module.intern("ret")});
    function.body = {{Statement::Kind::Instruction, 0},
                     {Statement::Kind::Label, ikat::index(module.intern("out"))},
                     {Statement::Kind::Instruction, 1}};
    module.functions.push_back(function);
    module.items.push_back({Module::Item::Kind::Function, 0});
    return module;
}

constexpr const char* small_text =
    ".version 7.0\n"
    ".target sm_80\n"
    ".address_size 64\n"
    "\n"
    ".visible .entry k(\n"
    "    .param .u64 x\n"
    ")\n"
    "{\n"
    "    @!%p0 st.global.f32 [%rd0+-4], 0f3F800000;\n"
    "out:\n"
    "    ret;\n"
    "}\n";

}  // namespace

TEST_CASE("names are equal when their texts are, and stay readable while names are added") {
    Module module;
    const Name add = module.intern("add");
    const std::string_view text = module.text(add);
    std::vector<Name> names;
    for (int i = 0; i < 1000; ++i) names.push_back(module.intern("%r" + std::to_string(i)));
    for (int i = 0; i < 1000; ++i) {
        REQUIRE(module.text(names[i]) == "%r" + std::to_string(i));
        REQUIRE(module.find("%r" + std::to_string(i)) == names[i]);
    }
    CHECK(module.intern("add") == add);
    CHECK(text.data() == module.text(add).data());
    CHECK(module.find("sub") == no_name);
    CHECK(module.text(no_name).empty());
    CHECK(Module().find("add") == no_name);
}

TEST_CASE("a built module prints, and parses to the same text") {
    const Module module = small();
    CHECK(print(module) == small_text);
    CHECK(print(parse(small_text, "small.ptx")) == small_text);
    CHECK(print(module, module.functions[0].instructions[0]) == "@!%p0 st.global.f32 [%rd0+-4], 0f3F800000;");
}

TEST_CASE("a copy owns its names") {
    auto original = std::make_unique<Module>(small());
    const Module copy = *original;
    original.reset();
    CHECK(print(copy) == small_text);
}

TEST_CASE("the table of lines points at the instructions") {
    std::vector<std::vector<std::uint32_t>> lines;
    print(small(), lines);
    CHECK(lines == std::vector<std::vector<std::uint32_t>>{{9, 11}});
    const Module parsed = parse(small_text, "small.ptx");
    for (std::size_t i = 0; i < 2; ++i) CHECK(parsed.functions[0].instructions[i].where.line == lines[0][i]);
}

TEST_CASE("lines are counted through sections, raw directives and prototypes") {
    const std::string text =
        ".version 7.0\n.target sm_80\n.address_size 64\n.section .debug_x\n{\n.b8 1\n.b8 2\n}\n"
        ".extern .func f(.param .b32 x);\n.entry a() .maxntid 1 {\np: .callprototype _ (.param .b32 _,\n"
        " .param .b32 _);\n { ret; } }\n.entry b() { exit; }\n";
    std::vector<std::vector<std::uint32_t>> lines;
    const std::string printed = print(parse(text, "a.ptx"), lines);
    const Module again = parse(printed, "b.ptx");
    REQUIRE(lines.size() == 3);
    CHECK(lines[0].empty());
    for (std::size_t f : {1, 2}) {
        REQUIRE(lines[f].size() == 1);
        CHECK(again.functions[f].instructions[0].where.line == lines[f][0]);
    }
}

TEST_CASE("literals without a spelling print so that no bit is lost") {
    Module module;
    CHECK(print(module, Operand{.kind = Kind::Integer, .value = std::uint64_t(-3)}) == "-3");
    CHECK(print(module, Operand{.kind = Kind::Float32, .value = 0x7fffffff}) == "0f7FFFFFFF");
    CHECK(print(module, Operand{.kind = Kind::Float64, .value = 0x3ff0000000000000}) == "0d3FF0000000000000");
    CHECK(print(module, Operand{.kind = Kind::Sink}) == "_");
}
