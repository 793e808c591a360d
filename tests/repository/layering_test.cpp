// SPDX-License-Identifier: Apache-2.0
#include "tests/repository/layering.hpp"

#include "tests/catch.hpp"

using namespace ikat::tests;

namespace {

using Lines = std::vector<std::string>;

const std::string spdx = "// SPDX-License-Identifier: Apache-2.0\n";

std::string header(const std::string& body) { return spdx + "#pragma once\n" + body; }

/// A small correct tree, to which each test adds one fault.
Tree tree_with(const std::string& path, const std::string& text) {
    Tree tree = {
        {"codegen/support/id.hpp", header("#include <vector>\n")},
        {"codegen/ir/op/op.hpp", header("#include \"codegen/support/id.hpp\"\n")},
        {"codegen/ptx/text/module.hpp", header("#include \"codegen/support/id.hpp\"\n")},
        {"dsl/kernel/kernel.hpp", header("#include \"codegen/ir/op/op.hpp\"\n#include <boost/hana.hpp>\n")},
        {"runtime/device.hpp", header("#include \"codegen/ptx/text/module.hpp\"\n")},
        {"include/ikat/ikat.hpp", header("#include \"dsl/kernel/kernel.hpp\"\n#include \"runtime/device.hpp\"\n")},
        {"examples/saxpy.cpp", spdx + "#include <ikat/ikat.hpp>\n"},
    };
    tree[path] = text;
    return tree;
}

}  // namespace

TEST_CASE("the source tree keeps its rules") {
    const Tree tree = read_tree(IKAT_SOURCE_DIR);
    CHECK(tree.contains("codegen/support/id.hpp"));
    CHECK(tree.contains("tests/repository/layering_test.cpp"));
    for (const std::string& rule : broken_rules(tree)) FAIL_CHECK(rule);
}

TEST_CASE("a correct tree has no broken rules") {
    CHECK(broken_rules(tree_with("tools/main.cpp", spdx + "#include \"codegen/support/id.hpp\"\n")) == Lines{});
}

TEST_CASE("a lower layer may not include a higher one") {
    CHECK(broken_rules(
              tree_with("codegen/ir/text/print.cpp", spdx + "\n  #  include \"codegen/ptx/text/module.hpp\"\n")) ==
          Lines{"codegen/ir/text/print.cpp:3: ir may not include ptx (codegen/ptx/text/module.hpp)"});
    CHECK(broken_rules(tree_with("codegen/ir/a.hpp", header("#include <ikat/ikat.hpp>\n"))) ==
          Lines{"codegen/ir/a.hpp:3: ir may not include include (include/ikat/ikat.hpp)"});
}

TEST_CASE("layers side by side may not include each other") {
    CHECK(broken_rules(tree_with("regalloc/spill.cpp", spdx + "#include \"codegen/ir/op/op.hpp\"\n")).size() == 1);
    CHECK(broken_rules(tree_with("dsl/a.cpp", spdx + "#include \"codegen/passes/passes.hpp\"\n")).size() == 1);
    CHECK(broken_rules(tree_with("dsl/a.cpp", spdx + "#include \"codegen/nvptx/emit/emit.hpp\"\n")).size() == 1);
}

TEST_CASE("the rooms of the emulator include what is below them") {
    const auto including = [](const char* from, const char* what) {
        const std::string room = "runtime/emulator/";
        Tree tree = tree_with(room + from, spdx + "#include \"" + room + what + "\"\n");
        tree[room + what] = header("");
        return broken_rules(tree).size();
    };
    CHECK(including("ops/a.cpp", "core/warp.hpp") == 0);
    CHECK(including("tools/traffic/a.cpp", "decode/lowering.hpp") == 0);
    CHECK(including("core/a.cpp", "ops/handlers.hpp") == 1);
    CHECK(including("ops/a.cpp", "machine/block.hpp") == 1);
    CHECK(including("machine/a.cpp", "agents/agents.hpp") == 1);
    CHECK(including("agents/a.cpp", "decode/lowering.hpp") == 1);
    CHECK(including("decode/a.cpp", "tools/proxies/proxies.hpp") == 1);
    CHECK(including("tools/traffic/a.cpp", "host/program.hpp") == 1);
    CHECK(including("host/a.cpp", "tools/traffic/traffic.hpp") == 0);
    const std::string device = spdx + "#include \"runtime/device.hpp\"\n";
    CHECK(broken_rules(tree_with("runtime/emulator/host/a.cpp", device)).size() == 1);
}

TEST_CASE("includes are written from the root") {
    CHECK(broken_rules(tree_with("codegen/ir/a.cpp", spdx + "#include \"op.hpp\"\n")) ==
          Lines{"codegen/ir/a.cpp:2: \"op.hpp\" is no path from the repository's root"});
}

