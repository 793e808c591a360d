// SPDX-License-Identifier: Apache-2.0
// `dsl-errors NAME`: the errors of the kernel of that name in tests/golden/kernels_errors_*.cpp. Locations are shown as
// the text of the line, because lines move and compilers differ in columns.
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "codegen/support/diagnostic.hpp"
#include "tests/golden/kernels.hpp"
#include "tools/testing/golden.hpp"

namespace ikat {
namespace {

std::string line_of(const Location& where) {
    static std::map<std::string, std::vector<std::string>, std::less<>> files;
    auto& lines = files[where.file];
    if (lines.empty()) {
        // A compiler launcher may have made the path relative to the build folder: use only the file name.
        std::ifstream file(std::string(IKAT_SOURCE_DIR "/tests/golden/") +
                           std::string(std::filesystem::path(where.file).filename()));
        for (std::string line; std::getline(file, line);) lines.push_back(line);
    }
    if (where.line == 0 || where.line > lines.size()) return "?";
    std::string text = lines[where.line - 1];
    text.erase(0, text.find_first_not_of(' '));
    return text.substr(0, text.find("  //"));
}

std::string errors(const golden::Case& test) {
    std::string out;
    check_capture(true);
    try {
        tests::kernel_named(test.args).ast();
        out = "no errors\n";
    } catch (const Error& error) {
        for (const Diagnostic& diagnostic : error.diagnostics()) {
            out += line_of(diagnostic.where) + "\n    error: " + diagnostic.message + '\n';
            for (const Diagnostic::Note& note : diagnostic.notes)
                out += "    " + line_of(note.where) + "\n        note: " + note.message + '\n';
            out += "    hint: " + diagnostic.hint + '\n';
        }
    }
    return out;
}

const golden::Registration dsl_errors_actions({{"dsl-errors", errors}});

}  // namespace
}  // namespace ikat
