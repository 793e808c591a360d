// SPDX-License-Identifier: Apache-2.0
// Code in the documentation is compiled: every ```cpp block of the documentation and of README.md occurs, line for
// line, in a program of examples/ or in one of the files *_examples.cpp of the tests, and every ```cuda block in a
// source that the tests compile with nvcc. So are the names of functions in the text, `stdlib::sum`, by
// names_examples.cpp.
#include <regex>

#include "tests/catch.hpp"
#include "tests/unit/docs/lines.hpp"

namespace {

using namespace ikat::tests;
namespace fs = std::filesystem;

std::vector<fs::path> files_below(const char* folder, std::string_view ending) {
    std::vector<fs::path> out;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder))
        if (entry.path().string().ends_with(ending)) out.push_back(entry.path());
    return out;
}

/// All lines, with a separator between files that occurs in no block.
Lines lines_of_all(const std::vector<fs::path>& files) {
    Lines out;
    for (const fs::path& file : files) {
        const Lines lines = lines_of_file(file);
        out.insert(out.end(), lines.begin(), lines.end());
        out.push_back("```");
    }
    return out;
}

std::vector<fs::path> pages() {
    std::vector<fs::path> out = files_below("docs", ".md");
    out.push_back(root / "README.md");
    return out;
}

/// The cells of a table row without the bars.
std::vector<std::string> cells_of(const std::string& line) {
    std::vector<std::string> out;
    for (std::size_t at = 1; at < line.size();) {
        const std::size_t end = std::min(line.find(" |", at), line.size());
        out.push_back(line.substr(at, end - at));
        at = end + 2;
    }
    return out;
}

}  // namespace

TEST_CASE("docs/errors.md has messages that the tests expect") {
    std::string tests;
    for (const char* ending : {".txt", ".cpp"})
        for (const fs::path& file : files_below("tests", ending))
            if (!file.string().contains("tests/unit/docs"))
                for (const std::string& line : lines_of_file(file)) tests += line + '\n';
    int rows = 0;
    for (const std::string& line : lines_of_file(root / "docs/errors.md")) {
        if (!line.starts_with("| ") || line.starts_with("| you ") || line.starts_with("| the kernel does")) continue;
        const std::string message = cells_of(line).at(1);
        INFO(line);
        REQUIRE(message.size() > 4);
        CHECK(tests.find(message.substr(2, message.size() - 3)) != tests.npos);  // without " `" and "`"
        ++rows;
    }
    CHECK(rows > 40);
}

TEST_CASE("functions that the documentation names are compiled by the tests") {
    const Lines compiled = lines_of_file(root / "tests/unit/docs/names_examples.cpp");
    const std::regex span("`[^`]+`"), name(R"((^|[^:\w])(?:ikat::)?((?:stdlib|approx|golden)(?:::\w+)+)\b)");
    std::size_t count = 0;
    for (const fs::path& page : pages())
        for (const std::string& line : lines_of_file(page))
            for (std::sregex_iterator code(line.begin(), line.end(), span), end; code != end; ++code) {
                const std::string text = code->str();
                for (std::sregex_iterator at(text.begin(), text.end(), name); at != end; ++at) {
                    INFO(page.string() << ": " << text);
                    CHECK(contains(compiled, {"using ikat::" + at->str(2) + ";"}));
                    ++count;
                }
            }
    CHECK(count > 20);
}

TEST_CASE("code in the documentation is compiled by the tests") {
    std::vector<fs::path> sources = files_below("examples", ".cpp");
    for (const fs::path& file : files_below("tests/unit", "_examples.cpp")) sources.push_back(file);
    const Lines cpp = lines_of_all(sources), cuda = lines_of_all(files_below("tests/foreign", ".cu"));

    std::size_t count = 0;
    for (const fs::path& page : pages()) {
        const Lines lines = lines_of_file(page);
        for (const auto& [fence, whole] : {std::pair("```cpp", &cpp), std::pair("```cuda", &cuda)})
            for (const Lines& block : blocks_of(lines, fence)) {
                INFO(page.string() << ": no program has the block that begins with: " << block.at(0));
                CHECK(contains(*whole, block));
                ++count;
            }
    }
    CHECK(count > 50);
}