TEST_CASE("a file outside the layers is reported") {
    CHECK(broken_rules(tree_with("codegen/other/a.cpp", spdx)) ==
          Lines{"codegen/other/a.cpp:1: this folder is in no layer"});
    CHECK(broken_rules(tree_with("runtime/emulator/a.cpp", spdx)) ==
          Lines{"runtime/emulator/a.cpp:1: this folder is in no layer"});
}

TEST_CASE("only parsers include X3, also through a header") {
    const std::string x3 = "#include <boost/spirit/home/x3.hpp>\n";
    CHECK(broken_rules(tree_with("codegen/ptx/text/parse_module.cpp", spdx + x3)) == Lines{});
    CHECK(broken_rules(tree_with("tools/ikat/argument_parser.cpp", spdx + x3)) == Lines{});
    CHECK(broken_rules(tree_with("codegen/nvptx/emit/emit.cpp", spdx + x3)) ==
          Lines{"codegen/nvptx/emit/emit.cpp:2: Spirit X3 is read by codegen/nvptx/emit/emit.cpp, which is not called "
                "parse*.cpp or *_parser.cpp"});

    Tree tree = tree_with("codegen/ptx/text/parse/grammar.hpp", header(x3));
    tree["codegen/ptx/text/parse/parse.cpp"] = spdx + "#include \"codegen/ptx/text/parse/grammar.hpp\"\n";
    CHECK(broken_rules(tree) == Lines{});
    tree["codegen/nvptx/emit/emit.cpp"] = spdx + "#include \"codegen/ptx/text/parse/grammar.hpp\"\n";
    CHECK(broken_rules(tree).size() == 1);
    tree["codegen/ptx/text/module.hpp"] = header("#include \"codegen/ptx/text/parse/grammar.hpp\"\n");
    CHECK(broken_rules(tree).size() == 3);  // emit.cpp, the public header and the example that includes it
}

TEST_CASE("Hana stays in dsl/memory/fields.hpp and dsl/kernel/kernel.hpp") {
    CHECK(broken_rules(tree_with("dsl/values/value.hpp", header("#include <boost/hana/tuple.hpp>\n"))) ==
          Lines{"dsl/values/value.hpp:3: Hana belongs in dsl/memory/fields.hpp and dsl/kernel/kernel.hpp alone"});
}

TEST_CASE("fmt stays out of what users include, and only out of that") {
    CHECK(broken_rules(tree_with("runtime/device.hpp", header("#include <fmt/format.h>\n"))) ==
          Lines{"runtime/device.hpp:3: fmt in a header that include/ikat reaches"});
    CHECK(broken_rules(tree_with("codegen/ptx/text.hpp", header("#include <fmt/format.h>\n"))) == Lines{});
}

TEST_CASE("what users include reaches nothing from inside of the emulator and the compiler's end") {
    Tree tree = tree_with("runtime/emulator/core/memory/memory.hpp", header("#include <vector>\n"));
    CHECK(broken_rules(tree) == Lines{});
    tree["runtime/device.hpp"] = header("#include \"runtime/emulator/core/memory/memory.hpp\"\n");
    CHECK(broken_rules(tree) == Lines{"runtime/emulator/core/memory/memory.hpp:1: include/ikat reaches this header"});
    CHECK(broken_rules(tree_with("regalloc/regalloc.hpp", header(""))) == Lines{});
}

TEST_CASE("files and folders that are too large are divided") {
    std::string lines = spdx;
    for (int i = 1; i < 450; ++i) lines += "// a line\n";
    CHECK(broken_rules(tree_with("codegen/ir/a.cpp", lines)) == Lines{});
    CHECK(broken_rules(tree_with("codegen/ir/a.cpp", lines + "// more\n")) ==
          Lines{"codegen/ir/a.cpp:451: a file of 451 lines: split it"});
    CHECK(broken_rules(tree_with("tests/a.cpp", lines + "// more\n")) == Lines{});
    Tree tree = tree_with("regalloc/a.cpp", spdx);
    for (char c = 'b'; c <= 'y'; ++c) tree["regalloc/" + std::string(1, c) + ".cpp"] = spdx;
    CHECK(broken_rules(tree) == Lines{});
    tree["regalloc/z.cpp"] = spdx;
    CHECK(broken_rules(tree) == Lines{"regalloc/z.cpp:1: more than 25 files in a folder: divide it"});
}

