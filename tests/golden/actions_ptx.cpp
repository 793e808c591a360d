// SPDX-License-Identifier: Apache-2.0
// ptx: parses PTX and prints it again; the printed text must parse and print to itself.
#include "codegen/ptx/module.hpp"
#include "tools/testing/golden.hpp"

namespace ikat {
namespace {

std::string round_trip(const golden::Case& test) {
    const std::string printed = ptx::print(ptx::parse(test.input, test.file));
    const std::string again = ptx::print(ptx::parse(printed, "printed"));
    return again == printed ? printed : "printed text does not print to itself; the second time it is\n" + again;
}

const golden::Registration actions({{"ptx", round_trip}});

}  // namespace
}  // namespace ikat
