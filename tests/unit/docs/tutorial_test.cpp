// SPDX-License-Identifier: Apache-2.0
// Each page of docs/tutorial shows its program: its ```cpp blocks are lines of the source, its ```text blocks are lines
// of the output; the same holds for docs/emulator.md and its program. The locations in messages (folder, line, column)
// are not compared.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/docs/lines.hpp"

namespace {

using namespace ikat::tests;

Lines output_of_program(const std::string& program) {
    const Output output = output_of("IKAT_DEVICE=emulator '" IKAT_EXAMPLES "/" + program + "'");
    CHECK(output.is_done);
    return output.lines;
}

void check_contained(const std::vector<Lines>& blocks, const Lines& whole) {
    CHECK_FALSE(blocks.empty());
    for (const Lines& block : blocks) {
        INFO("not there: " << block.at(0));
        CHECK(contains(whole, block));
    }
}

void check_page(const std::filesystem::path& page, const std::filesystem::path& source) {
    const Lines lines = lines_of_file(root / page);
    check_contained(blocks_of(lines, "```cpp"), lines_of_file(root / source));
    check_contained(blocks_of(lines, "```text"), output_of_program(source.stem().string()));
}

}  // namespace

TEST_CASE("docs/emulator.md shows a program that counts traffic") {
    check_page("docs/emulator.md", "examples/memory_traffic.cpp");
}

TEST_CASE("the pages of the tutorial show their programs") {
    std::size_t pages = 0;
    for (const auto& source : std::filesystem::directory_iterator(root / "examples/tutorial")) {
        const std::string program = source.path().stem().string();
        std::string name = program;
        std::ranges::replace(name, '_', '-');
        INFO(name);
        check_page("docs/tutorial/" + name + ".md", source.path());
        ++pages;
    }
    CHECK(pages == 11);
}