TEST_CASE("functions that are too long are divided") {
    std::string body;
    for (int i = 0; i < 60; ++i) body += "    f();\n";
    const std::string more = "    if (x) {\n    }\n", hint = " lines: divide it";
    CHECK(broken_rules(tree_with("dsl/a.cpp", spdx + "void g() {\n" + body + "}\n")) == Lines{});
    CHECK(broken_rules(tree_with("dsl/a.cpp", spdx + "void g() {\n" + body + more + "}\n")) ==
          Lines{"dsl/a.cpp:2: a function of 62" + hint});
    CHECK(broken_rules(tree_with("dsl/a.cpp", spdx + "void g(int a,\n       int b) {\n" + body + more + "}\n")) ==
          Lines{"dsl/a.cpp:3: a function of 62" + hint});
    CHECK(broken_rules(tree_with("dsl/a.cpp", spdx + "namespace n {\n" + body + more + "}\n")) == Lines{});
    std::string member = spdx + "struct S {\n    void g() {\n";
    for (int i = 0; i < 60; ++i) member += "        f();\n";
    CHECK(broken_rules(tree_with("dsl/a.cpp", member + "        f();\n    }\n};\n")) ==
          Lines{"dsl/a.cpp:3: a function of 61" + hint});
    CHECK(broken_rules(tree_with("tests/a.cpp", spdx + "void g() {\n" + body + more + "}\n")) == Lines{});
}

TEST_CASE("above the language nothing names an AST") {
    const std::string what = ": above dsl nothing names an AST: take a KernelHandle or a KernelInfo";
    CHECK(broken_rules(tree_with("stdlib/norm/a.cpp", spdx + "void run(const ast::KernelTree& kernel);\n")) ==
          Lines{"stdlib/norm/a.cpp:2" + what});
    CHECK(broken_rules(tree_with("stdlib/norm/a.cpp", spdx + "void run(const trace::Array& x);\n")) ==
          Lines{"stdlib/norm/a.cpp:2: the library names nothing of dsl's recorder: what it needs is part of the "
                "language, or "
                "becomes it"});
    CHECK(broken_rules(tree_with("dsl/record/a.cpp", spdx + "void run(const trace::Array& x);\n")) == Lines{});
    CHECK(broken_rules(tree_with("dsl/record/a.cpp", spdx + "void run(const ast::KernelTree& kernel);\n")) == Lines{});
    Tree tree = tree_with("codegen/ast/ast.hpp", header(""));
    tree["runtime/a.cpp"] = spdx + "#include \"codegen/ast/ast.hpp\"\n";
    CHECK(broken_rules(tree) == Lines{"runtime/a.cpp:2" + what});
}

TEST_CASE("words of PTX are compared in its rooms alone") {
    const std::string line = spdx + "if (module.text(variable.space) == \".shared\") return;\n";
    CHECK(broken_rules(tree_with("codegen/ptx/text/words.cpp", line)) == Lines{});
    CHECK(broken_rules(tree_with("tools/cli/text/files.cpp", line)) == Lines{});
    CHECK(broken_rules(tree_with("codegen/report/a.cpp", line)) ==
          Lines{"codegen/report/a.cpp:2: a comparison with a word of PTX: ask for what it means "
                "(codegen/ptx/text/words.hpp)"});
    CHECK(broken_rules(tree_with("runtime/cache.cpp", spdx + "module.find(\".bulk\");\n")).size() == 1);
}

TEST_CASE("a file begins with its licence, and a header has #pragma once") {
    CHECK(broken_rules(tree_with("dsl/a.cpp", "// no licence\n")) ==
          Lines{"dsl/a.cpp:1: the first line must be // SPDX-License-Identifier: Apache-2.0"});
    CHECK(broken_rules(tree_with("dsl/a.hpp", spdx)) == Lines{"dsl/a.hpp:1: a header needs #pragma once"});
}

TEST_CASE("the library does not read the environment or write to standard error on its own") {
    CHECK(broken_rules(tree_with("runtime/a.cpp", spdx + "auto home = std::getenv(\"HOME\");\n")) ==
          Lines{"runtime/a.cpp:2: environment() reads the environment"});
    CHECK(broken_rules(tree_with("codegen/passes/a.cpp", spdx + "std::fputs(text, stderr);\n")) ==
          Lines{"codegen/passes/a.cpp:2: the library throws Error, or says it with note()"});
    CHECK(broken_rules(tree_with("tools/cli/a.cpp", spdx + "std::cerr << std::getenv(\"HOME\");\n")) == Lines{});
}

TEST_CASE("only effects() reads the traits for effects") {
    const std::string asks = spdx + "bool b = has(inst.op, ir::Convergent) && !reads;\n";
    CHECK(broken_rules(tree_with("codegen/passes/a.cpp", asks)) ==
          Lines{"codegen/passes/a.cpp:2: effects() says what an operation does, not its traits"});
    CHECK(broken_rules(tree_with("codegen/ir/op/effects.hpp", header(asks))) == Lines{});
}
