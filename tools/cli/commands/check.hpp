// SPDX-License-Identifier: Apache-2.0
// What `ikat check` says, and how it runs a program.
#pragma once
#include <string>
#include <vector>

#include "codegen/support/diagnostic.hpp"
#include "runtime/facts/coverage.hpp"

namespace ikat::cli {

/// The checks of `ikat check`, before those that the user names.
inline constexpr const char* every_check = "strict,registers,races,races-benign=warning";

struct Verdict {
    std::vector<Diagnostic> findings, unused;  // errors, warnings and notes; lines that suppress nothing
    std::vector<emulator::Coverage> coverage;  // of launches without an error
};

/// "text": a line for each kernel, and one that says all; "json": an object for each finding, and one for the rest, on
/// a line each; "sarif": SARIF 2.1.0.
std::string render(Verdict verdict, const std::string& format);
/// Throws runtime::KernelError if nothing has been checked, or not all.
void require_complete(const Verdict& verdict);

struct ProgramOptions {
    std::string check, suppressions;
    unsigned schedules = 8;
    std::string format;
};
/// Runs a program of the CUDA driver's API on the emulator. Throws runtime::KernelError if something was found, or the
/// program failed.
void check_program(const std::vector<std::string>& command, const ProgramOptions& options);

}  // namespace ikat::cli
