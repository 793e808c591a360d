// SPDX-License-Identifier: Apache-2.0
// Every example of docs/language.md stands, line for line, in language_examples.cpp; every row of its table of
// approximations is the op table's.
#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "codegen/ir/op.hpp"
#include "tests/catch.hpp"

namespace ikat {
namespace {

using Lines = std::vector<std::string>;

/// The lines of a file without their indentation.
Lines lines_of(const std::string& path) {
    std::ifstream file(std::string(IKAT_SOURCE_DIR) + '/' + path);
    Lines out;
    for (std::string line; std::getline(file, line);) {
        const std::size_t first = line.find_first_not_of(' ');
        out.push_back(first == line.npos ? "" : line.substr(first));
    }
    return out;
}

std::vector<Lines> examples_of(const Lines& page) {
    std::vector<Lines> out;
    bool inside = false;
    for (const std::string& line : page) {
        if (line == "```cpp") out.emplace_back();
        if (inside && line != "```") out.back().push_back(line);
        if (line.starts_with("```")) inside = line == "```cpp";
    }
    return out;
}

TEST_CASE("docs/language.md shows code that compiles") {
    const Lines page = lines_of("docs/language.md"), code = lines_of("tests/unit/dsl/language_examples.cpp");
    const std::vector<Lines> examples = examples_of(page);
    CHECK(examples.size() > 10);
    for (const Lines& example : examples) {
        INFO("this example is not in language_examples.cpp: " << example.at(0));
        CHECK(std::search(code.begin(), code.end(), example.begin(), example.end()) != code.end());
    }
}

TEST_CASE("docs/language.md tells the errors of approximations as the op table does") {
    std::string page;
    for (const std::string& line : lines_of("docs/language.md")) page += line + '\n';
    const auto row = [&](const char* name, ir::Op op) {
        const std::size_t at = page.find(std::string("`approx::") + name);
        REQUIRE(at != page.npos);
        const std::string line = page.substr(at, page.find('\n', at) - at);
        INFO(line);
        CHECK(line.find("; " + std::to_string(int(ir::info(op).ulp)) + " ulp") != line.npos);
    };
    row("sqrt", ir::Op::Sqrt);
    row("rcp", ir::Op::Rcp);
    row("div", ir::Op::Div);
    row("exp2", ir::Op::Exp2);
    row("rsqrt", ir::Op::Rsqrt);
    row("log2", ir::Op::Log2);
    row("tanh", ir::Op::Tanh);
}

}  // namespace
}  // namespace ikat
