// SPDX-License-Identifier: Apache-2.0
// Most tests rely on the golden runner, so it must fail when it should.
#include "tools/testing/golden.hpp"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include "codegen/support/diagnostic.hpp"
#include "tests/catch.hpp"

namespace fs = std::filesystem;
using namespace ikat;
using tests::contains;

namespace {

const golden::Registration actions({
    {"upper",
     [](const golden::Case& test) {
         std::string out = test.input;
         for (char& c : out) c = char(std::toupper(c));
         return out;
     }},
    {"show", [](const golden::Case& test) { return test.args + '|' + test.file + '|' + test.input; }},
    {"refuse", [](const golden::Case&) -> std::string { throw Error("no", "yes"); }},
    {"break", [](const golden::Case&) -> std::string { throw std::runtime_error("out of order"); }},
    {"twin", [](const golden::Case&) { return std::string(); }},
});
const golden::Registration again({{"twin", [](const golden::Case&) { return std::string(); }}});

class Folder {
public:
    Folder() {
        std::string pattern = (fs::temp_directory_path() / "ikat-golden-XXXXXX").string();
        REQUIRE(mkdtemp(pattern.data()));
        path_ = pattern;
    }
    ~Folder() { fs::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    fs::path path(const std::string& name = "") const { return path_ / name; }
    fs::path write(const std::string& name, const std::string& text) const {
        fs::create_directories(path(name).parent_path());
        std::ofstream(path(name)) << text;
        return path(name);
    }
    std::string read(const std::string& name) const {
        std::ostringstream text;
        text << std::ifstream(path(name)).rdbuf();
        return text.str();
    }

private:
    fs::path path_;
};

const golden::Options check{.bless_command = "do bless"};
const golden::Options bless{.bless = [](const std::string&) { return true; }, .bless_command = "do bless"};

int run_main(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "runner");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    return golden::run(int(argv.size()), argv.data());
}

}  // namespace

TEST_CASE("a golden file passes when the output is as approved") {
    const Folder folder;
    const auto file = folder.write("a.txt", "// run: upper\nabc\n// ---- expect ----\n\nABC\n");
    const auto result = golden::run_file(file, check);
    CHECK(result.message == "");
    CHECK(result.passed);
}

TEST_CASE("an action gets arguments, the file's name and input whose lines keep their numbers") {
    const Folder folder;
    const auto file = folder.write("a.txt", "// run: show  x  y \nabc\n// ---- expect ----\nx  y|a.txt|\nabc\n");
    CHECK(golden::run_file(file, check).passed);
}

TEST_CASE("a difference fails, shows a diff and the command that blesses") {
    const Folder folder;
    const auto file = folder.write("a.txt", "// run: upper\nabc\n// ---- expect ----\n\nABD\n");
    const auto result = golden::run_file(file, check);
    CHECK_FALSE(result.passed);
    CHECK_THAT(result.message, contains("a.txt:1: output differs"));
    CHECK_THAT(result.message, contains("-ABD\n+ABC\n"));
    CHECK_THAT(result.message, contains("do bless"));
}

TEST_CASE("blessing rewrites only the part below the mark") {
    const Folder folder;
    const auto file = folder.write("a.txt", "// run: upper\nabc\n// ---- expect ----\nold\n");
    const auto result = golden::run_file(file, bless);
    CHECK(result.passed);
    CHECK(result.rewritten);
    CHECK(folder.read("a.txt") == "// run: upper\nabc\n// ---- expect ----\n\nABC\n");
    CHECK(golden::run_file(file, check).passed);
    CHECK_FALSE(golden::run_file(file, bless).rewritten);
}

TEST_CASE("a new file has no expectation, fails, and is completed by blessing") {
    const Folder folder;
    const auto file = folder.write("a.txt", "// run: upper\nabc");
    const auto before = golden::run_file(file, check);
    CHECK_FALSE(before.passed);
    CHECK_THAT(before.message, contains("do bless"));
    CHECK(golden::run_file(file, bless).rewritten);
    CHECK(folder.read("a.txt") == "// run: upper\nabc\n// ---- expect ----\n\nABC\n");
}

TEST_CASE("the mark inside a line is input") {
    const Folder folder;
    const auto file = folder.write("a.txt", "// run: upper\nsay // ---- expect ----\nb\n");
    CHECK_FALSE(golden::run_file(file, check).passed);
    golden::run_file(file, bless);
    CHECK_THAT(folder.read("a.txt"), contains("b\n// ---- expect ----\n\nSAY // ---- EXPECT ----\nB\n"));
    CHECK(golden::run_file(file, check).passed);
}

