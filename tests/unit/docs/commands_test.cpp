// SPDX-License-Identifier: Apache-2.0
// The ```console blocks of the documentation and of README.md are what a shell shows: after a command, `$ ikat ...`,
// comes its output. The commands of a block run one after the other in a folder of their own.
#include <unistd.h>

#include <string>

#include "tests/catch.hpp"
#include "tests/unit/docs/lines.hpp"

namespace {

using namespace ikat::tests;
namespace fs = std::filesystem;

Output run(const std::string& command, const fs::path& folder) {
    return output_of("cd '" + folder.string() + "' && PATH=" + fs::path(IKAT_CLI).parent_path().string() +
                     ":$PATH IKAT_DEVICE=emulator && export PATH IKAT_DEVICE && { " + command + "; }");
}

/// The number of commands of a block.
std::size_t check(const Lines& block) {
    const fs::path folder = fs::temp_directory_path() / ("ikat_docs_" + std::to_string(getpid()));
    fs::create_directories(folder);
    std::size_t commands = 0;
    for (std::size_t at = 0; at < block.size();) {
        REQUIRE(block[at].starts_with("$ "));
        const std::string command = block[at++].substr(2);
        Lines wanted;
        while (at < block.size() && !block[at].starts_with("$ ")) wanted.push_back(block[at++]);
        INFO(command);
        const auto [lines, is_done] = run(command, folder);
        CHECK(lines == wanted);
        CHECK(is_done);
        ++commands;
    }
    fs::remove_all(folder);
    return commands;
}

}  // namespace

TEST_CASE("commands in the documentation print what it says") {
    std::size_t commands = 0;
    for (const auto& page : fs::recursive_directory_iterator(root / "docs")) {
        if (page.path().extension() != ".md") continue;
        INFO(page.path().string());
        for (const Lines& block : blocks_of(lines_of_file(page.path()), "```console")) commands += check(block);
    }
    for (const Lines& block : blocks_of(lines_of_file(root / "README.md"), "```console")) commands += check(block);
    CHECK(commands >= 9);
}

TEST_CASE("the pictures of the documentation are what their commands draw") {
    const fs::path folder = fs::temp_directory_path() / ("ikat_pictures_" + std::to_string(getpid()));
    fs::create_directories(folder);
    CHECK(run((root / "docs/pictures/draw").string() + " .", folder).is_done);
    std::size_t drawn = 0, kept = 0;
    for (const auto& picture : fs::directory_iterator(folder)) {
        INFO(picture.path().filename().string() << " differs: docs/pictures/draw makes it anew");
        CHECK(lines_of_file(picture.path()) == lines_of_file(root / "docs/pictures" / picture.path().filename()));
        ++drawn;
    }
    for (const auto& picture : fs::directory_iterator(root / "docs/pictures"))
        kept += picture.path().extension() == ".svg";
    CHECK(drawn == kept);
    fs::remove_all(folder);
}
