// SPDX-License-Identifier: Apache-2.0
// Foreign PTX, parsed and printed: still the same program.
#pragma once
#include <string>

#include "codegen/ptx/check/check.hpp"
#include "codegen/ptx/text/module.hpp"
#include "tests/catch.hpp"
#include "tests/foreign/compilers.hpp"
#include "tests/ptxas.hpp"

namespace ikat::tests {

/// Reprints the text, and checks that reprinting again changes nothing.
inline std::string reprint(const std::string& text) {
    const std::string printed = ptx::print(ptx::parse(text, "original"));
    REQUIRE(ptx::print(ptx::parse(printed, "printed")) == printed);
    return printed;
}

/// The reprinted text has no unknown opcodes, and ptxas makes the same of it.
inline void check_machine_code(const std::string& original, const std::string& target) {
    const std::string printed = reprint(original);
    for (const Diagnostic& each : ptx::check(ptx::parse(printed, "printed"), {.unknown_opcodes = Severity::Error}))
        FAIL_CHECK(to_string(each));
    if (skip_without_ptxas()) return;
    const auto before = machine_code(original, target);
    REQUIRE_FALSE(before.empty());
    CHECK(before == machine_code(printed, target));
}

}  // namespace ikat::tests
