// SPDX-License-Identifier: Apache-2.0
#include "tools/testing/golden.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <optional>
#include <set>
#include <sstream>
#include <vector>

#include "codegen/support/diagnostic.hpp"
#include "codegen/support/write_file.hpp"
#include "tools/testing/diff.hpp"

namespace ikat::golden {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view run_prefix = "// run:";
constexpr std::string_view mark = "// ---- expect ----\n";

struct Registry {
    std::map<std::string, Action, std::less<>> actions;
    std::set<std::string> taken_twice;
};

Registry& registry() {
    static Registry instance;  // registrations are namespace-scope objects: the registry must exist before them
    return instance;
}

std::optional<std::string> read(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) return std::nullopt;
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
}

bool write(const fs::path& file, std::string_view text) {
    try {
        write_file(file.string(), text);
        return true;
    } catch (const Error&) { return false; }
}

/// Whether a variable of the environment has this value.
bool says(const char* variable, std::string_view value) {
    const char* found = std::getenv(variable);
    return found && found == value;
}

std::string_view trim(std::string_view text) {
    constexpr std::string_view blanks = " \t\r";
    const auto first = text.find_first_not_of(blanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// A parsed golden file. `head` is everything up to the mark; `expected` is absent in a file that was never blessed.
struct File {
    std::string head;
    std::string verb;
    Case test;
    std::optional<std::string> expected;
};

/// The mark counts only at the start of a line.
std::size_t find_mark(std::string_view text) {
    std::size_t at = text.find(mark);
    while (at != std::string_view::npos && at != 0 && text[at - 1] != '\n') at = text.find(mark, at + 1);
    return at;
}

File parse(const fs::path& path, const std::string& text) {
    File file;
    const std::size_t cut = find_mark(text);
    file.head = text.substr(0, cut);
    if (cut != std::string::npos) file.expected = text.substr(cut + mark.size());

    const std::size_t first_line = std::min(file.head.find('\n'), file.head.size());
    const std::string_view header = std::string_view(file.head).substr(0, first_line);
    if (header.starts_with(run_prefix)) {
        const std::string_view command = trim(header.substr(run_prefix.size()));
        const std::size_t verb_end = std::min(command.find(' '), command.size());
        file.verb = command.substr(0, verb_end);
        file.test.args = trim(command.substr(verb_end));
    }
    file.test.input = file.head.substr(first_line);
    file.test.file = path.filename().string();
    return file;
}

std::string known_verbs() {
    std::string out;
    for (const auto& [verb, action] : registry().actions) out += (out.empty() ? "" : ", ") + verb;
    return out.empty() ? "none" : out;
}

Result failure(const fs::path& path, const std::string& message) {
    return {.message = path.string() + ":1: " + message};
}

/// The output of an action; for a user's mistake, the text of the error.
std::string output_of(const Action& action, const Case& test) {
    std::string text;
    try {
        text = action(test);
    } catch (const Error& error) { text = error.what(); }
    if (!text.empty() && text.back() != '\n') text += '\n';
    return text;
}

std::string difference(const fs::path& path, std::string_view expected, std::string_view actual) {
    return path.string() + ":1: output differs (- expected, + actual)\n" + diff(expected, actual);
}

Result differs(const std::string& difference, const std::string& bless_command) {
    return {.message =
                difference + "If the new output is right:  " + bless_command + "\nthen review it with git diff."};
}

/// Whether the user approves a file's difference: by BLESS=all, or by answering.
class Approval {
public:
    bool operator()(const std::string& difference) {
        std::printf("%s", difference.c_str());
        if (all_) return true;
        std::printf("Is the new output right? y(es), a(ll remaining), n(o): ");
        std::fflush(stdout);
        std::string answer;
        std::getline(std::cin, answer);
        std::puts("");
        all_ = answer == "a";
        return all_ || answer == "y";
    }

private:
    bool all_ = says("BLESS", "all");
};

Result judge(const fs::path& path, const File& file, const std::string& actual, const Options& options) {
    if (file.expected == actual) return {.passed = true};
    const std::string change = difference(path, file.expected.value_or(""), actual);
    if (options.bless && options.bless(change)) {
        std::string head = file.head;
        if (head.back() != '\n') head += '\n';
        if (!write(path, head + std::string(mark) + actual)) return failure(path, "cannot be written");
        return {.passed = true, .rewritten = true};
    }
    if (!file.expected)
        return failure(path, "has no line \"// ---- expect ----\"; add it with:  " + options.bless_command);
    if (options.bless) return failure(path, "was not approved; BLESS=all in the environment approves all files");
    return differs(change, options.bless_command);
}

/// All files below a folder, sorted by name; a path to a file gives that file.
std::vector<fs::path> files_below(const fs::path& path) {
    if (fs::is_regular_file(path)) return {path};
    std::vector<fs::path> files;
    if (fs::is_directory(path))
        for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path))
            if (entry.is_regular_file() && !entry.path().filename().string().starts_with('.'))
                files.push_back(entry.path());
    std::ranges::sort(files);
    return files;
}

