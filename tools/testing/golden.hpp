// SPDX-License-Identifier: Apache-2.0
// Golden tests: a file contains what to run, its input and the output that a person approved.
//
//     // run: passes cse                   the action and its arguments
//     ...input...
//     // ---- expect ----
//     ...output...
// run() compares; with --bless it shows each difference and, if it is approved, rewrites the part below the mark. A
// test runs an Action, registered once in the test program:
//
//     const golden::Registration passes({{"passes", [](const golden::Case& test) { return optimised(test); }}});
//     int main(int argc, char** argv) { return ikat::golden::run(argc, argv); }
// For tests in C++ code, compare() compares a string with a file.
#pragma once
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

namespace ikat::golden {

/// The input of an action. `input` starts with an empty line in place of the `// run:` line, so that a line number in
/// a diagnostic is the line of the golden file. `file` is the name without folders, because output must not depend on
/// where the tree is checked out.
struct Case {
    std::string args;
    std::string input;
    std::string file;
};

/// Returns the output. An ikat::Error thrown by an action becomes its rendered text: error messages are golden, too.
using Action = std::function<std::string(const Case&)>;

/// Registers verbs for golden files. run() reports a verb that is registered twice.
struct Registration {
    Registration(std::initializer_list<std::pair<const std::string, Action>> rows);
};

/// Of one golden file.
struct Result {
    bool passed = false;
    bool rewritten = false;  ///< blessed, and the file was changed
    std::string message{};   ///< why it failed, with a small diff; without a trailing newline
};

/// What happens to files whose output differs.
struct Options {
    /// Called with the difference for each file whose output differs: whether to rewrite it. If empty, none is
    /// rewritten.
    std::function<bool(const std::string& difference)> bless{};
    std::string bless_command{};  ///< printed below a difference
};

/// Runs one golden file.
Result run_file(const std::filesystem::path& file, const Options& options);

/// Runs every file below the folders (or the files) given: `[--bless] PATH...`. Returns the exit status: 0 if all
/// passed, 1 if one did not, 2 for bad usage. A folder without files is a failure, because it tests nothing. --bless
/// prints the difference of each file and reads from standard input whether it is right: y (yes), a (this and all
/// remaining), or anything else (no, and the file fails). BLESS=all in the environment answers yes for all and still
/// prints.
int run(int argc, char** argv, std::string_view bless_command = {});

/// Compares `actual` with the whole contents of `file`. With IKAT_BLESS=1 in the environment it prints the difference
/// and writes the file.
Result compare(const std::filesystem::path& file, std::string_view actual);

}  // namespace ikat::golden
