// SPDX-License-Identifier: Apache-2.0
// Two actions that show how golden files work and test the runner itself.
#include "codegen/support/diagnostic.hpp"
#include "tools/testing/golden.hpp"

namespace ikat {
namespace {

std::string echo(const golden::Case& test) { return "args: " + test.args + "\ninput:" + test.input; }

/// Complains about the first line that holds a '!': a diagnostic in a golden file.
std::string no_exclamations(const golden::Case& test) {
    Location where{.file = intern(test.file), .line = 1, .column = 1};
    for (char c : test.input) {
        if (c == '!')
            throw Error(Diagnostic{.where = where,
                                   .message = "an exclamation mark",
                                   .hint = "say it calmly",
                                   .excerpt = excerpt(test.input, where)});
        ++where.column;
        if (c == '\n') where = {.file = where.file, .line = where.line + 1, .column = 1};
    }
    return "calm\n";
}

const golden::Registration runner({{"echo", echo}, {"no-exclamations", no_exclamations}});

}  // namespace
}  // namespace ikat
