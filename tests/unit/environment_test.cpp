// SPDX-License-Identifier: Apache-2.0
#include "tests/environment.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "codegen/support/environment.hpp"
#include "tests/catch.hpp"

using namespace ikat;
namespace fs = std::filesystem;

namespace {

/// a/tool and b/tool are programs, c/tool may not be run, d/tool is a folder.
struct Folders {
    fs::path root = fs::temp_directory_path() / ("ikat-environment-" + std::to_string(getpid()));

    Folders() {
        for (const char* folder : {"a", "b", "c"}) {
            fs::create_directories(root / folder);
            std::ofstream(root / folder / "tool") << "#!/bin/sh\n";
            if (folder[0] != 'c') fs::permissions(root / folder / "tool", fs::perms::owner_exec, fs::perm_options::add);
        }
        fs::create_directories(root / "d/tool");
    }
    ~Folders() { fs::remove_all(root); }
    std::string path(const char* name) const { return (root / name).string(); }
};

}  // namespace

TEST_CASE("programs are files that may be run") {
    const Folders folders;
    CHECK(is_program(folders.path("a/tool")));
    CHECK_FALSE(is_program(folders.path("c/tool")));
    CHECK_FALSE(is_program(folders.path("d/tool")));
    CHECK_FALSE(is_program(folders.path("e/tool")));
    CHECK_FALSE(is_program(""));
}

TEST_CASE("programs are found in the folders of PATH in their order, and then in the last") {
    const Folders folders;
    const auto found = [](const std::string& path, const std::string& last = "") {
        const tests::Environment set("PATH", path.c_str());
        return find_program("tool", last);
    };
    const std::string a = folders.path("a"), b = folders.path("b"), c = folders.path("c"), d = folders.path("d");
    CHECK(found(a + ":" + b) == a + "/tool");
    CHECK(found(b + ":" + a) == b + "/tool");
    CHECK(found(folders.path("e") + ":" + c + ":" + d + ":" + b) == b + "/tool");
    CHECK(found(c + ":" + d) == std::nullopt);
    CHECK(found(c, b) == b + "/tool");
    CHECK(found(a, b) == a + "/tool");
    CHECK(found(c, d) == std::nullopt);
    CHECK(found("", a) == a + "/tool");
    CHECK(found("") == std::nullopt);
}

TEST_CASE("an empty name in PATH is the current folder") {
    const Folders folders;
    const fs::path before = fs::current_path();
    fs::current_path(folders.root / "a");
    const tests::Environment set("PATH", ":/nowhere");
    const auto found = find_program("tool");
    fs::current_path(before);
    CHECK(found == "./tool");
}
