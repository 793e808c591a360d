// SPDX-License-Identifier: Apache-2.0
// Actions for golden files of IR: `print` (parse, verify, print again), `verify` (the findings), `locations`.
#include "codegen/ir/text/parse.hpp"
#include "codegen/ir/text/print.hpp"
#include "codegen/ir/verify.hpp"
#include "tools/testing/golden.hpp"

namespace ikat {
namespace {

std::string round_trip(const golden::Case& test) {
    const ir::Module module = ir::parse(test.input, test.file);
    ir::verify(module, test.args == "selected" ? ir::Level::Selected : ir::Level::Typed);
    const bool locations = test.args == "locations";
    const std::string text = print(module, {.locations = locations});
    const ir::Module again = ir::parse(text, "(printed)");
    if (print(again, {.locations = locations}) != text) return "does not print the same when parsed again:\n" + text;
    for (std::size_t i = 0; i < module.functions.size(); ++i)
        if (ir::renumbered(module.functions[i]) != ir::renumbered(again.functions[i]))
            return "differs after a round trip";
    return text;
}

std::string findings(const golden::Case& test) {
    ir::verify(ir::parse(test.input, test.file), test.args == "selected" ? ir::Level::Selected : ir::Level::Typed);
    return "well formed\n";
}

const golden::Registration ir_actions({{"print", round_trip}, {"verify", findings}});

}  // namespace
}  // namespace ikat
