// SPDX-License-Identifier: Apache-2.0
// docs/cli.md documents every option of every command and every environment variable that ikat reads.
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/catch.hpp"
#include "tests/unit/docs/lines.hpp"

namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
    std::ifstream file(path);
    REQUIRE(file);
    std::ostringstream out;
    out << file.rdbuf();
    return out.str();
}

std::set<std::string> found(const std::string& text, const char* pattern) {
    const std::regex expression(pattern);
    std::set<std::string> out;
    for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at) out.insert(at->str(1));
    return out;
}

using ikat::tests::root;

}  // namespace

TEST_CASE("docs/cli.md has every option that the commands' help has") {
    const std::string page = text_of(root / "docs/cli.md");
    const auto options = found(text_of(root / "tests/golden/cli/help.txt"), R"((--[a-z][a-z-]+))");
    CHECK(options.size() > 10);
    for (const std::string& option : options) {
        INFO(option);
        CHECK((option == "--output" || page.find(option) != page.npos));  // -o is its name on the page
    }
}

TEST_CASE("docs/cli.md has every variable of the environment, and no others") {
    std::set<std::string> read;
    for (const char* folder : {"codegen", "dsl", "regalloc", "runtime", "stdlib", "tools/cli", "tools/cuda_driver"})
        for (const auto& file : fs::recursive_directory_iterator(root / folder))
            if (file.path().extension() == ".cpp") read.merge(found(text_of(file.path()), R"x("(IKAT_[A-Z_]+)")x"));
    const std::string page = text_of(root / "docs/cli.md");
    CHECK(found(page.substr(page.find("## Environment")), R"(\| `(IKAT_[A-Z_]+)` \|)") == read);
}
