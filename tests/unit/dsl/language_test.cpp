// SPDX-License-Identifier: Apache-2.0
// The pages of the language, docs/language.md and docs/language: the index lists each page, their table of
// approximations agrees with the op table, and they have all enumerators that calls take.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "codegen/ir/op/op.hpp"
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

/// The index, then the pages below it in the order of their names.
std::vector<std::string> pages() {
    std::vector<std::string> out{"docs/language.md"};
    for (const auto& entry : std::filesystem::directory_iterator(IKAT_SOURCE_DIR "/docs/language"))
        out.push_back("docs/language/" + entry.path().filename().string());
    std::sort(out.begin() + 1, out.end());
    return out;
}

Lines lines_of_pages() {
    Lines out;
    for (const std::string& page : pages())
        for (const std::string& line : lines_of(page)) out.push_back(line);
    return out;
}

TEST_CASE("docs/language.md lists each page of docs/language") {
    const Lines index = lines_of("docs/language.md");
    const std::vector<std::string> names = pages();
    for (auto page = names.begin() + 1; page != names.end(); ++page) {
        const std::string name = page->substr(std::string("docs/language/").size());
        INFO(name);
        CHECK(std::ranges::count_if(index, [&](const std::string& line) {
                  return line.starts_with("| [" + name + "](language/" + name + ") |");
              }) == 1);
    }
    CHECK(names.size() > 1);
}

TEST_CASE("the pages of the language give the errors of approximations of the op table") {
    std::string page;
    for (const std::string& line : lines_of_pages()) page += line + '\n';
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

TEST_CASE("the pages of the language list the enumerators that calls take") {
    const Lines page = lines_of_pages();
    for (const auto& [file, name] : {std::pair("codegen/ir/op/memory.hpp", "Order"),
                                     {"codegen/ir/op/memory.hpp", "Scope"},
                                     {"codegen/ir/op/forms/barriers.hpp", "FenceOrder"},
                                     {"codegen/support/half.hpp", "Rounding"},
                                     {"dsl/values/bits.hpp", "Permute"},
                                     {"dsl/values/bits.hpp", "Funnel"}}) {
        const std::string start = "enum class " + std::string(name) + " : std::uint8_t { ";
        const Lines code = lines_of(file);
        const auto line = std::ranges::find_if(code, [&](const std::string& l) { return l.starts_with(start); });
        const auto row = std::ranges::find_if(
            page, [&](const std::string& l) { return l.starts_with("| `" + std::string(name) + "` |"); });
        INFO(name);
        REQUIRE(line != code.end());
        REQUIRE(row != page.end());
        std::istringstream names(line->substr(start.size()));
        for (std::string enumerator; names >> enumerator && enumerator != "};";) {
            if (enumerator.ends_with(',')) enumerator.pop_back();
            INFO(enumerator);
            CHECK(row->find('`' + enumerator + '`') != row->npos);
        }
    }
}

}  // namespace
}  // namespace ikat
