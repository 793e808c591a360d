// SPDX-License-Identifier: Apache-2.0
// ptx: parses PTX and prints it again; the printed text must parse and print to itself.
// ptx-check: the findings of the check of names, types and features.
#include "codegen/ptx/check/check.hpp"
#include "codegen/ptx/text/module.hpp"
#include "tools/testing/golden.hpp"

namespace ikat {
namespace {

std::string round_trip(const golden::Case& test) {
    const std::string printed = ptx::print(ptx::parse(test.input, test.file));
    const std::string again = ptx::print(ptx::parse(printed, "printed"));
    return again == printed ? printed : "printed text does not print to itself; the second time it is\n" + again;
}

/// The findings of check() in an input that parses.
std::string findings(const golden::Case& test) {
    std::string out;
    for (const Diagnostic& each : ptx::check(ptx::parse(test.input, test.file))) out += to_string(each) + '\n';
    return out;
}

const golden::Registration ptx_actions({{"ptx", round_trip}, {"ptx-check", findings}});

}  // namespace
}  // namespace ikat