TEST_CASE("a file without a run line or with an unknown action is a readable failure") {
    const Folder folder;
    const auto nothing = golden::run_file(folder.write("a.txt", "abc\n"), check);
    CHECK_FALSE(nothing.passed);
    CHECK_THAT(nothing.message, contains("// run: ACTION"));
    const auto unknown = golden::run_file(folder.write("b.txt", "// run: lower\nabc\n"), bless);
    CHECK_FALSE(unknown.passed);
    CHECK_THAT(unknown.message, contains("no action is called lower (there are: break, refuse, show, twin, upper)"));
    CHECK_FALSE(golden::run_file(folder.path("absent.txt"), check).passed);
    CHECK_FALSE(golden::run_file(folder.write("empty.txt", ""), bless).passed);
}

TEST_CASE("a verb registered twice is reported where it is used") {
    const Folder folder;
    CHECK_THAT(golden::run_file(folder.write("a.txt", "// run: twin\n"), check).message, contains("two actions"));
}

TEST_CASE("a user error is output, any other exception is a failure that bless does not hide") {
    const Folder folder;
    const auto refuse = folder.write("a.txt", "// run: refuse\n// ---- expect ----\nerror: no\n  hint: yes\n");
    CHECK(golden::run_file(refuse, check).passed);
    const auto broken = golden::run_file(folder.write("b.txt", "// run: break\n"), bless);
    CHECK_FALSE(broken.passed);
    CHECK_THAT(broken.message, contains("out of order"));
}

TEST_CASE("the runner's status counts the files below its folders") {
    const Folder folder;
    folder.write("good/a.txt", "// run: upper\nabc\n// ---- expect ----\n\nABC\n");
    folder.write("bad/deep/b.txt", "// run: upper\nabc\n// ---- expect ----\n\nwrong\n");
    fs::create_directories(folder.path("empty"));
    CHECK(run_main({folder.path("good")}) == 0);
    CHECK(run_main({folder.path("good"), folder.path("bad")}) == 1);
    CHECK(run_main({folder.path("empty")}) == 1);
    CHECK(run_main({folder.path("absent")}) == 1);
    CHECK(run_main({}) == 2);
}

TEST_CASE("blessing asks about each file, unless BLESS is all") {
    const Folder folder;
    const std::string old = "// run: upper\nabc\n// ---- expect ----\nold\n";
    const auto blessed = [&](const std::string& answers) {
        for (const char* name : {"a.txt", "b.txt", "c.txt"}) folder.write(name, old);
        std::istringstream input(answers);
        std::streambuf* const terminal = std::cin.rdbuf(input.rdbuf());
        const int status = run_main({"--bless", folder.path()});
        std::cin.rdbuf(terminal);
        std::cin.clear();
        std::string names;
        for (const char* name : {"a.txt", "b.txt", "c.txt"})
            if (folder.read(name) != old) names += name[0];
        return names + ' ' + std::to_string(status);
    };
    unsetenv("BLESS");
    CHECK(blessed("") == " 1");
    CHECK(blessed("n\nyes\ny\n") == "c 1");
    CHECK(blessed("n\na\n") == "bc 1");
    CHECK(blessed("a\n") == "abc 0");
    setenv("BLESS", "all", 1);
    CHECK(blessed("") == "abc 0");
    unsetenv("BLESS");
    CHECK(run_main({folder.path()}) == 0);
}

TEST_CASE("compare compares a string with a file and writes it when IKAT_BLESS is 1") {
    const Folder folder;
    unsetenv("IKAT_BLESS");
    CHECK(golden::compare(folder.write("a.ptx", "ret;\n"), "ret;\n").passed);
    const auto differs = golden::compare(folder.path("a.ptx"), "exit;\n");
    CHECK_FALSE(differs.passed);
    CHECK_THAT(differs.message, contains("-ret;\n+exit;\n"));
    CHECK_THAT(differs.message, contains("IKAT_BLESS=1"));
    CHECK_FALSE(golden::compare(folder.path("new.ptx"), "").passed);

    setenv("IKAT_BLESS", "1", 1);
    CHECK(golden::compare(folder.path("new.ptx"), "exit;\n").rewritten);
    unsetenv("IKAT_BLESS");
    CHECK(folder.read("new.ptx") == "exit;\n");
}