struct Totals {
    int files = 0, failed = 0, rewritten = 0;
};

void run_below(const fs::path& folder, const Options& options, Totals& totals) {
    const std::vector<fs::path> files = files_below(folder);
    if (files.empty()) {
        std::fprintf(stderr, "%s: no golden files here\n", folder.c_str());
        ++totals.failed;
    }
    for (const fs::path& file : files) {
        const Result result = run_file(file, options);
        ++totals.files;
        totals.failed += !result.passed;
        totals.rewritten += result.rewritten;
        if (!result.passed) std::fprintf(stderr, "%s\n\n", result.message.c_str());
        if (result.rewritten) std::printf("blessed %s\n", file.c_str());
    }
}

}  // namespace

Registration::Registration(std::initializer_list<std::pair<const std::string, Action>> rows) {
    for (const auto& [verb, action] : rows)
        if (!registry().actions.emplace(verb, action).second) registry().taken_twice.insert(verb);
}

Result run_file(const fs::path& path, const Options& options) {
    const std::optional<std::string> text = read(path);
    if (!text) return failure(path, "cannot be read");
    const File file = parse(path, *text);
    if (file.verb.empty()) return failure(path, "a golden file begins with a line \"// run: ACTION [arguments]\"");
    if (registry().taken_twice.contains(file.verb)) return failure(path, "two actions are called " + file.verb);

    const auto action = registry().actions.find(file.verb);
    if (action == registry().actions.end())
        return failure(path, "no action is called " + file.verb + " (there are: " + known_verbs() + ")");
    try {
        return judge(path, file, output_of(action->second, file.test), options);
    } catch (const std::exception& error) {
        return failure(path, "the action " + file.verb + " threw: " + error.what());
    }
}

int run(int argc, char** argv, std::string_view bless_command) {
    Options options;
    std::vector<fs::path> folders;
    for (int i = 1; i < argc; ++i) {
        if (std::string_view(argv[i]) == "--bless")
            options.bless = Approval();
        else
            folders.emplace_back(argv[i]);
    }
    if (folders.empty()) {
        std::fprintf(stderr, "usage: %s [--bless] PATH...\n", argv[0]);
        return 2;
    }
    options.bless_command = bless_command;
    if (bless_command.empty()) {
        options.bless_command = std::string(argv[0]) + " --bless";
        for (const fs::path& folder : folders) options.bless_command += ' ' + folder.string();
    }

    Totals totals;
    for (const fs::path& folder : folders) run_below(folder, options, totals);
    std::printf("%d golden files, %d failed, %d rewritten\n", totals.files, totals.failed, totals.rewritten);
    return totals.failed ? 1 : 0;
}

Result compare(const fs::path& file, std::string_view actual) {
    const std::optional<std::string> expected = read(file);
    if (expected && *expected == actual) return {.passed = true};
    const std::string change = difference(file, expected.value_or(""), actual);
    if (says("IKAT_BLESS", "1")) {
        std::printf("%s", change.c_str());
        if (!write(file, actual)) return failure(file, "cannot be written");
        return {.passed = true, .rewritten = true};
    }
    return differs(change, "run the test again with IKAT_BLESS=1");
}

}  // namespace ikat::golden
